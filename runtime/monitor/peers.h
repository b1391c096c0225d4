/* SPDX-License-Identifier: MIT
 *
 * The programs of one user under lissom share the CPUs: docs/design/sharing.md. Each publishes how
 * many threads it could run, and takes its share. A check reads a page of a file and writes an
 * entry: 2 us. Monitor only; it has a file descriptor table of its own.
 */
#ifndef LISSOM_PEERS_H
#define LISSOM_PEERS_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_mask;

/* Begin anew: the calling thread is the monitor now. own_descriptors: the program does not see what
 * the monitor opens. If false, nothing is shared. */
void peers_begin(bool own_descriptors);
/* Returns how many slots the process should have: 1 to `limit`, which it would have alone. mask:
 * its CPUs. quota: CPUs that its CPU quota is worth; 0: none. */
uint32_t peers_share(uint32_t limit, const struct cpu_mask *mask, uint32_t quota);
/* Called at each tick. Returns whether a check is due at once: others are there, no thread runs or
 * is ready, and the published demand says otherwise. */
bool peers_are_owed(void);
/* Returns in how many us peers_are_owed may return true, unless a thread runs; 0: not at all. */
uint32_t peers_may_be_owed_us(void);
/* Publish that the monitor will sleep for long. */
void peers_asleep(void);
/* Returns the us until the next check is due. */
uint32_t peers_period_us(void);
/* Returns whether other programs wanted CPUs at the last check. */
bool peers_any(void);

#endif
