/* SPDX-License-Identifier: MIT
 *
 * How long to poll before a CPU with nothing to run is given up: the rule of KVM's halt polling
 * (grow_halt_poll_ns, shrink_halt_poll_ns and their use in kvm_vcpu_halt), as a pure function.
 *
 * A wait that ended while it was polled for, or would have a little later, was short: polling is
 * worth it, and a longer window would have caught it. One that lasted longer than any window may be
 * is not to be polled for.
 */
#ifndef LISSOM_IDLE_HALTPOLL_H
#define LISSOM_IDLE_HALTPOLL_H

#include <stdint.h>

/* Use of an idle CPU; the names are those of the SMT study (Wang et al.). While other programs want
 * the CPUs, all three are IDLE_SLEEP. */
enum idle_policy {
    IDLE_HALTPOLL, /* poll for work for a time that follows the waits */
    IDLE_SLEEP,    /* give the CPU up at once: "vanilla" */
    IDLE_POLL,     /* poll until there is work */
};

enum {
    HALTPOLL_GROW_START_NS = 10000, /* the first window */
    HALTPOLL_GROW = 2,              /* each further one is so many times as long */
    HALTPOLL_SHRINK = 2,            /* or this part of it; less than the first window: none */
};

/* A wait took `waited` ns, with a window of `window` ns and windows of up to `max` allowed. Post:
 * the next window, at most max. */
static inline uint32_t haltpoll_next(uint32_t window, uint64_t waited, uint32_t max)
{
    if (window > max)
        window = max;
    if (waited <= window)
        return window;
    if (waited >= max)
        return window / HALTPOLL_SHRINK < HALTPOLL_GROW_START_NS ? 0 : window / HALTPOLL_SHRINK;
    uint64_t grown = (uint64_t)window * HALTPOLL_GROW;
    if (grown < HALTPOLL_GROW_START_NS)
        grown = HALTPOLL_GROW_START_NS;
    return grown > max ? max : (uint32_t)grown;
}

#endif
