/* SPDX-License-Identifier: MIT
 *
 * Whether the threads of a bulk wake all run on the waker's slot: docs/slots.md, "Gathering".
 *
 * Threads that meet at a barrier every few hundred ns cost more on several CPUs than on one: the
 * cache lines of the barrier move between the CPUs with each arrival. Which is faster depends on
 * the machine and on the work between two barriers, so it is tried: some bulk wakes in one way,
 * some in the other, and then many in the one in which less time passed for each woken thread.
 */
#ifndef LISSOM_FUTEX_GATHER_H
#define LISSOM_FUTEX_GATHER_H

#include "sched/thread.h"

/* The caller is about to wake all threads that wait in the chains of an address. Returns whether on
 * its own slot. */
bool gather(uint64_t now /* tsc */);

/* It has woken n. */
void gather_woke(uint32_t n);

/* How long nobody takes n gathered threads from their slot: ticks. */
uint64_t gather_kept_for(uint32_t n);

/* In a fork's child. */
void gather_after_fork(void);

#endif
