/* SPDX-License-Identifier: MIT */
#ifndef LISSOM_SYSCALLS_H
#define LISSOM_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* The class tables of patch/patch.h: 0 for calls that may be made by any kernel thread and do not
 * block. */
extern uint8_t syscalls_class[65536], syscalls_class_rtld[65536];
void syscalls_init(void);
void syscalls_watch_descriptors(void);
/* t has made a call that had to be made at home; or one like those for whose sake it may leave
 * it. */
void syscalls_learn(struct thread *t, bool needs_home);

#endif
