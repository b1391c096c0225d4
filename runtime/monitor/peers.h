/* SPDX-License-Identifier: MIT
 *
 * The programs of one user under lissom share the CPUs: docs/sharing.md. Each tells the others how
 * many threads it could run, and takes its share. All by the monitor, which has descriptors of its
 * own; a page of a file is read and an entry written, 2 us a look.
 */
#ifndef LISSOM_PEERS_H
#define LISSOM_PEERS_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_mask;

/* The calling thread is the monitor now. own_descriptors: what it opens is not seen by the program;
 * if false, nothing is shared. */
void peers_begin(bool own_descriptors);
/* How many slots the process is to have, if it is to have `limit` alone. mask: its CPUs. quota:
 * what its CPU quota is worth, 0: it has none. Post: 1..limit. */
uint32_t peers_share(uint32_t limit, const struct cpu_mask *mask, uint32_t quota);
/* By each tick. Returns whether a look is due at once: others are there, no thread runs or is
 * ready, and they have been told otherwise. */
bool peers_are_owed(void);
/* How soon peers_are_owed may return true, unless a thread runs. 0: not so. us. */
uint32_t peers_may_be_owed_us(void);
/* No look will follow for long. */
void peers_asleep(void);
/* Microseconds until the next look is due. */
uint32_t peers_period_us(void);
/* Whether others were there at the last look, who want CPUs. */
bool peers_any(void);

#endif
