/* SPDX-License-Identifier: MIT
 *
 * CPU contention: do other programs want our CPUs? Beside another program, polling uses up our own
 * share of the CPU. A poller is then off its CPU for a slice (3 ms or more) when it is needed. So
 * nothing may poll then, and the kernel must be free to move our threads to a CPU with room
 * (measured: docs/design/idle-polling.md).
 *
 * There is no cheap way to ask the kernel. But a poller reads the clock all the time, and sees when
 * it stood still. And a thread that was given a slot while it slept sees how long it took until it
 * ran. Without such a sign, contention ends: polling is tried again after a while, and after an
 * ever longer one if it was too soon.
 *
 * In a virtual machine it may have been the host, which takes time to wake an idle CPU. Then
 * polling is right, and not polling would cause the next late wake-up. So a late thread is only a
 * suspicion: the monitor asks the kernel whether that thread has waited behind others.
 */
#ifndef LISSOM_CONTENTION_H
#define LISSOM_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

struct thread;
struct slot;

/* Return whether other programs are known to want the CPUs. `now`: tsc. */
bool contended(uint64_t now);
/* Return whether the kernel is to decide which threads of the process run: contended, and the
 * process has as many slots as it would have alone. Then pinned threads, and those that return from
 * a wait in the kernel, run beside the holder of their slot. With fewer slots than that, these are
 * all that it may use, and the others have theirs. */
bool kernel_decides(uint64_t now);
/* Set whether the process has fewer slots than it would have alone. */
void contention_bounded(bool is_bounded);
/* One step of a poll took from `before` to `now` (tsc). Returns true if that thread was off its
 * CPU; contended() may then hold for a while. */
bool contention_stood_still(uint64_t before, uint64_t now);
/* Two turns of a spin were at `before` and `now` (tsc): suspect contention if that is long. The
 * thread may have computed in between, so only the kernel's answer counts, and it is asked
 * rarely. */
void contention_guess(uint64_t before, uint64_t now);
/* The calling kernel thread slept, and was granted t->slot meanwhile: suspect contention if it woke
 * late. */
void contention_woke(const struct thread *t);
/* Return whether another slot's kernel thread is on the caller's CPU, as far as is known. That
 * thread may need the CPU for what s waits for, and the other CPU has more to do then. Each slot
 * records its CPU only now and then. Pre: the caller holds s. */
bool contention_on_cpu(struct slot *s);
/* Set whether the CPU quota bounds the number of slots: long stops are then caused by the quota. */
void contention_by_quota(bool is_limit);
/* By the monitor: set whether it can ask the kernel. While it cannot, suspicions are believed. */
void contention_can_ask(bool can);
/* By the monitor, if it can: ask the kernel about the last suspicion. Opens a file if there is
 * one. */
void contention_ask(void);
/* A slot was given a second thread: for a while, a late thread may have waited for our own. */
void contention_of_our_own(void);
/* Other programs want the CPU of a thread: contended() holds for a while. */
void contention_of_others(uint64_t now /* tsc */);

#endif
