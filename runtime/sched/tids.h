/* SPDX-License-Identifier: MIT
 *
 * Which thread has a tid: for calls that name one, and for signal handlers on any kernel thread.
 */
#ifndef LISSOM_TIDS_H
#define LISSOM_TIDS_H

#include "sched/thread.h"

/* k has its tid and its home_thread. Pre: all signals are blocked. */
void tids_insert(struct carrier *k);
/* In the child of a fork: nobody else is looking. */
void tids_after_fork(void);

#endif
