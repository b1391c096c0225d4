/* SPDX-License-Identifier: MIT
 *
 * Detect `lissom sched`, and call it.
 */
#include "sched/ext.h"
#include "sched/thread.h"

#include <fcntl.h>
#include <linux/types.h>

#include "../../bpf/scx_lissom.h"

static bool there;
static uint64_t asked; /* tsc */

bool ext_is_there(void) { return __atomic_load_n(&there, __ATOMIC_RELAXED); }

void ext_park(bool parks, int32_t tid) { prim_syscall3(SYS_sched_yield, SCX_PARK, parks, tid); }

void ext_ask(void)
{
    static const char name[] = "lissom";
    char read[sizeof name - 1] = "";
    uint64_t now = tsc();
    if (asked && now - asked < 1000000 * sched.tsc_per_us)
        return;
    asked = now;
    int fd = prim_open("/sys/kernel/sched_ext/root/ops", O_RDONLY | O_CLOEXEC);
    bool is_ours = fd >= 0 && prim_read(fd, read, sizeof read) == sizeof read;
    for (unsigned i = 0; i < sizeof read; i++)
        is_ours = is_ours && read[i] == name[i];
    if (fd >= 0)
        prim_close(fd);
    __atomic_store_n(&there, is_ours, __ATOMIC_RELAXED);
}
