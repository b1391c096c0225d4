/* SPDX-License-Identifier: MIT
 *
 * --visible-cpus: the program sees as many CPUs as it may use, instead of those of the machine.
 * These are the first CPUs of the process's mask, as many as there may be slots (monitor/limit.h).
 * sched_getaffinity(2) answers with them. The kernel's files about CPUs are replaced by copies that
 * list only them. libc's sysconf, get_nprocs and pthread_getaffinity_np ask in one of these ways.
 */
#ifndef LISSOM_VISIBLE_H
#define LISSOM_VISIBLE_H

#include "cpus/cpus.h"

#include <stdbool.h>

/* Called once, before the first patched call, if the option is set. whole: do not count a part of a
 * CPU that a quota leaves. */
void visible_begin(bool whole);

/* Return whether the option is set. */
bool visible_is_limited(void);

/* Remove the CPUs from *m that the program is not to see, if *m is the process's mask. Other masks
 * are the program's own choice. */
void visible_limit(struct cpu_mask *m);

/* Return whether the program may have read `mask` instead of the process's mask. */
bool visible_is(const struct cpu_mask *mask);

#endif
