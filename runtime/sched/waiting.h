/* SPDX-License-Identifier: MIT
 *
 * Waiting lists. A thread that waits in a loop of its own (spin/spin.h) is *parked* on the waiting
 * list of a slot, beside the run queue. While any other thread can run, a parked thread is skipped
 * as long as its wait words keep their values (HPDC'21, busy-waiting detection: the skip rule).
 * Once a word has changed, the thread runs before the ready ones. Nobody is notified of the change:
 * threads that pick the next one check the words.
 *
 * The detection may be wrong, and others may depend on the thread's progress. So its wait also
 * counts as over after a bounded time, and a slot that has nothing else to run runs it.
 *
 * docs/design/slot-protocol.md: park. `now` is the tsc.
 */
#ifndef LISSOM_WAITING_H
#define LISSOM_WAITING_H

#include "sched/thread.h"

/* The next three: under the slot's lock. */
void waiting_push(struct slot *s, struct thread *t, uint64_t now);
/* Take the first thread whose wait is over off the list. Returns NULL if there is none. */
struct thread *waiting_take_over(struct slot *s, uint64_t now);
/* Take the thread that has waited longest off the list, whether or not its wait is over. Returns
 * NULL if the list is empty. */
struct thread *waiting_take_any(struct slot *s);

/* Return whether a thread whose wait is over is on the list of s. Takes the lock of s. in_hurry:
 * returns false also if that is held. */
bool waiting_any_over(struct slot *s, uint64_t now, bool in_hurry);
/* Return the turns that a thread may make in a loop that may end by a count, after it was away for
 * `away` (tsc). The `sharers` threads of a slot that are in such loops make turns for a sixteenth
 * of the time together. */
uint32_t waiting_turns(uint64_t away, uint32_t sharers);
/* Return whether a word of t's wait has changed; true if the wait has no words. By t, or by the
 * owner of t. Needs no lock. */
bool waiting_words_changed(const struct thread *t);
/* Return whether any of `words` words has changed; true if there are none. */
bool waiting_changed(const struct wait_word *word, uint32_t words);

#endif
