/* SPDX-License-Identifier: MIT
 *
 * The mask with which the process was executed. libgomp binds the main thread to the first place of
 * OMP_PLACES in its constructor, so the mask is read in ours, which runs first (-z initfirst).
 * Before glibc 2.34 libpthread's takes that turn, and ours may run after libgomp's. Then the
 * parent's mask stands in, unless this process has a CPU that is not among those.
 *
 * To read it when this object is relocated, by the resolver of an indirect function, would always
 * be early enough. But other loaders know no such relocation, and end the program: musl's, where
 * the library is preloaded by a path without $LIB.
 */
#include "cpus/cpus.h"
#include "prim/prim.h"

static struct cpu_mask at_load;

static void read_mask(long process, struct cpu_mask *m)
{
    long bytes = prim_syscall3(SYS_sched_getaffinity, process, sizeof m->word, m->word);
    m->bytes = bytes > 0 ? (uint32_t)bytes : 0;
}

void cpus_loaded(bool is_late)
{
    static struct cpu_mask parents;
    read_mask(0, &at_load);
    if (!is_late)
        return;
    read_mask(prim_syscall3(SYS_getppid, 0, 0, 0), &parents);
    for (uint32_t i = 0; i < CPU_MASK_WORDS; i++)
        if (at_load.word[i] & ~parents.word[i])
            return;
    at_load = parents;
}

const struct cpu_mask *cpus_at_load(void) { return &at_load; }
