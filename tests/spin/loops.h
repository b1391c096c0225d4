/* SPDX-License-Identifier: MIT */
#ifndef TEST_SPIN_LOOPS_H
#define TEST_SPIN_LOOPS_H

/* endless, counted, pause only, no wait (or unknown); work for certain; pause only in many
 * samples */
enum { E = 1, C = 2, P = 4, N = 8, W = 16, H = 32 };

struct loop {
    const char *name;
    unsigned expected; /* any of these */
    unsigned long (*run)(void);
    const volatile void *flag; /* if it is E or C: must be in the predicate */
};

extern const struct loop loops_wait[], loops_work[];
extern const unsigned loops_wait_count, loops_work_count;

/* libplt.so */
void plt_pause(void);
int plt_load(const volatile int *p);
#endif
