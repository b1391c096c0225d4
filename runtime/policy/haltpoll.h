/* SPDX-License-Identifier: MIT
 *
 * How long to poll before an idle CPU is given up: the rule of KVM's halt polling
 * (grow_halt_poll_ns, shrink_halt_poll_ns and their use in kvm_vcpu_halt), as a pure function.
 *
 * A wait that ends while it is polled for, or a little later, is short: polling is worthwhile, and
 * a longer window catches more of them. A wait longer than the longest window is not worth polling
 * for.
 */
#ifndef LISSOM_HALTPOLL_H
#define LISSOM_HALTPOLL_H

#include <stdint.h>

/* Use of an idle CPU. The names are those of the SMT study (Wang et al.). While other programs want
 * the CPUs, all policies act as IDLE_SLEEP. */
enum idle_policy {
    IDLE_HALTPOLL, /* poll for work during a window that follows the waits */
    IDLE_SLEEP,    /* give up the CPU at once: "vanilla" */
    IDLE_POLL,     /* poll until there is work */
};

enum {
    HALTPOLL_GROW_START_NS = 10000, /* first window */
    HALTPOLL_GROW = 2,              /* factor to the next longer window */
    HALTPOLL_SHRINK = 2,            /* divisor to the next shorter one; below the first window: 0 */
};

/* Returns the next window in ns, at most `max`, after a wait of `waited` ns with a window of
 * `window` ns. */
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
