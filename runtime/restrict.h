/* SPDX-License-Identifier: MIT
 *
 * What a program of one thread does to itself that would keep the runtime from beginning later:
 * libc's functions for that are interposed.
 *
 *     prctl, syscall   a seccomp filter: the process stays native
 *     chroot           no /proc any more: the runtime begins at once
 */
#ifndef LISSOM_RESTRICT_H
#define LISSOM_RESTRICT_H

#include <stdint.h>

/* `find`: libc's own function of a name; 0: it has none. */
void restrict_init(uintptr_t (*find)(const char *name));

#endif
