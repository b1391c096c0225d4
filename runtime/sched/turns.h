/* SPDX-License-Identifier: MIT
 *
 * Turns: processes whose only running thread waits in a loop for another process, such as MPI
 * ranks, pass their CPU to each other (docs/design/sharing.md, Turns).
 *
 * sched_yield(2) is not enough: the kernel yields within a scheduling group only. Ranks are often
 * in groups of their own: one for each session (autogroup: sched(7)) or container. A thread that
 * sleeps for a moment in place of a yield is late by 70 us, and a timer costs more than a switch.
 *
 * Each process has a word in memory that all share (monitor/domain.h):
 *
 *     TURN_NONE    it takes no part: it has not waited of late, or is blocked, or computes
 *     TURN_WANTED  its thread sleeps until it is given a turn
 *     TURN_HELD    its thread runs
 *
 * A thread at a spin site gives its turn to a process whose word is WANTED, mostly the next on its
 * CPU. It sets its own word to WANTED and the other to HELD, wakes the other process and sleeps. At
 * most `most` processes are to hold turns: those with the lowest numbers. Any other holder only
 * sleeps. If fewer hold turns, a thread at a site wakes another process and keeps running.
 *
 * 1. A word changes from WANTED to HELD by compare-and-swap. So of several givers, one succeeds.
 * 2. A giver's own word is WANTED before another becomes HELD, and futex(2) compares it again. So a
 *    turn that is given before its process sleeps is not lost.
 * 3. A thread that sleeps without giving its turn sets its word, then searches for one that is
 *    HELD. Of several that do so at once, the last finds none and keeps running. So they never all
 *    sleep while each holder of a turn is at a site again within TURN_NS.
 * 4. A process may end, be stopped, block or compute while it holds a turn. A sleep ends after
 *    TURN_NS. Each process that was at no site meanwhile then loses its turn: HELD becomes NONE. So
 *    a killed process costs the others two turns at most, wherever it is. If no sleep lasts that
 *    long, because fewer processes pass their turns on, their monitors do the same.
 *
 * Other processes of this user write the words. The worst value makes a thread sleep for TURN_NS
 * where it would spin. Model: docs/model/turns.pml.
 */
#ifndef LISSOM_TURNS_H
#define LISSOM_TURNS_H

#include "sched/thread.h"

struct lissom_turn;

enum { TURN_NONE, TURN_WANTED, TURN_HELD };

/* By the monitor: take part as entry `self` of `turn`, an array of LISSOM_MAX_PEERS in shared
 * memory that is never unmapped; NULL: take part no more. mask: hash of this process's CPUs; only
 * entries with the same hash count. Waits for a thread that is in turns_pass. */
void turns_join(struct lissom_turn *turn, uint32_t self, uint64_t mask);
/* In a fork's child, which takes no part. */
void turns_after_fork(void);
/* By the monitor. entries: number of entries in use. most: number of processes that should run at
 * once. */
void turns_set(uint32_t entries, uint32_t most);

/* Return whether this process takes part: its word is not TURN_NONE. Relaxed. */
bool turns_taken(void);
/* Return whether another process sleeps until it is given a turn. Relaxed. */
bool turns_wanted(void);
/* Give away the turn of this process and sleep until it has one again, a thread is ready, a signal
 * arrives, or TURN_NS have passed. Returns at once right after a sleep: a loop takes several rounds
 * to see what has changed. Returns false if no other process wants the turn. Pre: t holds its slot,
 * and no other thread of the process is ready. */
bool turns_pass(const struct thread *t);
/* End the sleep of this process's thread. Seq_cst. */
void turns_end(void);
/* Give away the turn of this process, if it holds one: it does not need its CPU. */
void turns_leave(void);
/* By the monitor: return whether turns_pass has slept since the last call. */
bool turns_passed(void);

#endif
