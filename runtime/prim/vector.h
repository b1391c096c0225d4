/* SPDX-License-Identifier: MIT
 *
 * What CPU and kernel have to have for threads to be switched in user space. `lissom doctor` asks
 * here, too.
 */
#ifndef LISSOM_VECTOR_H
#define LISSOM_VECTOR_H

#include <stdint.h>

enum vector_verdict {
    VECTOR_FITS,        /* a switch can save and restore all that a thread has */
    VECTOR_NO_FSGSBASE, /* nor can it set a thread's TLS */
    VECTOR_NO_XSAVEC,
    VECTOR_TOO_LARGE, /* larger than there is room for */
};

/* Bytes that XSAVEC is given: 11 KiB with the tiles of AMX. Of a thread that does not use them it
 * touches 1 or 3. */
enum { VECTOR_ROOM = 12288 };

/* hwcap2: of the auxiliary vector. *mask: what XSAVEC is to save, all that the kernel has
 * enabled. */
enum vector_verdict vector_state(uint64_t hwcap2, uint64_t *mask);

/* Returns those components of `mask` that only XSAVEC saves at a switch. Returns all ones if the
 * CPU cannot say which are in use (XGETBV(1)): then XSAVEC saves everything. */
uint32_t vector_slow(uint64_t mask);

#endif
