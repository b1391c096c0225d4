/* SPDX-License-Identifier: MIT
 *
 * The affinity sentinel: a sleeping kernel thread whose mask the runtime never sets. It shows the
 * mask that the process would have, while the runtime has set the masks of all threads and of the
 * monitor (docs/design/cpus.md, Confinement). `taskset -a` and cpusets change the mask of every
 * thread, and so the sentinel's. Nothing else is reliable:
 *
 * - The kernel remembers the mask that was set for a thread, and does not report it. It applies as
 *   much of it as the cpuset allows, or the whole cpuset if that is nothing. A monitor confined to
 *   {1} has {0} while the cpuset is {0}, and {1} when the cpuset is {0,1} again. It then stays at
 *   {1}, as if the user had chosen that.
 * - A writer of a cpuset changes the file first and then the masks one by one, on a busy machine
 *   tens of milliseconds later. So no comparison of file and mask at one moment shows whether the
 *   cpuset or a user's choice has reduced a mask. An attempt to set another mask does not show it
 *   either.
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
