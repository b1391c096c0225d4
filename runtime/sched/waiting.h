/* SPDX-License-Identifier: MIT
 *
 * Threads that wait in a loop of their own (spin/spin.h) are *parked* on the waiting list of a
 * slot, beside its run queue. A parked thread is passed over as long as the words that it waits
 * for are what they were, while any other can run (HPDC'21, busy-waiting detection: the skip rule);
 * once they differ it comes before the ready ones. Nobody is told when they differ: who looks for
 * the next thread looks at them.
 *
 * What was found of a thread may be wrong, or somebody may count on its progress all the same: so
 * its wait also counts as over after a bounded time, and a slot that has nothing else runs it.
 *
 * docs/slots.md: park. `now` is the tsc.
 */
#ifndef LISSOM_WAITING_H
#define LISSOM_WAITING_H

#include "sched/thread.h"

/* Under the slot's lock: */
void waiting_push(struct slot *s, struct thread *t, uint64_t now);
/* The first whose wait is over, taken off the list; or NULL. */
struct thread *waiting_take_over(struct slot *s, uint64_t now);
/* The one that has waited longest, whether its wait is over or not; NULL: the list is empty. */
struct thread *waiting_take_any(struct slot *s);

/* Whether one whose wait is over is on the list of s, whose lock it takes. in_hurry: false also if
 * that is held. */
bool waiting_any_over(struct slot *s, uint64_t now, bool in_hurry);
/* The turns that a thread may make in a loop whose end may be a count, after it was away for `away`
 * (tsc): the `sharers` threads of a slot that are in such loops make turns for a sixteenth of the
 * time together. */
uint32_t waiting_turns(uint64_t away, uint32_t sharers);
/* Whether one of the words of t's wait has changed; true also if there is none. Not under a lock:
 * by t, or by who owns it. */
bool waiting_words_changed(const struct thread *t);
/* The same for any words. */
bool waiting_changed(const struct wait_word *word, uint32_t words);

#endif
