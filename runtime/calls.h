/* SPDX-License-Identifier: MIT
 *
 * The table of system calls: which are intercepted, where each is made, and the function that
 * handles it.
 */
#ifndef LISSOM_CALLS_H
#define LISSOM_CALLS_H

#include "sched/thread.h"

/* A context that is away from home makes none but CALL_ANYWHERE there. That keeps its carrier
 * available to the thread whose home it is (docs/slots.md, migrate_home). */
enum call_kind {
    CALL_ANYWHERE,    /* the kernel does the same on every kernel thread, and it does not wait for
                       * another thread: not intercepted */
    CALL_HOME,        /* depends on the kernel thread (identity, attributes), or is unknown: the
                       * thread goes home, and then the row's function, if any, is called */
    CALL_BLOCKS,      /* waits for something: at home, with the slot released around it */
    CALL_HERE,        /* the row's function is called wherever the thread is */
    CALL_DESCRIPTORS, /* could close the descriptor of events */
};

/* Handles the call in `r` of thread t: makes it, or prepares for it. Returns an ACTION_*.
 * Pre: by t, which has a slot, on its runtime stack. */
typedef long call_function(struct thread *t, struct user_registers *r);

/* The kinds by number, for the stubs: 0 is CALL_ANYWHERE (patch/patch.h, class_table). The second
 * one is for the dynamic loader's own calls. */
extern uint8_t calls_kind[65536], calls_kind_rtld[65536];
void calls_init(void);
enum call_kind call_kind_of(long nr);
/* NULL: the call is only made. */
call_function *call_function_of(long nr);

/* From here on, calls that could close events' descriptor are intercepted. */
void calls_watch_descriptors(void);

/* t, which needs its own kernel thread for a call, goes there. Returns ACTION_DIRECT. */
long call_at_home(struct thread *t);
/* Makes the process native as a whole, waits for its other threads to leave the runtime,
 * `timeout_ms` at most, and makes t's call natively. `reason` is for the user. */
long call_natively(struct thread *t, struct user_registers *r, const char *reason,
                   uint32_t timeout_ms);

#endif
