/* SPDX-License-Identifier: MIT
 *
 * Decide whether the threads of a bulk wake all run on the waker's slot
 * (docs/design/virtual-blocking.md, "Gathering").
 *
 * Threads that meet at a barrier every few hundred ns cost more on several CPUs than on one: the
 * cache lines of the barrier move between the CPUs with each arrival. Which is faster depends on
 * the machine and on the work between two barriers. So both ways are tried, for some bulk wakes
 * each. Then many use the way that took less time for each woken thread.
 */
#ifndef LISSOM_FUTEX_GATHER_H
#define LISSOM_FUTEX_GATHER_H

#include "sched/thread.h"

/* Return whether to run the threads of a bulk wake on the caller's slot. The caller is about to
 * wake all threads that wait in the chains of an address. */
bool gather(uint64_t now /* tsc */);

/* Note that the bulk wake has woken n threads. */
void gather_woke(uint32_t n);

/* Return for how long no other slot takes n gathered threads, in tsc ticks. */
uint64_t gather_kept_for(uint32_t n);

/* Begin with a new trial, in a fork's child. */
void gather_after_fork(void);

#endif
