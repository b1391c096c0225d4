/* SPDX-License-Identifier: MIT */
#ifndef LISSOM_LISSOM_H
#define LISSOM_LISSOM_H

#include "sched/thread.h"

/* Why a process runs natively, for the user. */
#define REASON_USERFAULTFD "the program handles its own page faults (userfaultfd)"
#define REASON_NO_CODE "a policy forbids changing code or making memory executable"
#define REASON_RESTRICTS "the program restricts its system calls"

/* Initialize the runtime in a fork's child. Pre: the caller is its only thread. */
void lissom_forked(struct thread *t);
/* Run natively if the runtime has not begun. The program is about to restrict its system calls,
 * perhaps those that the runtime would make when it begins. */
void lissom_before_restriction(void);
/* Make the process native for good. reason: for the user. */
void lissom_give_up(const char *reason);
/* Patch an object that the dynamic loader has mapped. fd: its file. */
void lissom_object_mapped(uintptr_t base, size_t len, int fd);
/* Perform munmap(2) for the dynamic loader. Returns 0 or a negated errno. */
long lissom_object_munmap(uintptr_t base, size_t len);

#endif
