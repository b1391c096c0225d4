/* SPDX-License-Identifier: MIT
 *
 * What the process is doing, for `lissom stat` and `lissom top` to look at from outside:
 * docs/stat.md. All by the monitor.
 */
#ifndef LISSOM_PUBLISH_H
#define LISSOM_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

/* The calling thread is the monitor now. own_descriptors: what it opens is not seen by the program;
 * if false, nothing is published. */
void publish_begin(bool own_descriptors);
/* Ten times a second at most, something is written. */
void publish_now(void);
/* The monitor will not look until two threads can run. */
void publish_asleep(void);
/* There are at most so many slots, by mask, CPU quota and --cpus; of these the process was given a
 * share. */
void publish_limit(uint32_t limit);

#endif
