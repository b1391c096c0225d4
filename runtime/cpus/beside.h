/* SPDX-License-Identifier: MIT
 *
 * The number of slots beside programs that take no part in sharing (docs/design/sharing.md,
 * Neighbours). Pure functions of what monitor/neighbours.c measures.
 *
 * A thread that loses its CPU to another program holds up all threads that wait for it, and their
 * slots stay idle. So there are fewer slots if all slots together use less CPU time than the fewer
 * ones would be offered.
 *
 * A program whose threads only compute has the opposite problem. Natively the kernel gives each
 * thread a share of the CPU; here it gives each slot one. So if all slots use the CPU time that
 * they are offered, there are more slots than CPUs, as long as that gains CPU time.
 */
#ifndef LISSOM_BESIDE_H
#define LISSOM_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

enum { BESIDE_CPU = 1000 }; /* unit of CPU time: 1/1000 of a CPU's */

/* State between checks. Initialize with zeros. */
struct beside {
    uint32_t slots;    /* wanted number of slots; 0: as many as without others */
    uint32_t before;   /* CPU time used before the last step to more slots than CPUs */
    uint32_t exceeded; /* last number of slots above the CPUs that was useful; 0: none */
    uint32_t hold_us;  /* pause before more slots are tried */
    uint64_t retry_us; /* end of that pause */
    bool tries;        /* the last check increased the slots */
    /* 1 + checks without others since others were last seen beside fewer slots than usual; or 0 */
    uint32_t calm;
};

/* The number of slots without other programs. */
struct beside_share {
    uint32_t slots;  /* at least 1 */
    bool may_exceed; /* only the number of CPUs bounds it */
};

/* Measurements since the last check. */
struct beside_look {
    uint64_t now_us;
    uint32_t slots;         /* open now */
    bool others;            /* threads of the program have waited for CPUs */
    uint32_t used, offered; /* CPU time: of the program; of one slot that always has work */
    uint32_t threads;       /* running or ready */
};

/* Update b. Returns whether b->slots has changed. */
bool beside_look(struct beside *b, const struct beside_look *look,
                 const struct beside_share *share);
/* Return the number of slots to have: at least 1. */
uint32_t beside_slots(const struct beside *b, const struct beside_share *share);

#endif
