/* SPDX-License-Identifier: MIT
 *
 * The monitor keeps a memfd open in its own descriptor table, and writes a copy of the process's
 * statistics to it. A process that may inspect this one finds it below /proc/PID/task/TID/fd; no
 * other process can. A memfd has no path: there is nothing to guess, to clean up or to squat, and
 * containers do not matter.
 *
 * The file is written, not mapped: nothing that is done to it can affect the program. It is sealed,
 * so readers may map it.
 */
#include "monitor/publish.h"
#include "prim/prim.h"
#include "prim/clock.h"
#include "sched/profile.h"
#include "sched/thread.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

enum { PERIOD_US = 100000 };

static struct {
    bool forbidden;
    int fd;         /* -1: none yet */
    uint64_t after; /* tsc: time of the next write */
    struct lissom_live copy;
} live = {.forbidden = true, .fd = -1};

void publish_begin(bool own_descriptors)
{
    live.forbidden = !own_descriptors;
    live.fd = -1; /* the old descriptor table is gone */
    live.after = 0;
}

void publish_limit(uint32_t limit) { live.copy.limit = limit; }

/* Open the memfd, unless it is open. Returns false if that is impossible; it is not tried again. */
static bool is_open(void)
{
    if (live.fd >= 0 || live.forbidden)
        return live.fd >= 0;
    prim_syscall3(SYS_prctl, PR_SET_NAME, LISSOM_MONITOR_NAME, 0);
    int fd =
        (int)prim_syscall3(SYS_memfd_create, LISSOM_LIVE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0);
    live.forbidden =
        fd < 0 || prim_syscall3(SYS_ftruncate, fd, sizeof live.copy, 0) ||
        prim_syscall3(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    if (live.forbidden && fd >= 0)
        prim_close(fd);
    live.fd = live.forbidden ? -1 : fd;
    return !live.forbidden;
}

static void write_down(bool asleep)
{
    struct lissom_live *l = &live.copy;
    if (!is_open())
        return;
    l->magic = LISSOM_LIVE_MAGIC;
    l->version = LISSOM_LIVE_VERSION;
    l->bytes = sizeof *l;
    l->heartbeat = clock_ns(CLOCK_MONOTONIC);
    l->is_asleep = asleep;
    l->is_native = __atomic_load_n(&sched.native_waits, __ATOMIC_RELAXED);
    l->threads = __atomic_load_n(&sched.threads, __ATOMIC_RELAXED);
    l->slots = slots_open();
    l->demand = slots_demand(&l->running);
    l->lock_every = PROFILE_EVERY;
    profile_read(l->lock);
    memcpy(&l->record, record, sizeof l->record);
    prim_pwrite(live.fd, l, sizeof *l, 0);
}

void publish_now(void)
{
    uint64_t now = tsc();
    if (now < live.after)
        return;
    live.after = now + PERIOD_US * sched.tsc_per_us;
    write_down(false);
}

void publish_asleep(void) { write_down(true); }
