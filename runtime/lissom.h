/* SPDX-License-Identifier: MIT */
#ifndef LISSOM_LISSOM_H
#define LISSOM_LISSOM_H

#include "sched/thread.h"

/* Why a process runs natively, for people to read. */
#define REASON_USERFAULTFD "the program handles its own page faults (userfaultfd)"
#define REASON_NO_CODE "a policy forbids to change code, or to make memory executable"
#define REASON_RESTRICTS "the program restricts its system calls"

/* In a fork's child, by its only thread. */
void lissom_forked(struct thread *t);
/* The program is about to forbid itself system calls, perhaps those that the runtime would make
 * when the second thread is made. */
void lissom_before_restriction(void);
/* From now on the process runs natively; `reason` is shown to who asks. */
void lissom_give_up(const char *reason);
/* The dynamic loader has mapped the object whose file is open as fd. */
void lissom_object_mapped(uintptr_t base, size_t len, int fd);
/* The dynamic loader unmaps these pages: munmap(2). Post: 0 or -errno. */
long lissom_object_munmap(uintptr_t base, size_t len);

#endif
