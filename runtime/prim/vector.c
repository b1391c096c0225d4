/* SPDX-License-Identifier: MIT */
#include "prim/vector.h"

#include <cpuid.h>

enum {
    HWCAP2_FSGSBASE = 2,
    LEGACY = 576, /* x87, SSE and the header, which are always there */
};

static uint32_t bytes_of(uint64_t mask)
{
    uint32_t size = LEGACY;
    for (unsigned i = 2; i < 63; i++) {
        unsigned a, b, c, d;
        if (!(mask & (1ull << i)))
            continue;
        __cpuid_count(0xd, i, a, b, c, d);
        size = (c & 2 ? (size + 63) & ~63u : size) + a;
    }
    return size;
}

enum vector_verdict vector_state(uint64_t hwcap2, uint64_t *mask)
{
    unsigned a, b, c, d, lo, hi;
    *mask = 0;
    if (!(hwcap2 & HWCAP2_FSGSBASE))
        return VECTOR_NO_FSGSBASE;
    if (!__get_cpuid_count(1, 0, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return VECTOR_NO_XSAVEC;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    *mask = ((uint64_t)hi << 32) | lo;
    if (!__get_cpuid_count(0xd, 1, &a, &b, &c, &d) || !(a & 2 /* XSAVEC */))
        return VECTOR_NO_XSAVEC;
    return bytes_of(*mask) <= VECTOR_ROOM ? VECTOR_FITS : VECTOR_TOO_LARGE;
}

uint32_t vector_slow(uint64_t mask)
{
    enum { X87 = 1, SSE = 2, AVX = 4, AVX512 = 7 << 5, PKRU = 1 << 9, XGETBV1 = 4 };
    uint32_t fast = SSE | AVX | PKRU;
    unsigned a, b, c, d;
    if (!__get_cpuid_count(0xd, 1, &a, &b, &c, &d) || !(a & XGETBV1) || mask >> 32)
        return ~0u;
    /* RDPKRU faults unless the kernel has set CR4.PKE, which OSPKE reflects. */
    if ((mask & PKRU) && (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(c & bit_OSPKE)))
        return ~0u;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX512BW)) /* for KMOVQ */
        fast |= AVX512;
    return ((uint32_t)mask & ~fast) | X87;
}
