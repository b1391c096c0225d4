/* SPDX-License-Identifier: MIT
 *
 * How many slots there are to be: the CPUs of the affinity mask, which cpusets and unplugged CPUs bound, but no more than the CPU quota of the
 * process's cgroups is worth, nor than --cpus.
 *
 * All of these change from outside while the program runs. The monitor looks ten times a second while any thread of the program runs: 15 us. Its own
 * mask is what it looks at, since `taskset -a` and cpusets change every thread's; its own is never bound to a CPU by us.
 */
#include "cpus/cgroup.h"
#include "cpus/cpus.h"
#include "sched/contention.h"
#include "sched/thread.h"

static uint32_t asked_for; /* --cpus; 0: not given */

static uint32_t count_cpus(const struct cpu_mask *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->bytes / 8; i++)
        n += (uint32_t)__builtin_popcountll(m->word[i]);
    return n;
}

/* Whether the mask is all that the process may have, rather than chosen by somebody: it is then to grow when more is allowed. */
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

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

uint32_t cpus_limit(bool *changed)
{
    static struct cpu_mask now;
    cpus_own_mask(&now);
    if (!now.bytes)
        return sched.slots ? sched.slots : 1;
    uint32_t quota = cgroup_quota_cpus(); /* before is_all_allowed, which looks at the same groups */
    *changed = !cpus_is_mask(&now);
    if (*changed)
        cpus_mask_is(&now, is_all_allowed(&now));
    uint32_t cpus = count_cpus(&now), n = least(cpus ? cpus : 1, LISSOM_MAX_SLOTS);
    n = quota ? least(n, quota) : n;
    n = asked_for ? least(n, asked_for) : n;
    cpus_may_bind(n >= cpus ? BIND_TO_ITS_OWN : BIND_WHERE_IT_IS);
    contention_by_quota(quota && quota <= n);
    return n;
}

uint32_t cpus_init(uint32_t option)
{
    bool changed;
    asked_for = option;
    return cpus_limit(&changed);
}
