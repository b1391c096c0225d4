/* SPDX-License-Identifier: MIT
 *
 * The statistics of the loops in which threads were found waiting (abi.h, struct lissom_loop).
 */
#ifndef LISSOM_SPIN_LOOPS_H
#define LISSOM_SPIN_LOOPS_H

#include "spin/interpret.h"

#include <stddef.h>

struct lissom_loop;

/* A sample has proven a wait in this loop. Reads the list of mappings the first time. Post: its
 * entry, or NULL: there is no room, or it is not in a file. By the monitor. */
struct lissom_loop *spin_loop_seen(const struct spin_result *r);
/* [base, base + bytes) is unmapped: other code may come there. */
void spin_loops_unmapped(uintptr_t base, size_t bytes);
/* The record has become another one, in a fork's child. */
void spin_loops_after_fork(void);

#endif
