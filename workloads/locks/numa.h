/* SPDX-License-Identifier: MIT */
// The NUMA node of a thread: the real one, or the one to assume.
#ifndef LISSOM_WORKLOADS_NUMA_H
#define LISSOM_WORKLOADS_NUMA_H

#include <sched.h>

#include "lock.h"

static long numa_node(const struct lock_node *self) {
    unsigned cpu, node;
    if (self->numa >= 0)
        return self->numa;
    return getcpu(&cpu, &node) == 0 ? (long)node : 0;
}

#endif
