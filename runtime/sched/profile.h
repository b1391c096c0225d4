/* SPDX-License-Identifier: MIT
 *
 * Sample the futexes that threads wait on most, for `lissom stat` (docs/guide/stat.md). One wait in
 * PROFILE_EVERY of each slot is sampled.
 */
#ifndef LISSOM_PROFILE_H
#define LISSOM_PROFILE_H

#include "sched/thread.h"

/* waits per sample; a prime, so that samples of a periodic program cover its whole period */
enum { PROFILE_EVERY = 31 };

/* The thread that holds s and has registers r is about to wait on `address`: sample the wait if it
 * is due. Takes 1-2 ns a wait on average (docs/guide/stat.md). Never waits for a lock. */
void profile_wait(const struct slot *s, uintptr_t address, const struct user_registers *r);

/* By the monitor: copy the samples, in no order; unused entries have samples == 0. Reads
 * /proc/self/maps for new entries. */
void profile_read(struct lissom_lock_profile to[LISSOM_MAX_LOCKS]);

void profile_after_fork(void);

#endif
