/* SPDX-License-Identifier: MIT */
#include "options.h"
#include "sched/threshold.h"
#include "monitor/manager.h"
#include "policy/haltpoll.h"
#include "patch/patch.h"
#include "prim/text.h"
#include "sched/thread.h"

#include <string.h>

struct options options = {.stats_fd = -1};

static const char *value_of(char **environment, const char *name)
{
    size_t n = strlen(name);
    for (char **e = environment; *e; e++)
        if (**e == *name && memcmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e + n + 1;
    return NULL;
}

/* Return the number in s if it is 1..max, otherwise 0. */
static uint32_t number(const char *s, uint32_t max)
{
    uint32_t n = 0;
    if (!*s)
        return 0;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || n > max)
            return 0;
        n = n * 10 + (uint32_t)(*s - '0');
    }
    return n <= max ? n : 0;
}

/* Return whether the program asks OpenMP to bind its threads to places. */
static bool openmp_binds(char **environment)
{
    static const char *const names[] = {"OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    const char *v = value_of(environment, "OMP_PROC_BIND");
    if (v && (v[0] == 'f' || v[0] == 'F')) /* false, in upper or lower case */
        return false;
    for (unsigned i = 0; i < sizeof names / sizeof *names && !(v && *v); i++)
        v = value_of(environment, names[i]);
    return v && *v;
}

/* Open the cache in the first private folder of `lissom run` that exists. */
static void open_cache(char **environment)
{
    if (patch_cache_in("/run", "/lissom") ||
        patch_cache_in(value_of(environment, "XDG_RUNTIME_DIR"), "/lissom") ||
        patch_cache_in(value_of(environment, "XDG_CACHE_HOME"), "/lissom"))
        return;
    patch_cache_in(value_of(environment, "HOME"), "/.cache/lissom");
}

bool options_read(char **environment)
{
    const char *v;
    if ((v = value_of(environment, LISSOM_ENV_ENABLE)) &&
        (same(v, "0") || same(v, "off") || same(v, "no") || same(v, "false")))
        return false;
    options.verbose = (v = value_of(environment, LISSOM_ENV_VERBOSE)) && *v && !same(v, "0");
    sched.level = LEVEL_USER;
    if ((v = value_of(environment, LISSOM_ENV_SWITCH))) {
        if (same(v, "kernel"))
            sched.level = LEVEL_KERNEL;
        else if (same(v, "off"))
            return false;
    }
    sched.openmp_binds = openmp_binds(environment);
    sched.poll_for_openmp = (v = value_of(environment, LISSOM_ENV_OPENMP)) && same(v, "poll");
    if ((v = value_of(environment, LISSOM_ENV_SPIN))) {
        sched.misjudge_spinning = same(v, "misjudge");
        sched.detect_spinning = same(v, "auto") || sched.misjudge_spinning;
        sched.observe_spinning = same(v, "observe");
    }
    if ((v = value_of(environment, LISSOM_ENV_SPIN_PERIOD)))
        sched.observe_us = number(v, 1000000);
    if ((v = value_of(environment, LISSOM_ENV_IDLE)))
        sched.idle_policy = same(v, "sleep")  ? IDLE_SLEEP
                            : same(v, "poll") ? IDLE_POLL
                                              : IDLE_HALTPOLL;
    v = value_of(environment, LISSOM_ENV_SPIN_THRESHOLD);
    threshold_init(v && *v && !same(v, "auto"), v ? number(v, THRESHOLD_MAX_NS) : 0);
    manager_paths(value_of(environment, LISSOM_ENV_MANAGER),
                  value_of(environment, "XDG_RUNTIME_DIR"));
    sched.shares = !((v = value_of(environment, LISSOM_ENV_SHARE)) && same(v, "off"));
    if ((v = value_of(environment, LISSOM_ENV_CPUS)))
        options.cpus = number(v, LISSOM_MAX_SLOTS);
    if ((v = value_of(environment, LISSOM_ENV_MAX_THREADS)))
        options.max_threads = number(v, LISSOM_MAX_SLOTS);
    options.malleable = options.max_threads;
    if ((v = value_of(environment, LISSOM_ENV_MALLEABLE))) {
        options.shake_loops = same(v, "shake");
        options.malleable = same(v, "1") || options.shake_loops;
    }
    open_cache(environment);
    options.small_teams = (v = value_of(environment, LISSOM_ENV_OMP_TEAM)) && same(v, "slots");
    options.at_once = (v = value_of(environment, LISSOM_ENV_START)) && same(v, "now");
    if ((v = value_of(environment, LISSOM_ENV_VISIBLE_CPUS)))
        options.visible_cpus = same(v, "slots")   ? SEES_SLOTS
                               : same(v, "floor") ? SEES_WHOLE
                                                  : SEES_MACHINE;
    options.patch_by_mprotect =
        (v = value_of(environment, LISSOM_ENV_PATCH)) && same(v, "mprotect");
    if ((v = value_of(environment, LISSOM_ENV_ACTIVE_THREADS)))
        options.active_threads = number(v, LISSOM_MAX_SLOTS);
    if ((v = value_of(environment, LISSOM_ENV_STATS_FD))) {
        uint32_t fd = number(v, 1 << 20);
        options.stats_fd = fd || same(v, "0") ? (int)fd : -1;
    }
    return true;
}
