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
    uint64_t offset, inode; /* of the file; inode 0: anonymous */
    const char *name;       /* not terminated; valid during the call */
    uint32_t name_length;
    bool stack; /* the main thread's, which grows downwards */
    bool heap;  /* of brk(2) */
};

/* Where the runtime may map memory: in [MAPS_LOWEST, MAPS_HIGHEST), and out of the way of the main
 * thread's stack, which may grow by MAPS_STACK_ROOM. Other stacks do not grow. */
#define MAPS_LOWEST 0x10000ul /* vm.mmap_min_addr as distributions set it */
/* a page below the end of user addresses, as CPUs with a sysret bug need */
#define MAPS_HIGHEST 0x7fffffffe000ul
#define MAPS_STACK_ROOM (256ul << 20)

/* Call f for each mapping in order of address, until it returns false. Returns false if the list
 * could not be read to its end, or to where f stopped. Maps 64 KiB during the call. */
bool maps_walk(bool (*f)(void *argument, const struct mapping *m), void *argument);

#endif
