/* SPDX-License-Identifier: MIT
 *
 * Hand-off under `lissom sched` (bpf/scx_lissom.bpf.c, docs/design/kernel-scheduler.md). A thread
 * that hands its slot to another kernel thread parks instead of sleeping, and wakes the other one
 * with the same call. The call is sched_yield with arguments that only this scheduler reads. Under
 * any other scheduler it yields, and its caller then sleeps as usual. So the scheduler may start
 * and stop while the program runs, and ext_is_there may be wrong.
 */
#ifndef LISSOM_EXT_H
#define LISSOM_EXT_H

#include <stdbool.h>
#include <stdint.h>

/* Return whether the scheduler was there at the last ext_ask. */
bool ext_is_there(void);
/* parks: block the calling kernel thread until it is woken. It returns at once if it was woken
 * since it last parked, spuriously, or after some 20 ms at the latest. tid: wake this thread of the
 * process if it is parked, otherwise make its next ext_park return at once; 0: none.
 *
 * Before the call, each side has noted in memory (seq_cst) that it parks, or which thread it wakes.
 * Only that memory shows which of the two came first. */
void ext_park(bool parks, int32_t tid);
/* Ask the kernel whether the scheduler is there, at most once a second: at the start, and by the
 * monitor. Opens a file. */
void ext_ask(void);

#endif
