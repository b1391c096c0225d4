/* SPDX-License-Identifier: MIT */
#ifndef LISSOM_SYSCALLS_H
#define LISSOM_SYSCALLS_H

#include <stdint.h>

/* The class tables of patch/patch.h: 0 for calls that may be made by any kernel thread and do not
 * block. */
extern uint8_t syscalls_class[65536], syscalls_class_rtld[65536];
void syscalls_init(void);
void syscalls_watch_descriptors(void);

#endif
