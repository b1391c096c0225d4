/* SPDX-License-Identifier: MIT */
#ifndef LISSOM_CPUS_H
#define LISSOM_CPUS_H

#include <stdint.h>

/* How many CPUs the calling process may use: its affinity mask, which cpusets bound. 1..LISSOM_MAX_SLOTS. */
uint32_t cpus_allowed(void);

#endif
