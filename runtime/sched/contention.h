/* SPDX-License-Identifier: MIT
 *
 * Does somebody else want our CPUs? Beside another program, time that is burnt by polling is taken
 * from our own share of the CPU, and the poller is off its CPU for a slice (3 ms and more) when it
 * is needed. So it must not poll, and the kernel must be free to move our threads to the CPU where
 * there is room (measured: docs/polling.md).
 *
 * There is no cheap way to ask the kernel. But who polls looks at the clock all the time, and sees
 * when it stood still; and who was given a slot while it slept sees how long it took until it ran.
 * Where neither happens nothing is seen, and polling is tried again after a while, and after ever
 * longer if it was too soon.
 *
 * In a virtual machine it may have been the host, which takes its time to wake a CPU that was idle.
 * Then polling is right, and not polling brings the next late waking about. So whoever was late is
 * a suspicion only, and the monitor asks the kernel whether that thread has waited behind others.
 */
#ifndef LISSOM_CONTENTION_H
#define LISSOM_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

struct thread;
struct slot;

/* Whether the CPUs are wanted by others, as far as is known. `now`: tsc. */
bool contended(uint64_t now);
/* The same, and the kernel is to decide who of the process runs: pinned threads, and those that
 * come back from a wait in the kernel, run beside the one that has their slot. Not if the process
 * has fewer slots than it would have alone: then those are all that it is to use, and the others
 * have theirs. */
bool kernel_decides(uint64_t now);
/* Whether it has. */
void contention_bounded(bool is_bounded);
/* One step of a poll took from `before` to `now` (tsc). Post: true: it was off its CPU, and
 * contended() holds for a while. */
bool contention_stood_still(uint64_t before, uint64_t now);
/* The same of two turns of a spin. The thread may have computed in between, so only what the kernel
 * says of it counts, which is asked for seldom. */
void contention_guess(uint64_t before, uint64_t now);
/* The calling kernel thread slept, and was granted t->slot meanwhile. */
void contention_woke(const struct thread *t);
/* Whether another slot's kernel thread is on the CPU of the caller, which holds s: it may need it
 * for what s waits for. (The other CPU has more to do then.) As far as is known: each slot tells
 * only now and then where it is. */
bool contention_on_cpu(struct slot *s);
/* There are no more slots than the CPU quota is worth: long stops are its. */
void contention_by_quota(bool is_limit);
/* By the monitor: whether it can ask. While it cannot, suspicions are believed. */
void contention_can_ask(bool can);
/* By the monitor, if it can. Opens a file if there is a suspicion. */
void contention_ask(void);
/* A slot was given a second thread: for a while, who waits for a CPU may wait for our own. */
void contention_of_our_own(void);
/* Other programs want the CPU of a thread: contended() holds for a while. */
void contention_of_others(uint64_t now /* tsc */);

#endif
