/* SPDX-License-Identifier: MIT
 *
 * What the affinity mask of the process is, while we have set the masks of all of its threads, and
 * the monitor's. `taskset -a` and cpusets change the mask of every thread, so one is kept whose
 * mask we never touch: what it has is what the process would have. It sleeps for good. Nothing else
 * tells reliably:
 *
 * - The kernel remembers what was set for a thread, gives as much of that as the cpuset allows, or
 *   all that this allows if that is nothing, and does not tell what it remembers. A monitor that
 *   was confined to {1} has {0} while the cpuset is {0}, and {1} when it is {0,1} again: for good,
 *   and as if somebody had chosen that.
 * - Who writes a cpuset changes its file first, and then the masks one by one; on a busy machine
 *   tens of milliseconds later. So whether a mask has become smaller by a cpuset or by somebody's
 *   choice cannot be seen by comparing the two at one moment, nor by trying to set another.
 */
#include "cpus/cpus.h"
#include "prim/kernel_thread.h"
#include "prim/lock.h"
#include "prim/prim.h"

enum { STACK = 512 };
static char stack[STACK] __attribute__((aligned(64)));
static uint32_t alive, dismissed;
static long tid;

static _Noreturn void sentinel(void)
{
    while (!__atomic_load_n(&dismissed, __ATOMIC_SEQ_CST))
        prim_syscall4(SYS_futex, &dismissed, PRIM_FUTEX_WAIT_PRIVATE, 0, 0);
    for (;;)
        prim_syscall3(SYS_exit, 0, 0, 0);
}

bool cpus_sentinel_begins(void)
{
    if (tid)
        return true;
    alive = 1;
    long made = prim_kernel_thread(sentinel, stack + STACK, &alive);
    if (made < 0)
        alive = 0;
    else
        tid = made;
    return made >= 0;
}

void cpus_sentinel_ends(void)
{
    if (!tid)
        return;
    __atomic_store_n(&dismissed, 1, __ATOMIC_SEQ_CST);
    prim_futex_wake(&dismissed, 1);
    prim_kernel_thread_join(&alive, tid);
    tid = dismissed = 0;
}

long cpus_sentinel(void) { return tid; }

void cpus_sentinel_after_fork(void)
{
    tid = 0;
    alive = dismissed = 0;
}
