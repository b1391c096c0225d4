/* SPDX-License-Identifier: MIT */
#ifndef TEST_SPIN_LOOPS_H
#define TEST_SPIN_LOOPS_H

/* Expected verdicts: endless, counted, pause-only, no-wait or unknown. W: certainly works. H:
 * pause-only in many samples. */
enum { E = 1, C = 2, P = 4, N = 8, W = 16, H = 32 };

struct loop {
    const char *name;
    unsigned expected; /* any of these verdicts */
    unsigned long (*run)(void);
    const volatile void *flag; /* for E and C: the predicate must contain this word */
};

extern const struct loop loops_wait[], loops_work[];
extern const unsigned loops_wait_count, loops_work_count;

/* libplt.so */
void plt_pause(void);
int plt_load(const volatile int *p);
#endif
