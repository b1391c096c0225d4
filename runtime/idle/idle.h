/* SPDX-License-Identifier: MIT
 *
 * What a slot does that has nothing to run: docs/polling.md.
 */
#ifndef LISSOM_IDLE_H
#define LISSOM_IDLE_H

#include <stdint.h>

struct slot;

/* Of the SMT study (Wang et al.). While others want the CPUs all three are IDLE_SLEEP. */
enum idle_policy {
    IDLE_HALTPOLL, /* looks for work for a while that follows the waits: haltpoll.h */
    IDLE_SLEEP,    /* gives the CPU up at once: "vanilla" */
    IDLE_POLL,     /* looks for work until there is some */
};

/* Slot s, idle since it gave up polling, has been given something to run. Pre: s->lock. */
void idle_ended(struct slot *s);

#endif
