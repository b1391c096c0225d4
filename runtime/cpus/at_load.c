/* SPDX-License-Identifier: MIT
 *
 * The mask with which the process was executed. libgomp binds the main thread to the first place of
 * OMP_PLACES while it is loaded, before any constructor of ours: so the mask is read when this
 * object is relocated, by the resolver of an indirect function that nobody calls. Nothing may be
 * called there.
 */
#include "cpus/cpus.h"
#include "prim/prim.h"

static struct cpu_mask at_load;

static void nothing(void) {}

static void (*read_mask(void))(void)
{
    long bytes = prim_syscall3(SYS_sched_getaffinity, 0, sizeof at_load.word, at_load.word);
    at_load.bytes = bytes > 0 ? (uint32_t)bytes : 0;
    return nothing;
}

static void resolved_at_load(void) __attribute__((ifunc("read_mask")));
static void (*const volatile reference)(void) = resolved_at_load;

const struct cpu_mask *cpus_at_load(void)
{
    (void)reference;
    return &at_load;
}
