/* SPDX-License-Identifier: MIT
 *
 * The process has one thread that runs, and programs beside it want its CPU. That thread may wait
 * in a loop for one of them: ranks of MPI do. So it is scanned for busy-waiting as if other threads
 * of its own process were ready, and yields the CPU at its spin sites.
 *
 * Nothing tells when that begins: the monitor wakes seldom, and reads for how long the thread has
 * waited for its CPU. All by the monitor.
 */
#ifndef LISSOM_LONE_H
#define LISSOM_LONE_H

#include <stdbool.h>
#include <stdint.h>

/* own_descriptors: it may open files. */
void lone_begin(bool own_descriptors);
/* For how long the monitor may sleep before the next lone_look; 0: for ever. */
uint32_t lone_sleep_us(void);
/* Returns whether the only thread that runs has waited for a CPU for an eighth of the time or more,
 * while others ran. Opens a file. */
bool lone_look(void);
/* The same, where the monitor is awake: looks when it is time. If so, the thread is scanned. */
bool lone_tick(uint64_t now /* tsc */);
/* Whether at the last tick one thread ran and no other could: then nobody else needs to scan it. */
bool lone_watches(void);
/* Until the next tick, if it was so at the last one: 1 to 8 ms, the more, the more scans have shown
 * no wait. 0: it was not. */
uint32_t lone_tick_us(void);

#endif
