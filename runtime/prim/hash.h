/* SPDX-License-Identifier: MIT
 *
 * FNV-1a, one piece at a time. Processes that compare hashes have to cut the data into the same
 * pieces.
 */
#ifndef LISSOM_HASH_H
#define LISSOM_HASH_H

#include <stdint.h>

#define HASH_BEGIN 0xcbf29ce484222325ull

static inline uint64_t hash_add(uint64_t hash, uint64_t piece)
{
    return (hash ^ piece) * 0x100000001b3;
}

/* Finish a hash. Never returns 0, which stands for none. */
static inline uint64_t hash_end(uint64_t hash) { return hash ? hash : 1; }

#endif
