/* SPDX-License-Identifier: MIT
 *
 * How many slots a program is to have beside others that take no part in sharing: docs/sharing.md,
 * Neighbours. Pure functions of what was measured (monitor/neighbours.c).
 *
 * A thread that loses its CPU to another program holds up all threads that wait for it, whose slots
 * stand idle meanwhile. If all slots together use less CPU time than fewer would be offered, there
 * are fewer, and a ready thread then waits for no other one. A program whose threads only compute
 * has the opposite trouble: natively the kernel would give each of them a share, and here only each
 * slot gets one. If all slots use what they are offered, there are more slots than CPUs, as long as
 * the program gets more CPU time by them.
 */
#ifndef LISSOM_BESIDE_H
#define LISSOM_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

enum { BESIDE_CPU = 1000 }; /* unit of CPU time: thousandths of what one CPU has */

/* All zero at first. */
struct beside {
    uint32_t slots;    /* there are to be; 0: as many as without others */
    uint32_t before;   /* CPU time used before the last step to more slots than CPUs */
    uint32_t exceeded; /* so many slots, more than CPUs, were of use; 0: none */
    uint32_t hold_us;  /* for how long no more slots are tried, ... */
    uint64_t retry_us; /* ... and until when */
    bool tries;        /* there are more since the last look */
    /* looks in a row without others, although there were some with so few slots */
    uint32_t calm;
};

/* The slots of a program that competes with no others. */
struct beside_share {
    uint32_t slots;  /* at least 1 */
    bool may_exceed; /* nothing but the number of CPUs bounds these */
};

/* Since the last look. */
struct beside_look {
    uint64_t now_us;
    uint32_t slots;         /* there are */
    bool others;            /* its threads have waited for CPUs */
    uint32_t used, offered; /* CPU time: of the program; of one slot, if it always had work */
    uint32_t threads;       /* that run or are ready */
};

/* Returns whether b->slots has changed. */
bool beside_look(struct beside *b, const struct beside_look *look,
                 const struct beside_share *share);
/* How many slots there are to be: at least 1. */
uint32_t beside_slots(const struct beside *b, const struct beside_share *share);

#endif
