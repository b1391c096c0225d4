/* SPDX-License-Identifier: MIT
 *
 * Calls from the core into the layers above it. The core declares them; runtime/hooks.c, on top of
 * all layers, defines each by what those layers do. They are bound when the runtime is linked: none
 * can be missing, and a call costs nothing.
 *
 * All run without a slot's lock and, if they have a parameter t, on the kernel thread of t.
 */
#ifndef LISSOM_HOOKS_H
#define LISSOM_HOOKS_H

#include "sched/thread.h"

#include <ucontext.h>

/* t, which takes part in an OpenMP loop (t->at_work), is about to give up its slot. */
void on_block(struct thread *t);
/* t has a slot again after on_block. */
void on_resume(struct thread *t);
/* t is about to end; it may still have its slot. */
void on_thread_end(struct thread *t);
/* Examine whether t, which holds a slot, waits in a loop. uc: the state in which a signal handler
 * interrupted it, with 8 KiB of stack left. May run other threads before it returns. Returns false
 * if t could not be examined. */
bool on_scan(struct thread *t, const ucontext_t *uc);
/* A signal has interrupted the program, perhaps at a spin site: move the state before or after the
 * site's instruction. */
void on_interrupt(ucontext_t *uc);
/* A signal for h has arrived, which may wait in a queue: take it out and make it ready. Returns
 * false if it was in no queue. */
bool on_signal(struct thread *h);
/* From now on, calls that close, replace or change descriptors must be intercepted. */
void on_watch_descriptors(void);
/* Leave scheduling to the kernel for good: the runtime cannot continue. reason: for users. */
void on_give_up(const char *reason);

/* --- the monitor (monitor/monitor.c) ---------------------------------------------------------- */

/* Wake the monitor; start it if there is none. */
void monitor_kick(void);
/* Wake the monitor if there is one. */
void monitor_kick_started(void);
/* As monitor_kick; a monitor that sleeps until the next timer also reads the timers again. */
void monitor_look_again(void);
/* A slot has become busy. */
void monitor_slot_busy(void);
/* All threads but one have ended. */
void monitor_one_is_left(void);
/* Each thread calls this right after it has changed its credentials. The monitor ends; if it is
 * needed, it is started again with the caller's credentials. So the last thread that changes leaves
 * no monitor with the old ones. */
void monitor_restart(void);

/* --- events (docs/design/event-loops.md) ------------------------------------------------------ */

/* Return whether threads wait for events that another thread has to poll for. */
static inline bool events_watched(void)
{
    return __atomic_load_n(&sched.event_watchers, __ATOMIC_RELAXED);
}
/* Return whether threads wait for events, and none of them waits in the kernel for all. Call it
 * after the caller's slot has been published as IDLE. */
static inline bool events_unattended(void)
{
    return __atomic_load_n(&sched.event_watchers, __ATOMIC_SEQ_CST) &&
           !__atomic_load_n(&sched.event_leader, __ATOMIC_SEQ_CST);
}
/* Poll for events if nobody has done so for a while, and make threads ready whose events have
 * come. */
void on_schedule(void);
/* Poll for events now: the slot has nothing to run. */
void on_idle(void);
/* The slot has nothing to run and there are no events: make a waiting thread ready, to wait for all
 * in the kernel. */
void on_unattended(void);

#endif
