/* SPDX-License-Identifier: MIT
 *
 * What CPU and kernel have to have for threads to be switched in user space. `lissom doctor` asks
 * here, too.
 */
#ifndef LISSOM_VECTOR_H
#define LISSOM_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

enum vector_verdict {
    VECTOR_FITS,        /* a switch can save and restore all that a thread has */
    VECTOR_NO_FSGSBASE, /* nor can it set a thread's TLS */
    VECTOR_NO_XSAVEC,
    VECTOR_TOO_LARGE, /* larger than there is room for */
};

struct vector_state {
    /* what XSAVEC saves: all that the kernel has enabled but AMX tiles (8 KiB; nobody holds one
     * across a futex call) */
    uint64_t mask;
    bool has_amx;
};

/* hwcap2: of the auxiliary vector. */
enum vector_verdict vector_state(uint64_t hwcap2, struct vector_state *v);

#endif
