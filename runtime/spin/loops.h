/* SPDX-License-Identifier: MIT
 *
 * Statistics of the loops in which threads waited (abi.h, struct lissom_loop).
 */
#ifndef LISSOM_SPIN_LOOPS_H
#define LISSOM_SPIN_LOOPS_H

#include "spin/interpret.h"

#include <stddef.h>

struct lissom_loop;

/* Count a scan that proved a wait in this loop. Returns its statistics, or NULL if there is no room
 * or the loop is not in a file. Reads the list of mappings for a new loop. Monitor only. */
struct lissom_loop *spin_loop_seen(const struct spin_result *r);
/* Forget the loops in [base, base + bytes): other code may be mapped there. */
void spin_loops_unmapped(uintptr_t base, size_t bytes);
/* Forget all loops: the child of a fork has a new record. */
void spin_loops_after_fork(void);

#endif
