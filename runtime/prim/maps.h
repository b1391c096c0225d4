/* SPDX-License-Identifier: MIT
 *
 * The mappings of the process, as /proc/self/maps lists them.
 */
#ifndef LISSOM_MAPS_H
#define LISSOM_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct mapping {
    uintptr_t lo, hi;
    bool readable, writable, executable, is_private;
    uint64_t offset, inode; /* in the file; 0: anonymous */
    const char *name;       /* not terminated; only during the call */
    uint32_t name_length;
    bool stack; /* the main thread's, which grows downwards */
    bool heap;  /* brk's */
};

/* Where a mapping of our own may be: in [MAPS_LOWEST, MAPS_HIGHEST), and not where it would stop
 * the growth of the main thread's stack. Other stacks are as large as they will ever be. */
#define MAPS_LOWEST 0x10000ul /* vm.mmap_min_addr as distributions set it */
/* a page below the end of user addresses, as CPUs with a sysret bug need */
#define MAPS_HIGHEST 0x7fffffffe000ul
#define MAPS_STACK_ROOM (256ul << 20)

/* f for each mapping in order of address, until it returns false. Post: false if the list could not
 * be read to its end or to where f ended it. Allocates 64 KiB for the time of the call. */
bool maps_walk(bool (*f)(void *argument, const struct mapping *m), void *argument);

#endif
