/* SPDX-License-Identifier: MIT
 *
 * The affinity mask with which the process was executed. libgomp binds the main thread to the first
 * place of OMP_PLACES in its constructor. So the runtime reads the mask in its own constructor,
 * which runs first (-z initfirst). Before glibc 2.34 libpthread's constructor is first instead, and
 * such a process runs natively (lissom.c).
 *
 * Rejected: to read the mask in the resolver of an indirect function, when this object is
 * relocated. That would always be early enough, but other loaders do not know the relocation and
 * end the program. One is musl's, if the library is preloaded by a path without $LIB.
 */
#include "cpus/cpus.h"
#include "prim/prim.h"

#include <string.h>

static struct cpu_mask at_load;

void cpus_mask_of(struct cpu_mask *m, long tid)
{
    memset(m, 0, sizeof *m);
    long bytes = prim_syscall3(SYS_sched_getaffinity, tid, sizeof m->word, m->word);
    m->bytes = bytes > 0 ? (uint32_t)bytes : 0;
}

void cpus_loaded(void) { cpus_mask_of(&at_load, 0); }

const struct cpu_mask *cpus_at_load(void) { return &at_load; }
