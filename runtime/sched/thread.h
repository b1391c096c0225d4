/* SPDX-License-Identifier: MIT
 *
 * Threads, carriers and slots, as docs/design/slots.md defines them: read that page first.
 */
#ifndef LISSOM_THREAD_H
#define LISSOM_THREAD_H

#include "abi.h"
#include "sched/threshold.h"
#include "patch/patch.h"
#include "prim/clock.h"
#include "prim/lock.h"
#include "prim/prim.h"
#include "sched/offsets.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrier;
struct slot;
struct bucket;
struct chain;
struct loop;
struct spin_site;
struct signal_frame;

struct user_registers { /* as switch.S pushes them on the runtime stack */
    long rax, rdi, rsi, rdx, r10, r8, r9;
    long rbx, rbp, r12, r13, r14, r15;
    unsigned long flags, rsp, rip;
};

enum {
    WAIT_WORDS = 16,
    PROOFS = 4,
    PROOF_WORDS = 12,
    PROOF_REGISTERS = 8,
    DEFERRED_MAX = 16,
    PLACE_CPUS = 1024
};

/* T.attach of docs/design/slot-protocol.md. PARKED: as ASLEEP, but the carrier sleeps in ext_park
 * (sched/ext.h). */
enum attach { ATTACHED, ASLEEP, GRANTED, DETACHED, PARKED };

/* An application thread. The assembly accesses the fields up to seldom_turns (offsets.h). */
struct thread {
    uint32_t in_runtime; /* 1 while on the runtime stack: signals are deferred */
    /* nonzero: a signal was deferred or a preemption signal came; check before leaving the
     * runtime */
    volatile uint32_t pending_work;
    void *runtime_stack; /* upper end */
    uintptr_t user_rsp;
    const struct patch_site *site; /* call site of the current system call */
    uintptr_t context_rsp;         /* saved, while the context does not run */
    uintptr_t fsbase;
    void *xsave;         /* saved vector state, while the context does not run */
    uint64_t raise_mask; /* signal mask to restore when deferred signals are sent again */
    /* OpenMP loops (omp/loops.h). Written by this thread only. */
    struct loop *loop;    /* loop that it takes chunks of; NULL: none */
    uint32_t chunks;      /* number of further chunks requested */
    uint32_t at_work;     /* 1: it has a chunk, and counts in loop->working */
    uintptr_t gsbase;     /* saved, while the context does not run */
    uint8_t seldom_turns; /* turns until it enters the runtime at a seldom site (spin/site.h) */

    /* The fields from here to `chain` are those that each wait accesses: they share few cache
     * lines. */
    uint32_t attach; /* enum attach; a futex word */
    int32_t tid;
    struct slot *slot; /* slot held, or the last one held */
    bool has_slot;
    bool computes; /* has used up a slice and not waited since (sched/slices.h) */
    bool pinned;
    /* the kernel has its full signal mask until its next system call (sched/mask.h) */
    bool kernel_has_mask;
    /* runs a handler called in the kernel's frame, which restores the mask and stack of this kernel
     * thread */
    bool in_called_handler;
    bool own_credentials; /* its credentials differ from the process's (sched/identity.h) */
    /* the program gave it a real-time class: it runs natively, without a slot */
    bool real_time;
    bool own_attributes; /* other inheritable attributes differ from the process's */
    bool homing;
    bool deadline;       /* in a timed wait whose time limit its own kernel thread keeps */
    bool interruptible;  /* a signal may end its wait */
    uint8_t interrupted; /* 1: a signal ended its wait; TIMER_ENDED: a timer did (sched/timers.h) */
    uint8_t pin_reason;
    bool openmp;             /* created by an OpenMP runtime */
    bool own_affinity;       /* the program gave it a mask that lacks CPUs of the process */
    bool pinned_by_mask;     /* its affinity mask is the only reason why it is pinned */
    struct carrier *carrier; /* carrier that runs it; valid while ATTACHED */

    struct carrier *home;
    struct thread *next; /* link in a run queue or in a waker's private list */
    uint64_t mounted_at; /* tsc: when it last got a slot; for slices */
    /* slice: tsc, length of its slice if longer than usual; 0: usual. slice_ran: tsc, the part of
     * the slice that it had run when woken threads preempted it. */
    uint64_t slice, slice_ran;
    /* tsc: when polling in place for the coming wait began; 0: it did not poll (sched/poll.c) */
    uint64_t polled_since;
    /* entry of a bucket's queue: under the bucket's lock */
    struct bucket *bucket; /* NULL: in no queue */
    struct thread *wait_next, *wait_prev;
    uintptr_t wait_address;
    uint32_t wait_bitset;
    uint32_t wait_epoch;
    /* Chain that it is in, if the chain's epoch equals wait_epoch; linked by next and wait_prev
     * (futex/chains.h). NULL: none. Written by this thread, or under the chain's lock. */
    struct chain *chain;
    uint64_t wait_since;  /* tsc: when it joined a chain; 0: it joined the queue */
    long nr;              /* number of the current system call */
    uint32_t away_calls;  /* recent calls that made it migrate home (thread_learn) */
    uint32_t plain_waits; /* futex waits since the last such call */

    /* affinity mask that the program set for this team thread (sched/bind.h); 0 bytes: no team
     * thread */
    uint32_t place_bytes;
    uint64_t place[PLACE_CPUS / 64];
    bool affinity_known; /* false: the runtime must not set its mask yet */
    /* Another thread set its affinity or scheduling attributes: it pins or unpins itself at its
     * next system call. */
    bool to_be_pinned;
    uint16_t bound; /* bound to CPU bound - 1; 0: not bound (sched/bind.c) */
    bool was_bound; /* the runtime has set its mask at some time */

    /* timer, under the shard's lock (sched/timers.h): expiry in ns; 0: none */
    uint64_t timer_at;
    struct thread *timer_next, *timer_prev;
    uint8_t timer_shard, timer_clock;

    /* futex word, 1: the events that it waits for may have come (events/events.c) */
    uint32_t events_notified;
    uint32_t events_counted; /* 1: counted in sched.event_watchers */
    struct thread *events_next;

    /* tsc: time that it may run before expired threads (sched/ready.h) */
    int64_t lag;
    /* tsc: when lag was last updated */
    uint64_t lag_at;
    uint64_t charged_at;   /* tsc: run time until then is subtracted from lag */
    uintptr_t kernel_wait; /* address it waits on in the kernel, counted in its bucket */
    bool foreign_wait;     /* counted in futex_foreign_waiters */
    /* mask: signal mask as the program knows it. sigwaits: the signals of never_blocked() that its
     * sigtimedwait(2) waits for (sched/mask.c). */
    uint64_t mask, sigwaits;
    uint64_t call_mask; /* mask of the call that it waits in, if has_call_mask */
    bool has_call_mask;
    /* its current call, if equal to nr, waits with a signal mask of its own (waitmask.h) */
    int16_t mask_call;
    uint8_t clone_state; /* enum clone_state */
    bool clone_clears;   /* its child has no handlers: CLONE_CLEAR_SIGHAND */

    /* SAVE_AREA bytes (frame.h): the state in which it was interrupted outside of the runtime */
    void *save_area;
    bool delivers;              /* once at home, handle the signal of that frame */
    struct signal_frame *saved; /* frame in save_area, while diverted (signals.c) */
    uint64_t credentials;       /* hash of the calls that changed them */
    uint64_t ran_at_release;    /* CPU time (ns) when found late to leave; 0: not yet (release.c) */
    bool restricts;             /* about to restrict the system calls of the process */
    siginfo_t taken;            /* by rt_sigtimedwait(2) for a caller that passed no siginfo */
    stack_t altstack;           /* set by the program for this thread (altstack.h) */

    bool loop_blocked; /* at_work, but without a slot: not counted in loop->working */
    bool loop_alone;   /* in a loop that the runtime leaves alone */
    bool loop_open;    /* libomp: in a loop whose threads may be made to wait */

    /* by the monitor, at its last scan of a slot with several threads: CPU time (ns) */
    uint64_t monitor_cpu_time;
    uint64_t monitor_looked; /* tsc of that scan */
    bool asked_to_step_back;

    bool scan_waited; /* the last scan found it waiting */
    bool scan_works;  /* the last scan found that it certainly works */
    /* A wait found in a loop: it lasts while these words keep their values. Written by this thread
     * before it is on a waiting list. */
    /* entries in use; 0: no wait, or its words are unknown */
    uint32_t wait_words;
    struct wait_word {
        uintptr_t address;
        uint32_t value, mask;
    } wait_word[WAIT_WORDS];
    bool wait_counted;  /* a count may end the wait, too */
    uint32_t counts_on; /* turns before it is parked in a counted wait again (waiting.c) */
    /* The last waits proven at sites (spin/probe.h). */
    struct proof {
        const struct spin_site *site; /* NULL: unused */
        uintptr_t rip;
        uint32_t code_version, inputs;
        uint32_t words, wait_words;
        uint64_t flags, r[PROOF_REGISTERS]; /* values of the inputs, in the order of their bits */
        struct wait_word word[PROOF_WORDS]; /* the wait's own words come first */
    } proof[PROOFS];
    uint32_t proofs_made;
    const struct spin_site *backoff_site;
    /* turns left at backoff_site until the next probe */
    uint32_t backoff_turns;
    uint32_t backoff;            /* probes in a row that showed no wait, up to a maximum */
    struct spin_site *wait_site; /* site of its last hit */
    uint64_t hit_at, wait_began; /* tsc: of that hit, and of the start of its wait there */
    bool goes_on;                /* it has made a turn since a word of that wait changed */
    /* not yet added to the statistics of counted_site: */
    const struct spin_site *counted_site;
    uint32_t site_waits, site_yields, site_short_spins;
    uint32_t skipped;
    uint64_t site_waited;   /* tsc */
    bool spins_first;       /* it spins for a short time first, even if others could run */
    uint32_t looks;         /* round-robin index of the slot that slot_wanted checks */
    uint32_t wait_bound_us; /* maximum time parked */
    uint64_t wait_until;    /* tsc: end of that time; under the slot's lock on a waiting list */
    /* tsc: the last poll with a zero timeout that found nothing, and the first of its series */
    uint64_t polled_at, polls_since;
    /* tsc: the last sched_yield(2), and the first of its series */
    uint64_t yielded_at, yields_since;
    uint64_t gave_way_at;    /* tsc: the last one that switched to another process */
    uint64_t yields_from;    /* hash of the registers at these calls */
    uint32_t yields_unseen;  /* yields since its loop was last probed */
    uint32_t yields_a_look;  /* yields between two probes of its loop */
    uint32_t yields_in_vain; /* consecutive sched_yield(2) at a spin site that did not switch */

    struct thread *all_next; /* link in the list of all threads ever created */
    bool ended;
    struct thread *ended_next; /* link in the list of ended threads to reuse, oldest first */
};

/* The part of a siginfo_t that the kernel fills in. */
struct kept {
    int32_t signo, errno_, code, pad;
    uint64_t field[4];
};

/* A kernel thread that runs application threads. */
struct carrier {
    struct thread *home_thread;
    struct thread *current; /* written by this carrier only; NULL on its own stack */
    int32_t tid;
    bool had_tiles; /* the kernel has allocated room for AMX tiles (frame_make_room) */
    uint32_t park;  /* futex word, 1: an order or a signal has arrived */
    /* its thread has just given its slot to a thread on another carrier; by this carrier only */
    bool handed_on;
    /* tid of the kernel thread of that other carrier while it is still to be woken, else 0; by this
     * carrier only */
    int32_t to_wake;
    struct thread *order;
    struct slot *order_slot;
    void *stack;        /* upper end of its own small stack */
    void *signal_stack; /* SIGNAL_STACK bytes (frame.h) for the kernel's signal frames */
    struct carrier *free_next, *free_prev; /* under sched.free_lock */
    bool on_free;
    struct thread *reserved; /* under sched.free_lock: its home thread, which wants it back */
    struct carrier *reserved_next;
    bool reserved_seen; /* the monitor has seen this reservation */

    /* Signals for its home thread (sched/deferred.h). Written on this kernel thread only, but for
     * preempt_sent. */
    uint32_t deferred_count;
    uint32_t sent_again_count;
    volatile bool unnotified; /* the home thread has not been notified */
    volatile bool closed;     /* the deferred queue is full: deferred_closed_mask() is in force */
    /* Signal mask of the kernel thread or, while closed, the mask to restore: the home thread's,
     * whichever thread runs on this carrier. */
    uint64_t mask;
    bool preempt_sent;                    /* a counted preemption signal is pending here */
    struct kept deferred[DEFERRED_MAX];   /* oldest first */
    struct kept sent_again[DEFERRED_MAX]; /* sent again and not yet delivered */
};

enum clone_state { CLONE_NONE, CLONE_SHARED, CLONE_COPIED }; /* see clone.c */

enum slot_state { SLOT_BUSY, SLOT_POLLING, SLOT_IDLE, SLOT_CLOSED };

/* A slot. The fields are grouped by writer, each group in cache lines of its own: spinning threads
 * of other slots read some of them at each turn. */
struct slot {
    /* written by scheduling on this slot */
    struct lock lock;
    uint32_t ready_count; /* written under lock, read without */
    struct thread *ready_head, *ready_tail;
    /* last active thread of the run queue (sched/ready.h); NULL: none */
    struct thread *active_tail;
    uint32_t active_count;
    /* tsc: since when the first expired thread has waited for active ones; 0: it does not */
    uint64_t active_since;
    uint64_t popped_since;                      /* active_since before the last pop */
    bool popped_expired;                        /* the last pop took an expired thread */
    struct thread *waiting_head, *waiting_tail; /* parked threads: sched/waiting.h */
    uint32_t waiting_count;                     /* written under lock, read without */
    uint32_t overcommit;                        /* number of extra threads; under lock */
    /* tsc: since when parked threads have run before the first ready one; 0: they have not */
    uint64_t passed_since;
    uint64_t hand_on_until;     /* tsc: extra threads hand on their places until then; under lock */
    uint64_t kept_until;        /* tsc: no other slot takes its ready threads until then; a guess */
    struct thread *runner;      /* thread that got the slot last; a hint */
    bool computing;             /* the runner only computes (sched/slices.h); a hint */
    uint32_t schedules;         /* incremented when the slot changes hands or its thread yields */
    struct lost_time lost_time; /* written by the holder of the slot */
    uint32_t spin_yields;       /* calls of slot_yield_spinning */
    /* written seldom */
    uint32_t state __attribute__((aligned(64))); /* enum slot_state; under lock, read without */
    /* polling time before the slot is given up, and its maximum (sched/poll.c); by the holder */
    uint32_t poll_ns, poll_max_ns;
    /* tsc: since when it has had nothing to run; 0: it has, or the wait is not to be learned
     * from */
    uint64_t idle_since;
    /* the runner is to leave, and no thread may come; written under lock, read without */
    bool closed;
    uint32_t index;
    uint32_t cpu; /* where its kernel thread was last seen; a hint */
    /* slot last seen on the same CPU; its own index: none; a hint */
    uint32_t neighbour;
    /* written by its spinning thread */
    /* tsc: last check of the parked threads (sched/park.c) */
    uint64_t looked_at __attribute__((aligned(64)));
    /* alone_at: tsc, last site hit of its thread while no other could run; 0: another could since.
     * alone_since: tsc, start of that time (sched/nap.h). */
    uint64_t alone_at, alone_since;
    uint32_t nap_after_us; /* time alone after which its thread naps */
    uint32_t napping;      /* enum nap_kind; futex word */
    struct thread *napper; /* its napping thread, if that waits for words, too; or NULL */
    /* written by the monitor, scan_after also by scanned threads */
    /* tsc: no scan for busy-waiting before then (spin/scan.c) */
    uint64_t scan_after __attribute__((aligned(64)));
    uint32_t monitor_seen; /* `schedules` at the last scan */
    /* preemptions of its threads since it last scheduled */
    uint32_t monitor_preempts;
    /* tsc: when the monitor last saw it schedule, preempted its threads or granted an extra
     * thread */
    uint64_t monitor_stuck;
    int32_t monitor_tid; /* kernel thread that ran it at the last scan */
    /* CPU time (ns) of that kernel thread at the last scan, and the tsc of that scan */
    uint64_t monitor_cpu_time, monitor_looked;
} __attribute__((aligned(128)));

struct scheduler {
    /* number of open slots: those of lower indices. Changes at run time (slots_resize). */
    uint32_t slots;
    uint32_t slots_made; /* number ever opened */
    uint32_t idle_count;
    uint64_t all_idle_since; /* tsc: when the last slot became idle; a hint */
    uint32_t naps;           /* number of slots whose thread naps */
    uint64_t naps_looked_at; /* tsc of the monitor's last naps_look */
    /* other programs want the CPU of the only running thread, or did a moment ago
     * (monitor/lone.h) */
    bool lone_contended;
    /* tsc ticks of a system call that does nothing (monitor/lone.c) */
    uint32_t call_tsc;
    bool neighbours;       /* others want the CPUs of running threads (monitor/neighbours.h) */
    uint32_t crowd;        /* each running thread gets 1/crowd of a CPU; at least 1 */
    uint32_t threads;      /* alive */
    bool has_made_threads; /* ever, in this process */
    int32_t pid;
    bool native_waits; /* given up: threads wait in the kernel only */
    bool active;       /* patched and scheduling */
    /* The first thread has state that the kernel keeps per kernel thread; until it registers. */
    bool first_is_tied;
    bool uses_rseq;         /* the program uses glibc's rseq areas (runtime/rseq.h) */
    bool user_switch;       /* this machine supports switching in user space */
    uint8_t level;          /* enum level */
    bool detect_spinning;   /* threads that wait in a loop give way */
    bool misjudge_spinning; /* for tests: all scanned threads give way */
    bool observe_spinning;  /* waits in loops are only counted */
    uint32_t observe_us;    /* us between two scans of a slot; 0: the default */
    bool traced;            /* a debugger was attached at the monitor's last check */
    bool shares;            /* shares CPUs with other programs under lissom (monitor/peers.c) */
    uint8_t idle_policy;    /* enum idle_policy */
    bool poll_for_openmp;   /* slots poll in place of OpenMP's own spinning */
    bool openmp_binds;      /* the program asks OpenMP to bind its threads to places */
    uint64_t tsc_per_us;
    struct lock free_lock;
    struct carrier *free_head, *reserved_head;
    uint32_t monitor_started;
    /* futex word, 1: threads may be ready; otherwise how the monitor sleeps (monitor.c) */
    uint32_t monitor_word;
    struct slot slot[LISSOM_MAX_SLOTS];
    /* Written by threads that wait for events (docs/design/event-loops.md). event_watchers: how
     * many rely on other threads to poll for their events. event_leader: 1 if one of them waits in
     * the kernel for all. */
    uint32_t event_watchers __attribute__((aligned(64)));
    uint32_t event_leader;
};
/* Kinds of objects, as patch_config.object_found returns them. */
enum object_kind { OBJECT_OTHER, OBJECT_OPENMP };

enum level { LEVEL_USER, LEVEL_KERNEL, LEVEL_OFF };

extern struct scheduler sched;
extern struct lissom_record *record;
extern __thread struct thread *lissom_self;

#define count(name) __atomic_fetch_add(&record->counter[LISSOM_C_##name], 1, __ATOMIC_RELAXED)
/* Count on a hot path, by the holder of s: in the slot's own stripe, without a locked instruction
 * unless slots share stripes. May lose a few counts while the slot has an extra thread. */
#define count_on(s, name, n) \
    do { \
        uint64_t *stripe_ = &record->stripe[(s)->index % LISSOM_STRIPES][LISSOM_C_##name]; \
        if (sched.slots <= LISSOM_STRIPES) \
            __atomic_store_n(stripe_, __atomic_load_n(stripe_, __ATOMIC_RELAXED) + (n), \
                             __ATOMIC_RELAXED); \
        else \
            __atomic_fetch_add(stripe_, (n), __ATOMIC_RELAXED); \
    } while (0)
#define count_add(name, n) \
    __atomic_fetch_add(&record->counter[LISSOM_C_##name], (n), __ATOMIC_RELAXED)

/* --- thread.c --------------------------------------------------------------------------------- */
/* Register the calling kernel thread. Returns NULL if the runtime is not active or gives up, or if
 * out of memory. */
struct thread *thread_register(void);
void thread_exit(struct thread *t);
/* In a fork's child: forget all threads but t. */
void thread_forget_others(struct thread *t);
struct carrier *carrier_by_tid(int32_t tid);
struct thread *thread_by_tid(int32_t tid);
/* Call f for each thread that holds s at the moment, a guess. Walks all threads. */
void threads_on_slot(const struct slot *s, void (*f)(struct thread *));
/* Call f for each thread that is alive. */
void threads_each(void (*f)(struct thread *));
/* Return a live thread t for which is(t, argument) is true, or NULL. */
struct thread *threads_find(bool (*is)(const struct thread *, int), int argument);
/* t is at home and its scheduling class may have changed: make it run without a slot if it is
 * real-time now. Only the kernel can run real-time threads by priority. */
void thread_look_at_class(struct thread *t);
/* Note the scheduling class that the program was started with: that is no choice of its own. */
void thread_class_at_start(void);
void thread_unpin(struct thread *t);
void thread_pin(struct thread *t, enum lissom_pin_reason reason);
/* Learn whether t should stay on its kernel thread. needs_home: t makes a call at home; otherwise t
 * begins a wait that may be carried. Pins threads that keep migrating home, for a while. */
void thread_learn(struct thread *t, bool needs_home);

/* --- slots.c; park.c: slot_park, slot_wanted; sched/poll.c: slot_poll_in_place ---------------- */
/* Initialize n idle slots with empty run queues: at the start, and in a fork's child. */
void slots_init(uint32_t n);
/* By the monitor only: set the number of slots to n, 1 to LISSOM_MAX_SLOTS
 * (docs/design/slot-protocol.md, open and close). */
void slots_resize(uint32_t n);
/* Preempt the threads that still run on closed slots. Returns whether there are any. By the monitor
 * only. */
bool slots_vacate(void);
/* Return how many threads could run now: ready ones, and one for each busy slot. A guess. Sets
 * *running, unless NULL, to the number of busy slots. */
uint32_t slots_demand(uint32_t *running);
/* Block t (docs/design/slot-protocol.md, block). Returns true if t was woken: it holds t->slot.
 * Returns false if a signal (with t->interruptible) or the deadline came first: t holds no slot and
 * may still be queued. deadline: of CLOCK_REALTIME if `realtime`, else of CLOCK_MONOTONIC; NULL:
 * none.
 *
 * Pre: t holds s and is in a queue, so t->slot is its waker's already. A t with a deadline is at
 * home. If t is not pinned and has no deadline, only a wake ends its wait: a thread that signals it
 * takes it out of its queue. */
bool slot_block(struct thread *t, struct slot *s, const struct timespec *deadline, bool realtime);
void slot_make_ready(struct thread *t);
/* Make ready all threads of a list, linked by next, in this order. Pre: the caller owns them. */
void slots_make_ready(struct thread *list);
/* Make ready on s n threads from head to tail, linked by next, taken out of chains. kept_until:
 * tsc; other slots neither take them before, nor are woken for them. 0: they may. */
void slot_make_ready_list(struct slot *s, struct thread *head, struct thread *tail, uint32_t n,
                          uint64_t kept_until);
void slot_acquire(struct thread *t);
void slot_release(struct thread *t);
/* Sleep until t is granted a slot. Pre: t runs without a slot, a waker owns it, and it is not
 * interruptible. */
void slot_await(struct thread *t);
void slot_yield(struct thread *t);
/* Let woken threads preempt t. t is the next to run after them, for the rest of its slice. */
void slot_make_way(struct thread *t);
/* Give up t's extra place and wait for its turn (docs/design/slot-protocol.md, step back). Returns
 * true once t holds t->slot again, false if it had no extra place. */
bool slot_step_back(struct thread *t);
void slot_pass_on(struct slot *s);
/* Claim an idle slot for t, which has none. Returns whether t holds t->slot now. */
bool slot_try_acquire(struct thread *t);
/* Claim an idle slot for the caller, `preferred` if it can. Returns NULL if none is idle. */
struct slot *slots_claim_idle(const struct slot *preferred);
void slot_overcommit(struct slot *s);
/* Park t, which holds its slot and waits in a loop for t->wait_word (docs/design/slot-protocol.md,
 * park). Returns true after another thread has run: t holds t->slot. Returns false if no other can
 * run. */
bool slot_park(struct thread *t, uint64_t now /* tsc */);
/* Return whether another thread could run in the place of t, a guess: t should give way if it
 * waits. */
bool slot_wanted(struct thread *t, uint64_t now /* tsc */);
/* Yield for t, which spins and is not proven to wait. Its loop may end by a count that no proof has
 * shown: sets t->counts_on to the turns that it may make for the time it was away. Pre: as for
 * slot_yield. */
void slot_yield_spinning(struct thread *t, uint64_t now /* tsc */);
struct thread *slot_pop(struct slot *s);
/* Return whether any thread is ready or parked. */
bool slots_anything_ready(void);
bool slot_over_slice(const struct thread *t);
/* Poll `word` for an OpenMP runtime that does not spin by itself, as long as no thread is ready.
 * Returns true if *word is no longer `value`, or cannot be read. */
bool slot_poll_in_place(struct thread *t, const uint32_t *word, uint32_t value);

/* --- carrier.c -------------------------------------------------------------------------------- */
void carrier_dispatch(struct thread *t, struct slot *s);
/* Run u on s in the place of t (docs/design/slot-protocol.md, run_next). now: tsc of a moment ago;
 * 0: unknown. Returns true after a switch to u, once t runs again. Returns false if u runs on
 * another carrier: t has to rest. */
bool carrier_run_next(struct thread *t, struct thread *u, struct slot *s, uint64_t now);
void carrier_rest(struct thread *t);
bool carrier_sleep_attached(struct thread *t, const struct timespec *deadline, bool realtime);
void carrier_migrate_home(struct thread *t);
struct thread *carrier_take_reserved(struct thread *t);
void carrier_put_back_reserved(struct thread *t, struct thread *r);
/* By the monitor: preempt carriers that their home threads have waited for since its last call.
 * Returns whether any home thread waits. */
bool carrier_preempt_reserved(void);
void carrier_finish(struct thread *prev);

/* --- switch.S, context.S, guarded.S ----------------------------------------------------------- */
/* Switch from `from` to `to`. Returns, when `from` runs again, the thread that was left for it. */
struct thread *lissom_switch(struct thread *from, struct thread *to);
struct thread *lissom_leave(struct thread *from, void *stack,
                            void (*f)(struct carrier *, struct thread *), struct carrier *k);
_Noreturn void lissom_enter(struct thread *to, struct thread *prev);
void lissom_syscall_entry(void);
/* Each returns 0, or -EFAULT if an access faults. */
long lissom_guarded_load(const uint32_t *address, uint32_t *value);
long lissom_guarded_copy(void *to, const void *from, size_t bytes);
/* Compare and swap. Returns 1 if *word differed from *expected, which then has its value. */
long lissom_guarded_exchange(uint32_t *word, uint32_t *expected, uint32_t new);
/* epoll_wait(2), but -EINTR if *pending_work is or becomes nonzero before the kernel sleeps. */
struct epoll_event;
long lissom_event_sleep(int instance, struct epoll_event *events, int n, int ms,
                        const volatile uint32_t *pending_work);

/* Return whether only t's own kernel thread may run it: t is pinned, has credentials of its own, is
 * in a handler that the kernel returns from, or the kernel has its full signal mask. */
static inline bool thread_stays(const struct thread *t)
{
    return t->pinned || t->kernel_has_mask || t->in_called_handler || t->own_credentials;
}
/* Return why t's wait keeps its kernel thread; LISSOM_PIN_NONE if it does not. */
static inline enum lissom_pin_reason thread_kept_by(const struct thread *t)
{
    if (t->pinned)
        return (enum lissom_pin_reason)t->pin_reason;
    if (t->kernel_has_mask || t->in_called_handler)
        return LISSOM_PIN_signal_mask;
    if (t->own_credentials)
        return LISSOM_PIN_identity;
    return t->deadline ? LISSOM_PIN_timed : LISSOM_PIN_NONE;
}
/* Return whether the home thread of t's carrier wants it back. */
static inline bool carrier_is_reserved(const struct thread *t)
{
    return t->carrier != t->home && __atomic_load_n(&t->carrier->reserved, __ATOMIC_RELAXED);
}
static inline bool slot_is_closed(const struct slot *s)
{
    return __atomic_load_n(&s->closed, __ATOMIC_RELAXED);
}
static inline uint32_t slots_open(void) { return __atomic_load_n(&sched.slots, __ATOMIC_RELAXED); }
static inline bool threads_exceed_slots(void)
{
    return __atomic_load_n(&sched.threads, __ATOMIC_RELAXED) > slots_open();
}
static inline void cpu_relax(void) { __builtin_ia32_pause(); }

#endif
