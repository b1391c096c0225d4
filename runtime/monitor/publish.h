/* SPDX-License-Identifier: MIT
 *
 * Publish what the process does, for `lissom stat` and `lissom top`: docs/guide/stat.md. Monitor
 * only.
 */
#ifndef LISSOM_PUBLISH_H
#define LISSOM_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

/* Begin anew: the calling thread is the monitor now. own_descriptors: the program does not see what
 * the monitor opens. If false, nothing is published. */
void publish_begin(bool own_descriptors);
/* Write the statistics, but at most ten times a second. */
void publish_now(void);
/* Write the statistics: the monitor will do so again only when two threads can run. */
void publish_asleep(void);
/* Set the maximum number of slots by mask, CPU quota and --cpus, before the process takes a share
 * of it. Written by the next publish_now. */
void publish_limit(uint32_t limit);

#endif
