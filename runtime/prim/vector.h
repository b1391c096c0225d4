/* SPDX-License-Identifier: MIT
 *
 * Requirements on CPU and kernel for switching threads in user space. `lissom doctor` asks here,
 * too.
 */
#ifndef LISSOM_VECTOR_H
#define LISSOM_VECTOR_H

#include <stdint.h>

enum vector_verdict {
    VECTOR_FITS,        /* a switch can save and restore all of a thread's state */
    VECTOR_NO_FSGSBASE, /* nor can user space set a thread's TLS */
    VECTOR_NO_XSAVEC,
    VECTOR_TOO_LARGE, /* the state exceeds VECTOR_ROOM */
};

/* Size of the save area for XSAVEC in bytes: 11 KiB with the tiles of AMX. A thread that does not
 * use them touches 1 or 3 KiB of it. */
enum { VECTOR_ROOM = 12288 };

/* Return whether threads can be switched in user space. hwcap2: from the auxiliary vector. *mask:
 * components that XSAVEC has to save, all that the kernel has enabled. */
enum vector_verdict vector_state(uint64_t hwcap2, uint64_t *mask);

/* Return the components of `mask` that a switch can save by XSAVEC only. Returns all ones if the
 * CPU cannot report which are in use (XGETBV(1)): then XSAVEC saves everything. */
uint32_t vector_slow(uint64_t mask);

#endif
