/* SPDX-License-Identifier: MIT
 *
 * Do other programs run on the CPUs of the process? By the monitor.
 *
 * A thread that waits for its CPU may wait for a thread of its own process: two that wake each
 * other often meet on one CPU. The kernel's run delay does not tell which. But a thread waits for
 * others at most as long as others run. So the time that the CPUs were neither idle nor used by
 * the process bounds the delay by others.
 */
#ifndef LISSOM_OTHERS_H
#define LISSOM_OTHERS_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_mask;

/* Forget all earlier readings, in the child of a fork. */
void others_after_fork(void);

/* Return whether other programs, or kernel threads, used an eighth of a CPU or more in the 200 ms
 * or more before the last reading. Returns true if that is unknown, as in the first 200 ms. Reads
 * /proc/stat if the last reading is that old: takes 25 us with 2 CPUs. Reads less often with many
 * CPUs, up to every 2 s, to use 0.2 % of a CPU. Pre: the caller has its own descriptor table, and
 * the mask of the process. */
bool others_ran(void);

/* Parse the text of /proc/stat from fd. Adds up the time in which each CPU of *mask did not run a
 * thread: *ticks (10 ms). *cpus: the number of CPUs of *mask in the text. Returns false if the text
 * ends early. */
bool others_parse(int fd, const struct cpu_mask *mask, uint32_t *cpus, uint64_t *ticks);

#endif
