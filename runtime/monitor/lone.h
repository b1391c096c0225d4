/* SPDX-License-Identifier: MIT
 *
 * A process with one running thread, beside programs that want its CPU. That thread may wait in a
 * loop for one of them: MPI ranks do. So it is scanned for busy-waiting as if other threads of its
 * own process were ready, and it yields the CPU at its spin sites.
 *
 * Nothing signals when that begins. So the monitor wakes now and then, and reads for how long the
 * thread has waited for its CPU. Monitor only.
 */
#ifndef LISSOM_LONE_H
#define LISSOM_LONE_H

#include <stdbool.h>
#include <stdint.h>

/* Begin anew. own_descriptors: the monitor may open files; if false, nothing is checked. */
void lone_begin(bool own_descriptors);
/* Returns for how many us the monitor may sleep before the next lone_look; 0: for ever. */
uint32_t lone_sleep_us(void);
/* Returns whether the only running thread is contended, and no other is ready. Contended: it has
 * waited for its CPU for an eighth of the time or more, while others ran. Opens a file. */
bool lone_look(void);
/* Check for contention, if it is time, as lone_look does, while the monitor is awake. Returns
 * whether the thread is contended; then scans it at intervals. */
bool lone_tick(uint64_t now /* tsc */);
/* Returns whether one thread ran at the last tick, and no other could. Then no other code scans
 * it. */
bool lone_watches(void);
/* Returns the us until the next tick, if the thread was contended at the last one: 1000 to 8000,
 * longer after scans without a wait. 0: it was not contended. */
uint32_t lone_tick_us(void);

#endif
