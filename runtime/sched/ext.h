/* SPDX-License-Identifier: MIT
 *
 * Under `lissom sched` (bpf/scx_lissom.bpf.c, docs/sched.md): a thread that hands its slot to
 * another kernel thread parks instead of sleeping, and wakes the other with the same call. That is
 * sched_yield with arguments that only this scheduler looks at; under any other one it yields, and
 * its caller sleeps as if there were no such thing. So it may come and go while the program runs,
 * and nothing here has to be right about whether it is there.
 */
#ifndef LISSOM_EXT_H
#define LISSOM_EXT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the scheduler was there when it was last asked for. */
bool ext_is_there(void);
/* parks: the calling kernel thread waits until it is woken, but may come back for no reason, at the
 * latest after some 20 ms, and does at once if it was woken since it waited before. Thread `tid` of
 * this process, if it waits so, does not wait any more, and otherwise not the next time; 0: none.
 * Each has noted in memory (seq_cst) before that it waits, or whom it wakes: only there it is known
 * which of the two was first. */
void ext_park(bool parks, int32_t tid);
/* At the start, and by the monitor: asks the kernel, at most once a second. Opens a file. */
void ext_ask(void);

#endif
