/* SPDX-License-Identifier: MIT
 *
 * String functions of the runtime beside prim/mem.c. libc's own may not be called yet, and use
 * vector registers.
 */
#ifndef LISSOM_TEXT_H
#define LISSOM_TEXT_H

#include <stdbool.h>
#include <stdint.h>

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

static inline bool same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* Write up to 10 digits and a NUL. Returns the address of the NUL. */
static inline char *write_number(char *to, uint32_t n)
{
    uint32_t unit = 1;
    while (n / unit > 9)
        unit *= 10;
    for (; unit; unit /= 10)
        *to++ = (char)('0' + n / unit % 10);
    *to = 0;
    return to;
}

#endif
