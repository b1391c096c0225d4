/* SPDX-License-Identifier: MIT
 *
 * Interposes libc's functions by which a program of one thread can keep the runtime from beginning
 * later.
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
