/* SPDX-License-Identifier: MIT */
#ifndef LISSOM_LISSOM_H
#define LISSOM_LISSOM_H

#include "sched/thread.h"

/* In a fork's child, by its only thread. */
void lissom_forked(struct thread *t);
/* From now on the process runs natively; `reason` is shown to who asks. */
void lissom_give_up(const char *reason);
/* The dynamic loader has mapped the object whose file is open as fd. */
void lissom_object_mapped(uintptr_t base, size_t len, int fd);
/* The dynamic loader unmaps these pages: munmap(2). Post: 0 or -errno. */
long lissom_object_munmap(uintptr_t base, size_t len);

#endif
