/* SPDX-License-Identifier: MIT
 *
 * Malleable OpenMP loops (docs/omp.md): how many threads take chunks of a loop, and who waits
 * because there are enough of them.
 *
 * A *loop* is what threads do that came to it from one place in the program. That may be several
 * loops for OpenMP (other teams in the same code, and loops whose places fall together in our
 * table): that costs time at most. Nothing here decides what a program computes: it only delays
 * calls, for a bounded time.
 */
#ifndef LISSOM_LOOPS_H
#define LISSOM_LOOPS_H

#include "sched/thread.h"

/* t, which has a chunk (t->at_work), is about to give up its slot until it is woken: it does not
 * count any more, and another one may go on. */
void loops_blocks(struct thread *t);
/* It has a slot again. */
void loops_goes_on(struct thread *t);
void loops_thread_ends(struct thread *t);
/* The monitor's look at who waits. Post: whether anybody does. */
bool loops_look(uint64_t now);
void loops_after_fork(struct thread *t);
/* initial: threads of a loop that take chunks, at most one a slot, until a manager sets the number
 * of slots; 0: one a slot. shake, for tests: another number all the time. In the constructor. */
void loops_init(uint32_t initial, bool shake);
/* Replaces `initial`, 1 or more (omp_set_num_threads). By any thread. */
void loops_set_initial(uint32_t initial);
/* The number of slots has changed, or whether a manager sets it. By the monitor. */
void loops_resized(bool is_managed);

/* --- functions.c: what is redirected, for patch_config ---------------------------------------- */

/* Functions to redirect. */
struct omp_wanted {
    bool loops;   /* those that hand out chunks */
    bool teams;   /* those that begin regions */
    bool ceiling; /* omp_set_num_threads */
};
/* In the constructor. */
void omp_functions(const struct omp_wanted *wanted);
uint32_t omp_function_what(const char *name);
void lissom_omp_entry(void); /* entry.S */

/* The calls that we make into the runtime ourselves: entry.S has the site, and loops.c what it
 * does. Post: an ACTION_*. */
extern const struct patch_site lissom_omp_site;
long loops_call(struct thread *t, struct user_registers *r);

/* --- what functions.c sees -------------------------------------------------------------------- */

/* The calling thread t is about to ask for a chunk, of the loop to which it came from `caller`. May
 * wait. */
void loop_asks(struct thread *t, uintptr_t caller);
/* Its next chunk of the same loop. */
void loop_asks_again(struct thread *t);
/* What came of it. */
void loop_got(struct thread *t, bool chunk);
/* It leaves the loop, with or without having been told that nothing is left. */
void loop_leaves(struct thread *t);

#endif
