/* SPDX-License-Identifier: MIT
 *
 * The table of system calls: which ones are intercepted, where each is made, and which function
 * handles it.
 */
#ifndef LISSOM_CALLS_H
#define LISSOM_CALLS_H

#include "sched/thread.h"

/* A thread away from home makes no call that blocks. So its carrier stays available to the thread
 * whose home it is (docs/design/slots.md, Carriers). */
enum call_kind {
    CALL_ANYWHERE,    /* not intercepted: the kernel does the same on every kernel thread, and the
                       * call does not wait for another thread */
    CALL_HOME,        /* depends on the kernel thread (identity, attributes), or is unknown: migrate
                       * home, then call the row's function, if any */
    CALL_BLOCKS,      /* may block: made at home, without the slot */
    CALL_HERE,        /* call the row's function on any carrier */
    CALL_DESCRIPTORS, /* may close or change a descriptor that the runtime relies on */
};

/* Make the call in `r`, or prepare for it. Returns an ACTION_*. Pre: the caller is t, which has a
 * slot, on its runtime stack. */
typedef long call_function(struct thread *t, struct user_registers *r);

/* Kinds by number, for the stubs; 0 is CALL_ANYWHERE (patch/patch.h, class_table). calls_kind_rtld
 * is for the dynamic loader's own calls. */
extern uint8_t calls_kind[65536], calls_kind_rtld[65536];
void calls_init(void);
enum call_kind call_kind_of(long nr);
/* Return the row's function; NULL: the call is only made. */
call_function *call_function_of(long nr);

/* Let `function` handle the calls `nr`, which are made at home. Pre: no thread makes calls yet. */
void calls_handle(uint16_t nr, call_function *function);

/* From now on intercept calls that close or replace descriptors (CALL_DESCRIPTORS). */
void calls_watch_descriptors(void);

/* Migrate t home for a call that needs its own kernel thread. Returns ACTION_DIRECT. */
long call_at_home(struct thread *t);
/* Make the process native as a whole. Wait until its other threads have left the runtime, but about
 * `timeout_ms` at most (release_wait), and make t's call natively. reason: for the user. */
long call_natively(struct thread *t, struct user_registers *r, const char *reason,
                   uint32_t timeout_ms);

#endif
