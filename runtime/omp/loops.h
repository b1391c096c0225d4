/* SPDX-License-Identifier: MIT
 *
 * Malleable OpenMP loops (docs/design/malleable-openmp.md): how many threads take chunks of a loop,
 * while the others wait.
 *
 * A *loop* is all that threads do that entered it from one place in the program. For OpenMP it may
 * be several loops: other teams in the same code, or places that share an entry of the table. That
 * only costs time. Nothing here decides what a program computes: it only delays calls, for a
 * bounded time.
 */
#ifndef LISSOM_LOOPS_H
#define LISSOM_LOOPS_H

#include "sched/thread.h"

/* Stop counting t, which has a chunk (t->at_work) and is about to give up its slot until it is
 * woken. Releases a waiter. */
void loops_blocks(struct thread *t);
/* Count t again: it has a slot again after loops_blocks. */
void loops_goes_on(struct thread *t);
void loops_thread_ends(struct thread *t);
/* Check the loops with waiting threads, and release some if needed. Returns whether any thread
 * waits. Monitor only. */
bool loops_look(uint64_t now);
void loops_after_fork(struct thread *t);
/* initial: threads that take chunks of a loop, at most one per slot, until a manager sets the
 * number of slots; 0: one per slot. shake, for tests: change that number all the time. Called by
 * the constructor. */
void loops_init(uint32_t initial, bool shake);
/* Set the `initial` of loops_init to 1 or more (omp_set_num_threads). By any thread. */
void loops_set_initial(uint32_t initial);
/* Follow a change of the number of slots, or of whether a manager sets it. Monitor only. */
void loops_resized(bool is_managed);

/* --- functions.c: functions to redirect, for patch_config ------------------------------------- */

/* Kinds of functions to redirect. */
struct omp_wanted {
    bool loops;   /* functions that hand out chunks */
    bool teams;   /* functions that begin regions */
    bool ceiling; /* omp_set_num_threads */
};
/* Choose the functions to redirect. Called by the constructor. */
void omp_functions(const struct omp_wanted *wanted);
/* Returns what a function does: OMP_*; 0: do not redirect it. */
uint32_t omp_function_what(const char *name);
void lissom_omp_entry(void); /* entry.S */

/* The runtime's own system call site (entry.S), and the handler of its calls. Returns an
 * ACTION_*. */
extern const struct patch_site lissom_omp_site;
long loops_call(struct thread *t, struct user_registers *r);

/* --- for functions.c -------------------------------------------------------------------------- */

/* Handle a request of t, the calling thread, for a chunk of the loop that it entered from `caller`.
 * Called before the request. May wait. */
void loop_asks(struct thread *t, uintptr_t caller);
/* Handle a further request of t for a chunk of t->loop. Called before the request. May wait. */
void loop_asks_again(struct thread *t);
/* Note the result of a request of t: a chunk, or none. */
void loop_got(struct thread *t, bool chunk);
/* Note that t leaves its loop, if it is in one. Releases all waiters. */
void loop_leaves(struct thread *t);

#endif
