/* SPDX-License-Identifier: MIT
 *
 * Map tids to carriers and threads. Lookups take no lock and are async-signal-safe.
 */
#ifndef LISSOM_TIDS_H
#define LISSOM_TIDS_H

#include "sched/thread.h"

/* Add k under k->tid. Pre: k->home_thread is set; all signals are blocked. */
void tids_insert(struct carrier *k);
/* In the child of a fork: reset the locks. */
void tids_after_fork(void);

#endif
