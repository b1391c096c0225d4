/* SPDX-License-Identifier: MIT
 *
 * The file of peers, in shared memory, with an entry for each process. An entry belongs to the
 * process that holds the lock on it; the kernel drops the lock when the process ends, however it
 * ends. Any process of this user may have written the other entries. So numbers are clamped, and
 * old entries do not count. The worst that an entry can do is to leave a program one slot while the
 * entry is kept fresh.
 */
#include "monitor/peers.h"
#include "cpus/cgroup.h"
#include "cpus/cpus.h"
#include "cpus/share.h"
#include "monitor/domain.h"
#include "prim/hash.h"
#include "prim/prim.h"
#include "prim/text.h"
#include "sched/thread.h"
#include "sched/turns.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    AMONG_OTHERS_US = 2900, /* between two checks; a little less than the monitor's tick */
    /* between two checks while more slots are wanted, times the square of the number of programs */
    SQUEEZED_US = 500,
    RARE_US = 12000, /* longest interval: with many programs, little is gained if one leaves */
    ALONE_US = 12000,
    LATELY_US = 200000,  /* others that sleep for less may be back at any moment */
    IDLE_US = 500,       /* without a busy slot for so long, threads are not at a barrier */
    SLEEPERS_US = 24000, /* between two checks of processes whose monitors sleep */
    LATE_US = 30000,     /* without a heartbeat for so long, a process may have ended */
    /* without a heartbeat for so long, a process does not count: it has been stopped */
    EXPIRY_US = 250000,
    TURN_US = 64000,    /* period after which a CPU left over by the division changes owner */
    WEIGH_US = 250000,  /* between two reads of its own weights */
    RETRY_US = 1000000, /* between two attempts without a file, or an entry */
    /* The monitor of a process that sleeps in its turn may sleep for so long. */
    TURNS_EXPIRY_US = 2000000,
    /* Number of checks whose highest demand counts: a barrier makes demand vary between checks. */
    DEMANDS = 3,
};

enum { SLEEPS = 1, SLEEPS_RUNNING = 2 }; /* lissom_peer.asleep */

static struct {
    int fd; /* -1: not open */
    bool forbidden;
    uint32_t self; /* entry; LISSOM_MAX_PEERS: none */
    /* ns: when to try again, or to check that others still find the same file */
    uint64_t retry;
    struct lissom_peer_mask mask;
    struct lissom_peer entry;
    uint32_t demand[DEMANDS], next_demand;
    uint64_t weighed; /* ns: last read of its weights */
    bool any;
    uint64_t lately; /* ns: when there were others */
    uint32_t period_us;
} own = {.fd = -1, .forbidden = true, .self = LISSOM_MAX_PEERS, .period_us = ALONE_US};

static struct lissom_peer peer[LISSOM_MAX_PEERS];

/* Processes whose monitors sleep. */
static struct {
    uint64_t since; /* its heartbeat then; another one: it was awake meanwhile */
    uint32_t pid;
    bool runs;
    uint64_t cpu_time, at, checked; /* ns */
} sleeper[LISSOM_MAX_PEERS];

/* --- the file --------------------------------------------------------------------------------- */

static long lock_entry(int command, uint32_t i, struct flock *lock)
{
    *lock = (struct flock){.l_type = F_WRLCK,
                           .l_whence = SEEK_SET,
                           .l_start = i * (long)sizeof(struct lissom_peer),
                           .l_len = 1};
    return prim_syscall3(SYS_fcntl, own.fd, command, lock);
}

/* Open the file. Returns whether it is there, and this user's alone. */
static bool open_file(void)
{
    char path[64] = LISSOM_PEERS_PATH;
    uint32_t uid = (uint32_t)prim_syscall3(SYS_geteuid, 0, 0, 0);
    write_number(path + strlen(path), uid);
    struct stat about;
    own.fd =
        (int)prim_syscall4(SYS_openat, AT_FDCWD, path,
                           O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (own.fd < 0)
        return false;
    if (prim_syscall3(SYS_fstat, own.fd, &about, 0) == 0 && S_ISREG(about.st_mode) &&
        about.st_uid == uid && !(about.st_mode & 077))
        return true;
    prim_close(own.fd);
    own.fd = -1;
    return false;
}

static bool take_entry(void)
{
    struct flock lock;
    for (uint32_t i = 0; i < LISSOM_MAX_PEERS; i++)
        if (lock_entry(F_OFD_SETLK, i, &lock) == 0) {
            own.self = i;
            return true;
        }
    return false;
}

static bool is_there(uint64_t now)
{
    struct stat about;
    if (own.forbidden || now < own.retry)
        return own.self < LISSOM_MAX_PEERS;
    own.retry = now + RETRY_US * 1000ull;
    if (own.fd >= 0 && (prim_syscall3(SYS_fstat, own.fd, &about, 0) || !about.st_nlink)) {
        prim_close(own.fd);
        own.fd = -1;
        own.self = LISSOM_MAX_PEERS;
    }
    if (own.self < LISSOM_MAX_PEERS)
        return true;
    if (own.fd < 0 && !open_file())
        return false;
    own.entry = (struct lissom_peer){.pid = (uint32_t)sched.pid};
    own.weighed = 0;
    if (prim_syscall4(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &about, 0) == 0)
        own.entry.pid_namespace = about.st_ino;
    memset(sleeper, 0, sizeof sleeper);
    return take_entry();
}

/* --- own entry -------------------------------------------------------------------------------- */

/* Publish the mask. Returns false if it has CPUs for which an entry has no room. */
static bool mask_is(const struct cpu_mask *m)
{
    struct lissom_peer_mask cut;
    for (uint32_t w = LISSOM_PEER_CPUS / 64; w < CPU_MASK_WORDS; w++)
        if (m->word[w])
            return false;
    memcpy(&cut, m->word, sizeof cut);
    if (own.entry.mask_hash && !memcmp(&cut, &own.mask, sizeof cut))
        return true;
    uint64_t hash = HASH_BEGIN;
    own.entry.cpus = 0;
    for (uint32_t i = 0; i < LISSOM_PEER_CPUS / 64; i++) {
        hash = hash_add(hash, cut.word[i]);
        own.entry.cpus += (uint32_t)__builtin_popcountll(cut.word[i]);
    }
    own.mask = cut;
    own.entry.mask_hash = hash_end(hash);
    prim_pwrite(own.fd, &cut, sizeof cut,
                LISSOM_MAX_PEERS * sizeof(struct lissom_peer) + own.self * sizeof cut);
    return true;
}

/* Returns the nice value of the first thread, which renice(1) and start programs set. */
static int32_t own_nice(void)
{
    enum { IDLE = 5, PROCESS = 0, NICE_0 = 20 };
    if (prim_policy(sched.pid) == IDLE)
        return SHARE_NICE_IDLE;
    long got = prim_syscall3(SYS_getpriority, PROCESS, sched.pid, 0);
    return got > 0 ? NICE_0 - (int32_t)got : 0;
}

static void weigh(uint64_t now)
{
    uint32_t weight;
    if (own.weighed && now - own.weighed < WEIGH_US * 1000ull)
        return;
    own.weighed = now;
    own.entry.nice = (int8_t)own_nice();
    own.entry.group = cgroup_weight(&weight);
    own.entry.group_weight = (uint16_t)weight;
}

static void tell(uint64_t now)
{
    own.entry.heartbeat = now;
    prim_pwrite(own.fd, &own.entry, sizeof own.entry, own.self * (long)sizeof own.entry);
}

/* --- other entries ---------------------------------------------------------------------------- */

static bool is_alive(uint32_t i)
{
    struct flock lock;
    return lock_entry(F_OFD_GETLK, i, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Returns whether a thread of a process with a sleeping monitor runs, by its CPU time. Any process
 * in the same PID namespace may read that. */
static bool sleeper_runs(uint32_t i, const struct lissom_peer *p, uint64_t now)
{
    if (p->pid_namespace != own.entry.pid_namespace || !p->pid || p->pid > INT32_MAX)
        return false;
    bool same = sleeper[i].pid == p->pid && sleeper[i].since == p->heartbeat;
    if (same && now - sleeper[i].checked < SLEEPERS_US * 1000ull)
        return sleeper[i].runs;
    uint64_t cpu_time = is_alive(i) ? clock_ns(clock_of_process((int32_t)p->pid)) : 0;
    if (same && now - sleeper[i].at < 10ull * SLEEPERS_US * 1000)
        sleeper[i].runs = cpu_time - sleeper[i].cpu_time > (now - sleeper[i].at) / 4;
    else
        sleeper[i].runs = p->asleep == SLEEPS_RUNNING;
    sleeper[i].runs &= cpu_time != 0;
    sleeper[i].pid = p->pid;
    sleeper[i].since = p->heartbeat;
    sleeper[i].cpu_time = cpu_time;
    sleeper[i].at = sleeper[i].checked = now;
    return sleeper[i].runs;
}

static uint32_t demand_of(uint32_t i, uint64_t now)
{
    const struct lissom_peer *p = &peer[i];
    if (!p->heartbeat || i == own.self || p->heartbeat > now + EXPIRY_US * 1000ull)
        return 0;
    if (p->asleep)
        return sleeper_runs(i, p, now);
    uint64_t age = now > p->heartbeat ? now - p->heartbeat : 0;
    if (!p->demand || age > EXPIRY_US * 1000ull || (age > LATE_US * 1000ull && !is_alive(i)))
        return 0;
    return p->demand < LISSOM_MAX_SLOTS ? p->demand : LISSOM_MAX_SLOTS;
}

/* Returns how much of a demand is for CPUs of this process: the part of their CPUs that is common,
 * rounded up. */
static uint32_t demand_here(uint32_t i, uint32_t demand)
{
    const struct lissom_peer *p = &peer[i];
    if (p->mask_hash == own.entry.mask_hash)
        return demand;
    struct lissom_peer_mask theirs;
    if (prim_pread(own.fd, &theirs, sizeof theirs,
                   LISSOM_MAX_PEERS * sizeof *p + i * sizeof theirs) != sizeof theirs)
        return 0;
    uint32_t common = 0, all = 0;
    for (uint32_t w = 0; w < LISSOM_PEER_CPUS / 64; w++) {
        common += (uint32_t)__builtin_popcountll(theirs.word[w] & own.mask.word[w]);
        all += (uint32_t)__builtin_popcountll(theirs.word[w]);
    }
    return all ? (demand * common + all - 1) / all : 0;
}

/* --- checks ----------------------------------------------------------------------------------- */

static void knows_nobody(void)
{
    own.any = false;
    own.entry.demand = 0;
    own.period_us = ALONE_US;
}

void peers_begin(bool own_descriptors)
{
    own.fd = -1;
    own.self = LISSOM_MAX_PEERS;
    own.retry = 0;
    knows_nobody();
    own.forbidden = !sched.shares || !own_descriptors;
    domain_begin();
}

/* Update the turns of processes that wait for each other. quota: CPUs that the quota is worth; 0:
 * none. --cpus is not meant: it limits this process, not all together. */
static void follow_turns(uint32_t quota, uint64_t now)
{
    bool fresh[LISSOM_MAX_PEERS];
    uint32_t entries = own.self + 1;
    bool any = own.entry.domain || __atomic_load_n(&sched.lone_contended, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < LISSOM_MAX_PEERS; i++) {
        fresh[i] =
            i != own.self && peer[i].heartbeat && /* may be later than `now` */
            now + TURNS_EXPIRY_US * 1000ull - peer[i].heartbeat < 2 * TURNS_EXPIRY_US * 1000ull;
        if (fresh[i] && i >= entries)
            entries = i + 1;
        any |= fresh[i] && peer[i].domain;
    }
    turns_set(entries, quota && quota < own.entry.cpus ? quota : own.entry.cpus);
    if (any)
        domain_follow(&own.entry, own.self, peer, fresh);
}

static struct share_claim claim_of(const struct lissom_peer *p, uint32_t demand)
{
    return (struct share_claim){.want = demand,
                                .weight = share_weight(p->nice),
                                .group = p->group,
                                .group_weight = p->group_weight ? p->group_weight : 1};
}

uint32_t peers_share(uint32_t limit, const struct cpu_mask *mask, uint32_t quota)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (!is_there(now) || !mask_is(mask)) {
        knows_nobody();
        return limit;
    }
    own.demand[own.next_demand++ % DEMANDS] = slots_demand(NULL);
    uint32_t demand = 0;
    for (uint32_t i = 0; i < DEMANDS; i++)
        demand = own.demand[i] > demand ? own.demand[i] : demand;
    own.entry.demand = demand < limit ? demand : limit;
    own.entry.slots = slots_open();
    own.entry.quota_group = quota ? cgroup_quota_group() : 0;
    own.entry.asleep = 0;
    weigh(now);
    tell(now);

    /* In the order of entries, which is the same for all processes. Static: the stack is small. */
    static struct share_claim on_cpus[LISSOM_MAX_PEERS], in_quota[LISSOM_MAX_PEERS];
    uint32_t n_cpus = 0, self_cpus = 0, n_quota = 0, self_quota = 0;
    memset(peer, 0, sizeof peer);
    prim_pread(own.fd, peer, sizeof peer, 0);
    own.any = false;
    for (uint32_t i = 0; i < LISSOM_MAX_PEERS; i++) {
        if (i == own.self) {
            self_cpus = n_cpus;
            on_cpus[n_cpus++] = claim_of(&own.entry, own.entry.demand);
            self_quota = n_quota;
            in_quota[n_quota++] = claim_of(&own.entry, own.entry.demand);
            continue;
        }
        uint32_t other = demand_of(i, now), here = other ? demand_here(i, other) : 0;
        if (here)
            on_cpus[n_cpus++] = claim_of(&peer[i], here);
        if (other && own.entry.quota_group && peer[i].quota_group == own.entry.quota_group)
            in_quota[n_quota++] = claim_of(&peer[i], other);
    }
    follow_turns(quota, now);
    own.any = n_cpus > 1 || n_quota > 1;
    if (own.any)
        own.lately = now;
    uint32_t turn = (uint32_t)(now / (TURN_US * 1000ull));
    uint32_t n = share_of(own.entry.cpus, on_cpus, n_cpus, self_cpus, turn);
    uint32_t of_quota =
        own.entry.quota_group ? share_of(quota, in_quota, n_quota, self_quota, turn) : n;
    n = n < of_quota ? n : of_quota;
    uint32_t of_all = n_cpus > n_quota ? n_cpus : n_quota;
    own.period_us = of_all * of_all * SQUEEZED_US;
    if (own.period_us < AMONG_OTHERS_US && n >= own.entry.demand)
        own.period_us = AMONG_OTHERS_US;
    if (own.period_us > RARE_US)
        own.period_us = RARE_US;
    if (!own.any)
        own.period_us = now - own.lately < LATELY_US * 1000ull ? AMONG_OTHERS_US : ALONE_US;
    return n < limit ? n : limit;
}

static bool is_idle(void) { return own.any && own.entry.demand && !slots_demand(NULL); }

bool peers_are_owed(void)
{
    uint64_t since = __atomic_load_n(&sched.all_idle_since, __ATOMIC_RELAXED);
    if (!is_idle() || (int64_t)(tsc() - since) < (int64_t)(IDLE_US * sched.tsc_per_us))
        return false;
    memset(own.demand, 0, sizeof own.demand);
    return true;
}

uint32_t peers_may_be_owed_us(void) { return is_idle() ? IDLE_US : 0; }

void peers_asleep(void)
{
    uint32_t running;
    if (own.self == LISSOM_MAX_PEERS)
        return;
    slots_demand(&running);
    own.entry.asleep = running ? SLEEPS_RUNNING : SLEEPS;
    memset(own.demand, 0, sizeof own.demand);
    tell(clock_ns(CLOCK_MONOTONIC));
}

uint32_t peers_period_us(void) { return own.period_us; }

bool peers_any(void) { return own.any; }
