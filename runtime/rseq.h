/* SPDX-License-Identifier: MIT
 *
 * Restartable sequences, rseq(2). A kernel thread may register an area. The kernel stores the
 * thread's CPU number there, and restarts sequences that the area declares uninterruptible. A
 * carried thread would read the CPU number of another kernel thread, and would not be restarted.
 *
 * glibc (2.35 and newer) registers an area for each thread. It only needs the CPU number, for
 * sched_getcpu(3), and asks the kernel if there is no area. So the runtime unregisters the areas,
 * as glibc.pthread.rseq=0 does, unless the program uses them itself; then its threads are pinned. A
 * thread that registers an area of its own is pinned (attributes.c).
 */
#ifndef LISSOM_RSEQ_H
#define LISSOM_RSEQ_H

#include <stdbool.h>

/* Unregister glibc's area, and let glibc register none for new threads. Returns false if glibc's
 * areas stay: threads then have to stay on their kernel threads. Takes the loader's lock. Pre:
 * called by the constructor, before all other constructors. */
bool rseq_end_of_libc(void);

/* Return whether an area is registered for the calling kernel thread. */
bool rseq_is_registered(void);

#endif
