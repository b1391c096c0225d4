/* SPDX-License-Identifier: MIT
 *
 * Which futexes threads wait on most, for `lissom stat`: docs/stat.md. One wait in PROFILE_EVERY of
 * a slot is looked at.
 */
#ifndef LISSOM_PROFILE_H
#define LISSOM_PROFILE_H

#include "sched/thread.h"

/* waits for each that is looked at; a prime, so that a program whose waits go round is seen all the
 * way round */
enum { PROFILE_EVERY = 31 };

/* The thread whose registers these are, which holds s, is about to wait on `address`. Some 1-2 ns a
 * wait (docs/stat.md). Takes no lock that it would have to wait for. */
void profile_wait(const struct slot *s, uintptr_t address, const struct user_registers *r);

/* What was found, in no order; entries that are not used have samples 0. By the monitor. Reads
 * /proc/self/maps for those that are new. */
void profile_read(struct lissom_lock_profile to[LISSOM_MAX_LOCKS]);

void profile_after_fork(void);

#endif
