/* SPDX-License-Identifier: MIT
 *
 * Interpose libc's functions with which a program of one thread can prevent the runtime from
 * beginning later.
 *
 *     prctl, syscall   set a seccomp filter: the process stays native
 *     chroot           hides /proc: the runtime begins at once
 */
#ifndef LISSOM_RESTRICT_H
#define LISSOM_RESTRICT_H

#include <stdint.h>

/* find: returns libc's own function of that name; 0 if there is none. */
void restrict_init(uintptr_t (*find)(const char *name));

#endif
