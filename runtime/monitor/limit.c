/* SPDX-License-Identifier: MIT
 *
 * The number of slots that there should be: the CPUs of the affinity mask, but at most the CPU
 * quota of the process's cgroups, and at most --cpus. Cpusets and offline CPUs limit the mask.
 *
 * All of these change from outside while the program runs. The monitor checks them twenty times a
 * second while threads of the program run; a check takes 15 us. It reads its own mask: `taskset -a`
 * and cpusets change the mask of every thread, and the monitor is never bound to a slot's CPU.
 * While the process is confined (sched/bind.c), so is the monitor: its CPU time counts towards the
 * quota, too. Then there is an additional thread whose mask it reads (cpus/sentinel.c).
 */
#include "monitor/limit.h"
#include "cpus/cgroup.h"
#include "monitor/manager.h"
#include "monitor/peers.h"
#include "sched/bind.h"
#include "sched/contention.h"

static uint32_t asked_for; /* --cpus; 0: not given */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Returns whether the mask has all CPUs that are allowed, rather than a chosen set. It should then
 * grow when more are allowed. */
static bool is_all_allowed(const struct cpu_mask *m)
{
    static struct cpu_mask allowed;
    if (!cgroup_cpuset(&allowed))
        return false;
    for (uint32_t i = 0; i < m->bytes / 8; i++)
        if (allowed.word[i] & ~m->word[i])
            return false;
    return true;
}

static struct cpu_mask mask; /* at the last check */
static uint32_t quota;

static uint32_t last, last_whole; /* limits found by the last check */

/* Returns n, but at most the quota and --cpus. */
static uint32_t bounded(uint32_t n, uint32_t by_quota)
{
    n = by_quota ? least(n, by_quota) : n;
    return asked_for ? least(n, asked_for) : n;
}

static uint32_t limit_by_mask(void)
{
    if (!mask.bytes)
        return sched.slots ? sched.slots : 1;
    quota = cgroup_quota_cpus(); /* before cgroup_cpuset, which uses the groups found here */
    /* A cpuset that is being changed may look like a choice: its file is changed first. That lasts
     * until the masks of its threads are changed, too. */
    if (!cpus_is_mask(&mask))
        cpus_mask_is(&mask, is_all_allowed(&mask));
    uint32_t cpus = cpus_count(&mask), n = least(cpus ? cpus : 1, LISSOM_MAX_SLOTS);
    uint32_t limit = bounded(n, quota);
    __atomic_store_n(&last, limit, __ATOMIC_RELAXED);
    __atomic_store_n(&last_whole, bounded(n, quota ? cgroup_quota_whole() : 0), __ATOMIC_RELAXED);
    return limit;
}

uint32_t cpus_limit_last(bool whole)
{
    uint32_t n = __atomic_load_n(whole ? &last_whole : &last, __ATOMIC_RELAXED);
    return n ? n : 1;
}

uint32_t cpus_limit(void)
{
    cpus_mask_now(&mask);
    return limit_by_mask();
}

/* Returns whether the quota may stop threads that run on all of n slots. */
static bool quota_bounds(uint32_t n) { return quota && quota <= n; }

uint32_t cpus_share(uint32_t limit)
{
    if (!mask.bytes)
        return limit;
    /* inform both, whichever decides */
    uint32_t among_peers = peers_share(limit, &mask, quota), target = manager_target(limit, &mask);
    return target ? least(target, limit) : among_peers;
}

void cpus_settle(uint32_t n, uint32_t limit)
{
    /* With fewer slots than the limit, others use the rest, and the kernel knows where they run. */
    bool others =
        n < limit || contended(tsc()) || __atomic_load_n(&sched.threads, __ATOMIC_RELAXED) <= n;
    const struct cpu_mask *told = manager_cpus(&mask, n);
    if (n >= cpus_count(&mask)) {
        cpus_each_slot_its_own();
        if (others)
            cpus_unbind_all();
    } else if (told || !others)
        cpus_confine(n, told ? told : &mask);
    else
        cpus_free();
    cpus_team_places(__atomic_load_n(&sched.threads, __ATOMIC_RELAXED) <= n);
    contention_bounded(n < limit);
    contention_by_quota(quota_bounds(n));
}

struct beside_share cpus_beside_others(uint32_t n, uint32_t limit)
{
    bool may_exceed = n == limit && mask.bytes && !quota && !asked_for && !peers_any();
    return (struct beside_share){n, may_exceed && !manager_is_there()};
}

bool cpus_may_be_throttled(void) { return quota_bounds(sched.slots); }

uint32_t cpus_init(uint32_t option, bool as_loaded)
{
    asked_for = option;
    if (as_loaded && cpus_at_load()->bytes)
        mask = *cpus_at_load();
    else
        cpus_mask_now(&mask);
    uint32_t n = limit_by_mask();
    cpus_settle(n, n);
    return n;
}
