/* SPDX-License-Identifier: MIT
 *
 * memcpy and the like for the runtime, hidden. The compiler emits calls to them for large
 * assignments even in freestanding code. libc's own are reached through the PLT and an ifunc, which
 * may not be relocated yet when an audit or an early constructor runs. They also use vector
 * registers, which the runtime must not change.
 *
 * Compile with -fno-builtin -fno-tree-loop-distribute-patterns, or gcc turns these loops into calls
 * to themselves.
 */
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t n);
HIDDEN void *memmove(void *to, const void *from, size_t n);
HIDDEN void *memset(void *to, int byte, size_t n);
HIDDEN int memcmp(const void *a, const void *b, size_t n);
HIDDEN size_t strlen(const char *s);

/* From this size on use string instructions, which cost 30 cycles or more before the first byte.
 * They need the direction flag clear. The ABI guarantees that at function entry, and the kernel
 * clears it for signal handlers. */
#define BULK 512

typedef uint64_t __attribute__((may_alias, aligned(1))) word;

static inline void copy_forward(void *to, const void *from, size_t n)
{
    if (n >= BULK) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
        return;
    }
    unsigned char *d = to;
    const unsigned char *s = from;
    for (; n >= 8; n -= 8, d += 8, s += 8)
        *(word *)d = *(const word *)s;
    while (n--)
        *d++ = *s++;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    copy_forward(to, from, n);
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    /* One unsigned comparison: true if `to` is before `from`, or not before its end. Copying
     * forward is right for both, also by words: a word is read before anything behind its first
     * byte is written. */
    if ((uintptr_t)to - (uintptr_t)from >= n) {
        copy_forward(to, from, n);
    } else {
        /* Not `std; rep movsb`: it is slow on every CPU. */
        unsigned char *d = to;
        const unsigned char *s = from;
        while (n--)
            d[n] = s[n];
    }
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    if (n >= BULK) {
        void *d = to;
        __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(byte) : "memory");
        return to;
    }
    uint64_t v = (unsigned char)byte * 0x0101010101010101ull;
    unsigned char *d = to;
    for (; n >= 8; n -= 8, d += 8)
        *(word *)d = v;
    while (n--)
        *d++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

size_t strlen(const char *s)
{
    const char *p = s;
    while (*p)
        p++;
    return (size_t)(p - s);
}
