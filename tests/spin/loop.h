/* SPDX-License-Identifier: MIT
 *
 * Definitions for the loops of loops_wait.c and loops_work.c. Both files are compiled with every
 * compiler at every level; their functions are called only through the tables.
 *
 */
#ifndef TEST_SPIN_LOOP_H
#define TEST_SPIN_LOOP_H

#include "loops.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#define LOOP(name) static __attribute__((noinline)) unsigned long name(void)
#define pause() __builtin_ia32_pause()
#define MANY 2000000000

static unsigned long limit_tsc = 1ul << 50; /* 100 hours */
static unsigned long seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long)t.tv_sec;
}
static volatile unsigned long later = 1ul << 40;

#endif
