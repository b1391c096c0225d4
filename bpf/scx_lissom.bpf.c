// SPDX-License-Identifier: GPL-2.0
/* A scheduler for more threads than CPUs: docs/operate/sched.md, docs/design/kernel-scheduler.md.
 *
 * Each CPU has two queues. RUN holds the threads that want to run, in the order of their virtual
 * time. SPIN holds those that were found waiting in a loop, or that yielded. Each is passed over
 * until all that stood in RUN when it came have run. Threads under `lissom run` that wait for
 * another thread of their process are in neither (scx_park.bpf.h).
 *
 * A woken thread goes back to the CPU where it ran last, unless another one is idle. It waits there
 * until the running thread's time is over. So a barrier that wakes 30 threads preempts and migrates
 * none. A CPU without threads steals from the others. A CPU with a much shorter queue than another
 * takes a thread now and then.
 *
 * If anything goes wrong, the kernel returns to its own scheduler: an error here, a thread that
 * does not run for ops.timeout_ms, or the end of the loader. */
#include "scx_shares.bpf.h"
#include "scx_spin.bpf.h"
#include "scx_lissom.h"

char LICENSE[] SEC("license") = "GPL";

enum {
    MAX_CPUS = 1024,
    /* A thread that slept may be ahead of the others by so many slices at most. Otherwise a thread
     * that sleeps for long would run for long. */
    CREDIT_SLICES = 1,
    /* a thread that waits for longer is next, whatever its share: the kernel's watchdog ignores
     * shares */
    PATIENCE_NS = 1000000000,
    CARE_NS = 100000000, /* between two searches for such threads */
};

#define RUN(cpu) ((u64)(cpu))
#define SPIN(cpu) ((u64)(cpu) | 0x10000)

const volatile struct scx_config config SEC(".rodata.config") = {.slice_ns = 3000000,
                                                                 .park_ns = 20000000};
struct scx_exit exit_info SEC(".bss.exit");
u32 nr_cpus;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct scx_state);
} scx_state SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct scx_counts);
} scx_counts SEC(".maps");

/* Changed under the lock of its run queue. */
struct cpu {
    u64 now;          /* virtual time of the thread that has come furthest here */
    u64 runs;         /* threads taken from RUN */
    u32 pass, events; /* of SPIN: see put_aside */
    u64 cared;        /* time of the last search for threads that have waited for too long */
    u64 balanced;     /* time of the last check of another queue */
    u32 probe;        /* the next CPU to check */
    bool is_off;      /* it is offline, or about to be */
    /* there may be threads in SPIN: asking a queue costs more than the rest of a dispatch */
    bool aside;
    /* time of the last search for threads that are parked for too long */
    u64 aged;
    bool hands_on;                    /* a thread has just woken `woken` */
    struct task_struct __kptr *woken; /* the thread to run next */
    u64 left_ns;                      /* rest of the waker's slice */
    int parker;                       /* pid of the waker if it is to be parked, else 0 */
    bool has_stays; /* threads of a bulk wake-up may wait in RUN: scx_wake.bpf.h */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MAX_CPUS);
    __type(key, u32);
    __type(value, struct cpu);
} cpus SEC(".maps");

struct thread {
    u64 vtime;
    u64 queued;          /* when it entered RUN or SPIN */
    u64 moved;           /* when it came to its CPU from another one */
    u64 charged;         /* its sum_exec_runtime up to which vtime is charged */
    s32 cpu;             /* CPU whose virtual time vtime follows; -1: none yet */
    u32 group;           /* index in groups */
    u32 counted;         /* its weight in its group's load; 0: it sleeps */
    bool aside;          /* it enters SPIN next */
    volatile u32 parked; /* enum parking */
    bool in_ring;        /* of the CPU where it was first parked */
    u64 parked_at;
    u64 turn;                  /* struct cpu's `runs` from which on it may be taken from SPIN */
    u32 progress;              /* struct cpu's `events` when it last did something else than wait */
    volatile bool guest_spins; /* scx_vcpu.bpf.h */
    /* scx_wake.bpf.h. When it last woke a thread, its switches by then, and its wake-ups in a row.
     * burst: of a process's first thread, how many threads one of its threads recently woke at
     * once. */
    u64 woke_at, woke_switches;
    u32 wakes, burst;
    struct looked looked;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

static struct thread *thread_of(struct task_struct *p)
{
    return bpf_task_storage_get(&threads, p, NULL, 0);
}

static struct cpu *cpu_at(s32 cpu)
{
    u32 key = cpu;
    return bpf_map_lookup_elem(&cpus, &key);
}

static struct scx_counts *counts(void)
{
    u32 zero = 0;
    return bpf_map_lookup_elem(&scx_counts, &zero);
}

#define COUNT(what) \
    do { \
        struct scx_counts *counts_ = counts(); \
        if (counts_) \
            counts_->what++; \
    } while (0)

/* A bit for each CPU in whose RUN or SPIN threads may wait. So an idle CPU asks no others: to find
 * a queue by its number is a search. Set by a CPU that inserts, cleared by a CPU that finds both
 * empty. The kernel inserts only after lissom_enqueue has returned, so a bit may be cleared just
 * before. The next tick of that CPU sets it again. */
enum { WORDS = MAX_CPUS / 64 };
volatile u64 waiting[WORDS];

static void note_waiting(s32 cpu)
{
    volatile u64 *word = &waiting[(u32)cpu / 64 % WORDS];
    u64 bit = 1ULL << ((u32)cpu % 64);
    /* All CPUs write this line: reading is cheaper. */
    if (!(*word & bit))
        __sync_fetch_and_or(word, bit);
}

static void note_empty(s32 cpu)
{
    volatile u64 *word = &waiting[(u32)cpu / 64 % WORDS];
    u64 bit = 1ULL << ((u32)cpu % 64);
    if (*word & bit)
        __sync_fetch_and_and(word, ~bit);
}

/* Enqueue p in RUN, by virtual time. Pre: cpu is the thread's. */
static void queue_up(struct task_struct *p, struct thread *t, s32 cpu, u64 flags)
{
    t->queued = scx_bpf_now();
    insert_at(p, RUN(cpu), config.slice_ns, t->vtime, flags);
    note_waiting(cpu);
}

/* Return whether p may run on cpu. It may not for a moment while its affinity changes: the kernel
 * then moves it. */
static bool may_run(struct task_struct *p, s32 cpu)
{
    return bpf_cpumask_test_cpu(cpu, scx(p)->cpus_ptr);
}

static bool is_before(u64 a, u64 b) { return (s64)(a - b) < 0; }

static bool any_idle(void)
{
    const struct cpumask *idle = scx_bpf_get_idle_cpumask();
    bool any = !bpf_cpumask_empty(idle);
    scx_bpf_put_idle_cpumask(idle);
    return any;
}

#include "scx_park.bpf.h"
#include "scx_vcpu.bpf.h"
#include "scx_branches.bpf.h"

/* Return the virtual time for running `ns`: the smaller the share, the longer. */
static u64 cost(const struct thread *t, u64 ns)
{
    if (!t->group && t->counted == WEIGHT)
        return ns;
    u64 weight = (u64)(t->counted ?: WEIGHT) * group_share(t->group, scx_bpf_now()) / SHARE_ONE;
    return ns * WEIGHT / (weight ?: 1);
}

#include "scx_wake.bpf.h"

/* Move t's virtual time to the CPU c. t keeps its distance, but after a sleep it is ahead by the
 * credit at most. */
static void settle(struct thread *t, const struct cpu *c, s32 cpu)
{
    struct cpu *from = t->cpu >= 0 ? cpu_at(t->cpu) : NULL;
    if (!from)
        t->vtime = c->now;
    else if (from != c) {
        t->vtime += c->now - from->now;
        t->moved = scx_bpf_now();
    }
    t->cpu = cpu;
    u64 earliest = c->now - CREDIT_SLICES * config.slice_ns;
    if (is_before(t->vtime, earliest))
        t->vtime = earliest;
}

/* Charge t for what it has run since the last time, on the CPU where it ran. */
static void charge(struct task_struct *p, struct thread *t, struct cpu *c, s32 cpu)
{
    u64 ran = scx(p)->se.sum_exec_runtime;
    if (ran == t->charged)
        return;
    settle(t, c, cpu);
    if (is_before(c->now, t->vtime))
        c->now = t->vtime;
    t->vtime += cost(t, ran - t->charged);
    t->charged = ran;
    t->guest_spins = false;
}

/* Count t as runnable. Called here rather than in an operation of its own, for which every wake-up
 * would pay. */
static void account(struct task_struct *p, struct thread *t)
{
    if (t->counted)
        return;
    COUNT(wakeups);
    t->counted = scx(p)->scx.weight ?: WEIGHT;
    group_load(t->group, t->counted, 1);
}

static void account_no_more(struct thread *t)
{
    if (!t->counted)
        return;
    group_load(t->group, t->counted, -1);
    t->counted = 0;
}

/* Enqueue p in SPIN. All its threads run once before one runs again (a pass), and first the one
 * that made progress longest ago. So threads that pass on work run in the order in which they need
 * it, whatever order they came in. */
static void put_aside(struct task_struct *p, struct thread *t, struct cpu *c, s32 cpu, u64 flags)
{
    t->aside = false;
    c->aside = true;
    if (t->looked.is_new) {
        t->looked.is_new = false;
        t->progress = ++c->events;
    }
    t->queued = scx_bpf_now();
    t->turn = c->runs + scx_bpf_dsq_nr_queued(RUN(cpu));
    insert_at(p, SPIN(cpu), config.slice_ns, (u64)(c->pass + 1) << 32 | t->progress, flags);
    note_waiting(cpu);
}

SEC("struct_ops/lissom_enqueue")
void BPF_PROG(lissom_enqueue, struct task_struct *p, u64 flags)
{
    s32 cpu = scx_bpf_task_cpu(p);
    struct thread *t = thread_of(p);
    /* Its run time is charged when it is no longer parked. */
    if (t && t->parked == PARKED && keep(p, t, cpu))
        return;
    struct cpu *c = cpu_at(cpu);
    /* Run kernel threads that are bound to a CPU at once: others wait for them, and they are soon
     * done. */
    if (!t || !c || (p->flags & PF_KTHREAD && scx(p)->nr_cpus_allowed == 1)) {
        insert(p, SCX_DSQ_LOCAL, config.slice_ns, flags);
        return;
    }
    /* A thread that slept has been charged when it went to sleep. */
    if (t->counted)
        charge(p, t, c, cpu);
    settle(t, c, cpu);
    account(p, t);
    if (t->aside)
        put_aside(p, t, c, cpu, flags);
    else
        queue_up(p, t, cpu, flags);
}

#include "scx_steal.bpf.h"

/* Return whether the running thread continues: it is still due more than the first of RUN. */
static bool goes_on(struct task_struct *p, struct thread *t, s32 cpu)
{
    u64 first;
    if (!first_at(RUN(cpu), &first))
        return false;
    u64 vtime = t->vtime + cost(t, scx(p)->se.sum_exec_runtime - t->charged);
    return is_before(vtime, first);
}

/* Run the first of SPIN, if all threads that it had to wait for have run, or no other thread is
 * left. */
static bool take_aside(s32 cpu, struct cpu *c, bool is_alone)
{
    struct bpf_iter_scx_dsq it;
    u64 at = 0;
    bool is_due = false, found = false;
    if (!bpf_iter_scx_dsq_new(&it, SPIN(cpu), 0)) {
        struct task_struct *p = bpf_iter_scx_dsq_next(&it);
        struct thread *t = p ? thread_of(p) : NULL;
        if (t) {
            found = true;
            is_due = is_alone || !is_before(c->runs, t->turn);
            at = scx(p)->scx.dsq_vtime;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    if (!found)
        c->aside = false;
    if (!is_due || !take(SPIN(cpu)))
        return false;
    c->pass = at >> 32;
    return true;
}

/* Run the first thread of the queue that has waited for too long. Returns false if there is
 * none. */
static bool run_late(s32 cpu, u64 queue, u64 now)
{
    struct bpf_iter_scx_dsq it;
    bool done = false;
    if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
        u32 i;
        bpf_for(i, 0, 1 << 20) {
            struct task_struct *p = bpf_iter_scx_dsq_next(&it);
            if (!p)
                break;
            struct thread *t = thread_of(p);
            if (!t || now - t->queued < PATIENCE_NS || !may_run(p, cpu))
                continue;
            done = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
            break;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return done;
}

static bool care(s32 cpu, struct cpu *c)
{
    u64 now = scx_bpf_now();
    if (now - c->cared < CARE_NS)
        return false;
    c->cared = now;
    return run_late(cpu, RUN(cpu), now) || run_late(cpu, SPIN(cpu), now);
}

SEC("struct_ops/lissom_dispatch")
void BPF_PROG(lissom_dispatch, s32 cpu, struct task_struct *previous)
{
    struct cpu *c = cpu_at(cpu);
    if (!c || config.stall)
        return;
    bool hands_on = c->hands_on;
    if (hands_on && hand_on(cpu, c, previous && previous->pid == c->parker))
        return;
    struct thread *t =
        previous && scx(previous)->scx.flags & SCX_TASK_QUEUED ? thread_of(previous) : NULL;
    bool is_parking = t && t->parked == PARKED;
    if (t && (t->aside || is_parking))
        t = NULL;
    /* otherwise the compiler tests something else than the pointer for NULL, which the verifier
     * does not follow */
    barrier_var(t);

    if (hands_on && t) {
        set_slice(previous, c->left_ns);
        return;
    }
    end_old_parking(cpu, c);
    if (care(cpu, c))
        return;
    if (c->aside && take_aside(cpu, c, false))
        return;
    /* The running thread's slice is over, or it yields. */
    if (t) {
        if (goes_on(previous, t, cpu)) {
            set_slice(previous, config.slice_ns);
            return;
        }
        if (balance(cpu, c)) {
            COUNT(steals);
            return;
        }
    }
    if (take(RUN(cpu))) {
        c->runs++;
        wake_thief(cpu, c);
        return;
    }
    /* RUN is empty: the threads to wait for have left, perhaps for another CPU. Checked before the
     * running thread continues, or that would continue for ever. */
    if (c->aside && take_aside(cpu, c, true))
        return;
    if (t) {
        set_slice(previous, config.slice_ns);
        return;
    }
    note_empty(cpu);
    if (steal(cpu)) {
        COUNT(steals);
        return;
    }
    /* No other thread needs the CPU: let parked threads sleep, so that an idle CPU has none to care
     * for. */
    t = is_parking ? thread_of(previous) : NULL;
    if (t && ends_parking(t)) {
        COUNT(park_ends);
        set_slice(previous, config.slice_ns);
    } else if (end_parking(cpu, ~0ULL >> 1, ALL)) {
        take(RUN(cpu));
    }
}

/* p sleeps, or is about to change its class, its group or its affinity. Its run time is charged
 * here and in lissom_enqueue, rather than in an operation called at each switch. The kernel updates
 * sum_exec_runtime only after this, so the last bit counts the next time. */
SEC("struct_ops/lissom_quiescent")
void BPF_PROG(lissom_quiescent, struct task_struct *p, u64 flags)
{
    s32 cpu = scx_bpf_task_cpu(p);
    struct thread *t = thread_of(p);
    struct cpu *c = cpu_at(cpu);
    if (!t || !c)
        return;
    charge(p, t, c, cpu);
    t->aside = false;
    account_no_more(t);
}

/* p's nice value has changed. */
SEC("struct_ops/lissom_set_weight")
void BPF_PROG(lissom_set_weight, struct task_struct *p, u32 weight)
{
    struct thread *t = thread_of(p);
    if (!t || !t->counted)
        return;
    group_load(t->group, t->counted, -1);
    t->counted = weight ?: WEIGHT;
    group_load(t->group, t->counted, 1);
}

/* p leaves for another class, perhaps without having run. */
SEC("struct_ops/lissom_disable")
void BPF_PROG(lissom_disable, struct task_struct *p)
{
    struct thread *t = thread_of(p);
    if (t)
        account_no_more(t);
}

SEC("struct_ops/lissom_enable")
void BPF_PROG(lissom_enable, struct task_struct *p)
{
    struct thread *t = thread_of(p);
    if (!t)
        return;
    t->cpu = -1;
    t->charged = scx(p)->se.sum_exec_runtime;
}

/* sched_yield: run the other threads that are here now first. */
SEC("struct_ops/lissom_yield")
bool BPF_PROG(lissom_yield, struct task_struct *from, struct task_struct *to)
{
    struct thread *t = thread_of(from);
    if (t && !parks(from, t))
        t->aside = true;
    set_slice(from, 0);
    return false;
}

#include "scx_look.bpf.h"
#include "scx_paper.bpf.h"

/* Wake a CPU that has gone idle since threads came to wait behind the running one. */
SEC("struct_ops/lissom_tick")
void BPF_PROG(lissom_tick, struct task_struct *p)
{
    s32 cpu = scx_bpf_task_cpu(p);
    struct cpu *c = cpu_at(cpu);
    if (!c || nr_cpus < 2 || !any_idle() || (!c->aside && scx_bpf_dsq_nr_queued(RUN(cpu)) <= 0))
        return;
    note_waiting(cpu);
    s32 idle = scx_bpf_pick_idle_cpu(scx(p)->cpus_ptr, 0);
    if (idle >= 0)
        scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
}

SEC("struct_ops.s/lissom_init_task")
s32 BPF_PROG(lissom_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    struct thread *t = bpf_task_storage_get(&threads, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!t)
        return -12; /* ENOMEM */
    t->group = group_of(args->cgroup);
    t->parked = TOLD; /* it may have been woken before this scheduler started */
    return 0;
}

#include "scx_cgroups.bpf.h"

/* That these operations exist also shows the kernel that CPUs may come and go. */
SEC("struct_ops/lissom_cpu_online")
void BPF_PROG(lissom_cpu_online, s32 cpu)
{
    struct cpu *c = cpu_at(cpu);
    if (c)
        c->is_off = false;
}

/* Let the kernel move the threads of a queue whose CPU goes offline. Those that may run on no other
 * CPU must be seen by the kernel there, which then lets them run elsewhere. Before that the CPU
 * does not go. */
static void leave(u64 queue, s32 cpu)
{
    struct bpf_iter_scx_dsq it;
    if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
        struct task_struct *p;
        u32 i;
        bpf_for(i, 0, 1 << 20) {
            p = bpf_iter_scx_dsq_next(&it);
            if (!p)
                break;
            if (may_run(p, cpu))
                scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL_ON | cpu, 0);
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
}

SEC("struct_ops/lissom_cpu_offline")
void BPF_PROG(lissom_cpu_offline, s32 cpu)
{
    struct cpu *c = cpu_at(cpu);
    if (!c)
        return;
    c->is_off = true;
    leave(RUN(cpu), cpu);
    leave(SPIN(cpu), cpu);
}

SEC("struct_ops.s/lissom_init")
s32 BPF_PROG(lissom_init)
{
    nr_cpus = scx_bpf_nr_cpu_ids();
    if (nr_cpus > MAX_CPUS)
        return -7; /* E2BIG */
    u32 i;
    bpf_for(i, 0, nr_cpus) {
        s32 error = scx_bpf_create_dsq(RUN(i), -1) ?: scx_bpf_create_dsq(SPIN(i), -1);
        if (error)
            return error;
    }
    return 0;
}

SEC("struct_ops.s/lissom_exit")
void BPF_PROG(lissom_exit, struct scx_exit_info *info)
{
    bpf_probe_read_kernel_str(exit_info.reason, sizeof(exit_info.reason), info->reason);
    bpf_probe_read_kernel_str(exit_info.message, sizeof(exit_info.message), info->msg);
    exit_info.code = info->exit_code;
    __sync_lock_test_and_set(&exit_info.kind, info->kind);
}

SEC(".struct_ops.link")
struct sched_ext_ops lissom_ops = {
    .select_cpu = (void *)lissom_select_cpu,
    .enqueue = (void *)lissom_enqueue,
    .dispatch = (void *)lissom_dispatch,
    .quiescent = (void *)lissom_quiescent,
    .set_weight = (void *)lissom_set_weight,
    .enable = (void *)lissom_enable,
    .disable = (void *)lissom_disable,
    .yield = (void *)lissom_yield,
    .tick = (void *)lissom_tick,
    .init_task = (void *)lissom_init_task,
    .cgroup_init = (void *)lissom_cgroup_init,
    .cgroup_exit = (void *)lissom_cgroup_exit,
    .cgroup_move = (void *)lissom_cgroup_move,
    .cgroup_set_weight = (void *)lissom_cgroup_set_weight,
    .cgroup_set_bandwidth = (void *)lissom_cgroup_set_bandwidth,
    .cpu_online = (void *)lissom_cpu_online,
    .cpu_offline = (void *)lissom_cpu_offline,
    .init = (void *)lissom_init,
    .exit = (void *)lissom_exit,
    .flags = SCX_OPS_ALLOW_QUEUED_WAKEUP,
    .timeout_ms = 5000,
    .name = "lissom",
};
