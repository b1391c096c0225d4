/* SPDX-License-Identifier: MIT
 *
 * The hooks of the core (sched/hooks.h): each calls the layers that it concerns.
 */
#include "sched/hooks.h"
#include "calls.h"
#include "events/events.h"
#include "futex/futex.h"
#include "lissom.h"
#include "omp/loops.h"
#include "spin/spin.h"

void on_block(struct thread *t) { loops_blocks(t); }
void on_resume(struct thread *t) { loops_goes_on(t); }

void on_thread_end(struct thread *t)
{
    spin_thread_ends(t);
    if (t->at_work)
        loops_thread_ends(t);
}

bool on_scan(struct thread *t, const ucontext_t *uc) { return spin_scanned(t, uc); }
void on_interrupt(ucontext_t *uc) { spin_leave_site(uc); }
bool on_signal(struct thread *h) { return futex_interrupt(h); }
void on_watch_descriptors(void) { calls_watch_descriptors(); }
void on_give_up(const char *reason) { lissom_give_up(reason); }

void on_schedule(void)
{
    if (events_watched() && events_due(tsc()))
        events_poll();
}
void on_idle(void) { events_poll(); }
void on_unattended(void) { events_rouse(); }
