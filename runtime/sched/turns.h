/* SPDX-License-Identifier: MIT
 *
 * Turns: processes whose only running thread waits in a loop for another process, such as ranks of
 * MPI, pass their CPU to each other (docs/sharing.md, Turns).
 *
 * sched_yield(2) would do, but the kernel yields within a scheduling group only, and ranks are
 * often in groups of their own: one for each session (autogroup: sched(7)), or container. A thread
 * that sleeps for a moment in place of a yield is late by 70 us, and a timer costs more than a
 * switch.
 *
 * Each process has a word in memory that all share (monitor/domain.h):
 *
 *     TURN_NONE    it takes no part: it has not waited of late, or is blocked, or computes
 *     TURN_WANTED  its thread sleeps until it is given a turn
 *     TURN_HELD    its thread runs
 *
 * A thread at a spin site gives its turn to a process whose word is WANTED, mostly the next on its
 * CPU: sets its own word to WANTED, the other to HELD, wakes it and sleeps. At most `most`
 * processes are to hold turns: those with the lowest numbers. Another that holds one only sleeps.
 * If fewer hold turns, a thread at a site wakes another and runs on.
 *
 * 1. A word becomes HELD by compare-and-swap from WANTED. So of several that give, one succeeds.
 * 2. The own word is WANTED before another becomes HELD, and futex(2) compares it again. So a turn
 *    that is given before its process sleeps is not lost.
 * 3. A thread that sleeps without giving its turn sets its word, then looks for one that is HELD.
 *    Of several that do so at a time the last finds none, and runs on. So they never all sleep
 *    while each that holds a turn is at a site again within TURN_NS.
 * 4. A process may end, be stopped, block or compute while it holds a turn. A sleep ends after
 *    TURN_NS. Each process that was at no site meanwhile then loses its turn: HELD becomes NONE. So
 *    a process that is killed costs the others two turns at most, wherever it is. If no sleep lasts
 *    so long, because fewer processes pass their turns on, their monitors do the same.
 *
 * The words are written by other processes of this user. The worst value makes a thread sleep for
 * TURN_NS where it would spin. Model: docs/model/turns.pml.
 */
#ifndef LISSOM_TURNS_H
#define LISSOM_TURNS_H

#include "sched/thread.h"

struct lissom_turn;

enum { TURN_NONE, TURN_WANTED, TURN_HELD };

/* Takes part as entry `self` of `turn`, an array of LISSOM_MAX_PEERS in shared memory that is never
 * unmapped. mask: hash of the CPUs of this process; only entries with the same hash count. NULL:
 * takes part no more. Waits for a thread that is in turns_pass. By the monitor. */
void turns_join(struct lissom_turn *turn, uint32_t self, uint64_t mask);
/* In the child, which takes part in nothing. */
void turns_after_fork(void);
/* entries: looks at so many of them. most: so many processes are to run at a time. By the
 * monitor. */
void turns_set(uint32_t entries, uint32_t most);

/* Whether this process has waited for a turn, and holds one. Relaxed. */
bool turns_taken(void);
/* Whether another process sleeps until it is given a turn. Relaxed. */
bool turns_wanted(void);
/* t holds its slot, and no other thread of the process is ready. Gives its turn away and sleeps
 * until it has one again, a thread is ready, or TURN_NS have passed. Right after a sleep, returns
 * at once: a loop takes several rounds to find what has come. Returns false if no other process
 * wants the turn. A signal ends the sleep. */
bool turns_pass(const struct thread *t);
/* Ends the sleep of this process's thread. Seq_cst. */
void turns_end(void);
/* This process does not need its CPU: gives its turn away, if it holds one. */
void turns_leave(void);
/* Whether turns_pass has slept since the last call. By the monitor. */
bool turns_passed(void);

#endif
