/* SPDX-License-Identifier: MIT
 *
 * The calls from the core into the layers above it. The core declares them, and runtime/hooks.c, on
 * top of all layers, defines each by what those layers do. They are bound when the runtime is
 * linked: none can be missing, and a call costs nothing.
 *
 * All of them run on the kernel thread of t, where t is given, without a slot's lock.
 */
#ifndef LISSOM_HOOKS_H
#define LISSOM_HOOKS_H

#include "sched/thread.h"

#include <ucontext.h>

/* t, which takes part in an OpenMP loop (t->at_work), is about to give up its slot. */
void on_block(struct thread *t);
/* t, of which on_block was called, has a slot again. */
void on_resume(struct thread *t);
/* t is about to end; it may still have its slot. */
void on_thread_end(struct thread *t);
/* t, which holds a slot, was interrupted in this state to find out whether it waits in a loop. In a
 * signal handler, with 8 KiB of stack. May run other threads before it returns. Returns false if t
 * could not be examined. */
bool on_scan(struct thread *t, const ucontext_t *uc);
/* A signal has interrupted the program, perhaps at a spin site: brings the state before or behind
 * the site's instruction. */
void on_interrupt(ucontext_t *uc);
/* h may wait in a queue while a signal for it arrives: takes it out of the queue, and makes it
 * ready. Returns false if it was in none. */
bool on_signal(struct thread *h);
/* From now on the calls that close, replace or change descriptors have to be seen. */
void on_watch_descriptors(void);
/* The runtime cannot go on, and leaves scheduling to the kernel for good. The reason is for
 * users. */
void on_give_up(const char *reason);

/* --- the monitor (monitor/monitor.c) ---------------------------------------------------------- */

/* Wakes the monitor; starts it if there is none. */
void monitor_kick(void);
/* Wakes the monitor if there is one. */
void monitor_kick_started(void);
/* As monitor_kick; if the monitor sleeps until the next timer, it looks at the timers again. */
void monitor_look_again(void);
/* A slot is not idle any more. */
void monitor_slot_busy(void);
/* All threads but one have ended. */
void monitor_one_is_left(void);
/* Each thread calls this right after it has changed its credentials: the monitor ends, and if it is
 * needed the caller starts it again, with the caller's. So the last thread that changes leaves no
 * monitor with the old ones. */
void monitor_restart(void);

/* --- events (docs/events.md) ------------------------------------------------------------------ */

/* Whether threads wait for events that another thread has to look for. */
static inline bool events_watched(void)
{
    return __atomic_load_n(&sched.event_watchers, __ATOMIC_RELAXED);
}
/* The same, and no thread waits for them in the kernel. After the caller has published that its
 * slot is IDLE. */
static inline bool events_unattended(void)
{
    return __atomic_load_n(&sched.event_watchers, __ATOMIC_SEQ_CST) &&
           !__atomic_load_n(&sched.event_leader, __ATOMIC_SEQ_CST);
}
/* Looks for events if none has done so for a while, and makes threads ready whose events are
 * there. */
void on_schedule(void);
/* The slot has nothing to run: looks for events now. */
void on_idle(void);
/* The same, and there are none: makes a waiting thread ready, which will wait for all in the
 * kernel. */
void on_unattended(void);

#endif
