/* SPDX-License-Identifier: MIT
 *
 * What the runtime needs of strings beside prim/mem.c: libc's own may not be called yet, and use vector registers.
 */
#ifndef LISSOM_TEXT_H
#define LISSOM_TEXT_H

#include <stdbool.h>

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

static inline bool same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

#endif
