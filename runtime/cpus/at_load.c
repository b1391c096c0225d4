/* SPDX-License-Identifier: MIT
 *
 * The mask with which the process was executed. libgomp binds the main thread to the first place of
 * OMP_PLACES in its constructor, so the mask is read in ours, which runs first (-z initfirst).
 * Before glibc 2.34 libpthread's takes that turn, and such a process runs natively (lissom.c).
 *
 * To read it when this object is relocated, by the resolver of an indirect function, would always
 * be early enough. But other loaders know no such relocation, and end the program: musl's, where
 * the library is preloaded by a path without $LIB.
 */
#include "cpus/cpus.h"
#include "prim/prim.h"

static struct cpu_mask at_load;

void cpus_loaded(void)
{
    long bytes = prim_syscall3(SYS_sched_getaffinity, 0, sizeof at_load.word, at_load.word);
    at_load.bytes = bytes > 0 ? (uint32_t)bytes : 0;
}

const struct cpu_mask *cpus_at_load(void) { return &at_load; }
