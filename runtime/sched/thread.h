/* SPDX-License-Identifier: MIT
 *
 * Threads, carriers and slots: the things of docs/slots.md, which is to be read first.
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

/* docs/slots.md; PARKED is ASLEEP under another name: sched/ext.h */
enum attach { ATTACHED, ASLEEP, GRANTED, DETACHED, PARKED };

/* An application thread.  Fields up to gsbase are known to switch.S and context.S (offsets.h). */
struct thread {
    uint32_t in_runtime; /* 1 while on the runtime stack: signals are kept */
    /* a signal was kept or preempted here: look before leaving the runtime */
    volatile uint32_t pending_work;
    void *runtime_stack; /* its upper end */
    uintptr_t user_rsp;
    const struct patch_site *site; /* where the current system call comes from */
    uintptr_t context_rsp;         /* of a context that is not running */
    uintptr_t fsbase;
    void *xsave;         /* vector state of a context that is not running */
    uint64_t raise_mask; /* signal mask to go back to when kept signals are sent again */
    /* Loops of OpenMP (omp/loops.h). Written by t only. */
    struct loop *loop;    /* whose chunks it asks for; NULL: of none */
    uint32_t chunks;      /* that it has asked for */
    uint32_t at_work;     /* 1: it has a chunk, and counts among those that do, ... */
    uintptr_t gsbase;     /* of a context that is not running */
    uint8_t seldom_turns; /* at seldom sites (spin/site.h), until the next that enters */

    /* From here on until the chain: what each wait reads and writes, in few cache lines. */
    uint32_t attach; /* enum attach; a futex word */
    int32_t tid;
    struct slot *slot; /* held, or where it was last */
    bool has_slot;
    bool computes; /* it has used up a slice, and has not waited since (sched/slices.h) */
    bool pinned;
    /* the kernel has its whole signal mask (sched/mask.h), until its next system call */
    bool kernel_has_mask;
    /* in a handler whose frame is the kernel's, and takes this kernel thread's mask and stack
     * back */
    bool in_called_handler;
    bool own_credentials; /* ... its credentials are not the process's (sched/identity.h) */
    /* the program has given it a real-time class: it runs natively, without a slot */
    bool real_time;
    bool own_attributes; /* nor are others that its children inherit */
    bool homing;
    bool deadline;       /* in a timed wait: only its own kernel thread can end it */
    bool interruptible;  /* in a wait that a signal may end */
    uint8_t interrupted; /* 1: the wait ended because of a signal; TIMER_ENDED (sched/timers.h) */
    uint8_t pin_reason;
    bool openmp;             /* made by an OpenMP runtime */
    bool own_affinity;       /* the program set it, to one that leaves out CPUs of the process */
    bool pinned_by_mask;     /* and by nothing else */
    struct carrier *carrier; /* who runs it now; valid while ATTACHED */

    struct carrier *home;
    struct thread *next; /* in a run queue, or in a waker's private list */
    uint64_t mounted_at; /* tsc; for slices */
    /* tsc: its slice, if that is longer than others' (0: it is not), and how much of it it had run
     * when woken threads went first */
    uint64_t slice, slice_ran;
    /* tsc: the wait that begins was polled for in place since then; 0: it was not (sched/poll.c) */
    uint64_t polled_since;
    /* in a bucket's queue: under the bucket's lock */
    struct bucket *bucket; /* NULL: in none */
    struct thread *wait_next, *wait_prev;
    uintptr_t wait_address;
    uint32_t wait_bitset;
    uint32_t wait_epoch;
    /* in a chain (futex/chains.h), linked by next and wait_prev, if the chain's epoch is
     * wait_epoch; NULL: in none. By t itself, or under the chain's lock */
    struct chain *chain;
    uint64_t wait_since;  /* tsc when it joined a chain; 0: it joined the queue */
    long nr;              /* the system call being handled */
    uint32_t away_calls;  /* system calls that made it go home lately */
    uint32_t plain_waits; /* futex waits since the last such call */

    /* of a team thread (cpus/cpus.h): its mask, as the program knows it; 0 bytes: it is none */
    uint32_t place_bytes;
    uint64_t place[PLACE_CPUS / 64];
    bool affinity_known; /* whether it has set one; until then nobody of us sets its mask */
    /* because another thread has given it a mask, or scheduling attributes; by itself, at its next
     * call */
    bool to_be_pinned;
    uint16_t bound; /* to CPU bound - 1; 0: to none (sched/bind.c) */
    bool was_bound; /* ever */

    /* its timer, under the shard's lock (sched/timers.h): ns; 0: it has none */
    uint64_t timer_at;
    struct thread *timer_next, *timer_prev;
    uint8_t timer_shard, timer_clock;

    /* futex word: there may be events that it waits for (events/events.c) */
    uint32_t events_notified;
    uint32_t events_counted; /* it is one of sched.event_watchers */
    struct thread *events_next;

    /* tsc: what it may run before expired threads (sched/ready.h), ... */
    int64_t lag;
    uint64_t lag_at;       /* ... when that was looked at, ... */
    uint64_t charged_at;   /* ... and until when what it has run was taken from it */
    uintptr_t kernel_wait; /* the address it waits on in the kernel, counted in its bucket */
    bool foreign_wait;     /* counted in futex_foreign_waiters */
    /* its signal mask, as the program knows it; and what sigtimedwait(2) waits for, of the signals
     * that the runtime lets through (sched/mask.h) */
    uint64_t mask, sigwaits;
    uint64_t call_mask; /* of the call that it waits in, if has_call_mask */
    bool has_call_mask;
    /* the one that waits with a mask of its own (waitmask.h); -1 or another: none */
    int16_t mask_call;
    uint8_t clone_state; /* enum clone_state */

    /* SAVE_AREA bytes (frame.h): the state in which it was interrupted outside of the runtime,
     * ... */
    void *save_area;
    bool delivers;              /* the signal in that frame is to be handled at home */
    struct signal_frame *saved; /* ... while it is in the runtime for that (signals.c) */
    uint64_t credentials;       /* a hash of the calls that have changed them */
    uint64_t ran_at_release;    /* its CPU time (ns) when it was late to leave (release.c) */
    bool restricts;             /* it is about to restrict the system calls of the process */
    siginfo_t taken;            /* by rt_sigtimedwait(2), whose caller does not want to know */
    stack_t altstack;           /* the program's, for this thread (altstack.h) */

    bool loop_blocked; /* ... but not at the moment (at_work) */
    bool loop_alone;   /* the loop that it is in is not our business */
    bool loop_open;    /* libomp: it has come to one that is */

    /* ns; the monitor's: at its last look at a slot that several threads have, ... */
    uint64_t monitor_cpu_time;
    uint64_t monitor_looked; /* ... tsc */
    bool asked_to_step_back;

    bool scan_waited; /* and its last sample found it waiting */
    bool scan_works;  /* or at work for certain */
    /* Found waiting in a loop: it goes on as long as these words are what they are. By t, before it
     * is on a waiting list. */
    /* entries in use; 0: it does not wait, or it is not known for what */
    uint32_t wait_words;
    struct wait_word {
        uintptr_t address;
        uint32_t value, mask;
    } wait_word[WAIT_WORDS];
    bool wait_counted;  /* a counter ends that wait as well */
    uint32_t counts_on; /* turns in which it is not parked in a counted wait (waiting.c) */
    /* The last waits that were proven at sites (spin/probe.h). */
    struct proof {
        const struct spin_site *site; /* NULL: none */
        uintptr_t rip;
        uint32_t code_version, inputs;
        uint32_t words, wait_words;
        uint64_t flags, r[PROOF_REGISTERS]; /* those that are inputs, in their order */
        struct wait_word word[PROOF_WORDS]; /* first those that are waited for */
    } proof[PROOFS];
    uint32_t proofs_made;
    const struct spin_site *backoff_site;
    /* turns at backoff_site without a look, since looks have shown nothing */
    uint32_t backoff_turns;
    uint32_t backoff;            /* looks in a row that have shown nothing */
    struct spin_site *wait_site; /* where it was last, ... */
    uint64_t hit_at, wait_began; /* ... when, and since when it waits there; tsc */
    bool goes_on;                /* it has done a turn since a word of that wait changed */
    /* not yet in the statistics of this site: */
    const struct spin_site *counted_site;
    uint32_t site_waits, site_yields, site_short_spins;
    uint32_t skipped;
    uint64_t site_waited;   /* tsc */
    bool spins_first;       /* and it spins for a short time, whoever else could run */
    uint32_t looks;         /* which slot slot_wanted looks at */
    uint32_t wait_bound_us; /* of the time that it may be parked */
    uint64_t wait_until;    /* tsc; under the slot's lock while it is on a waiting list */
    /* tsc: the last poll with a time limit of 0 that found nothing, and the first of a row of them
     */
    uint64_t polled_at, polls_since;
    /* tsc: the last sched_yield(2), and the first of a row of them */
    uint64_t yielded_at, yields_since;
    uint64_t gave_way_at;    /* tsc: the last that switched to another process's thread */
    uint64_t yields_from;    /* a hash of their registers */
    uint32_t yields_unseen;  /* so many since its loop was looked at, ... */
    uint32_t yields_a_look;  /* ... which it is after so many */
    uint32_t yields_in_vain; /* calls of sched_yield(2) in a row at a spin site */

    struct thread *all_next; /* all threads ever made */
    bool ended;
    struct thread *ended_next; /* those that have ended, oldest first: for reuse */
};

/* A siginfo, as much of it as the kernel fills. */
struct kept {
    int32_t signo, errno_, code, pad;
    uint64_t field[4];
};

/* A kernel thread. */
struct carrier {
    struct thread *home_thread;
    struct thread *current; /* written by this carrier only; NULL on its own stack */
    int32_t tid;
    bool had_tiles; /* the kernel has made room for those of AMX (frame_make_room) */
    uint32_t park;  /* futex word: 1 = an order or a signal is there */
    /* the thread on it has just given its slot to one on another carrier, ... */
    bool handed_on;
    /* ... whose kernel thread, this one, is still to be woken; 0: it has been. By this carrier
     * only, as is handed_on */
    int32_t to_wake;
    struct thread *order;
    struct slot *order_slot;
    void *stack;        /* upper end of its own small stack */
    void *signal_stack; /* SIGNAL_STACK bytes (frame.h): where the kernel puts frames */
    struct carrier *free_next, *free_prev; /* under free.lock */
    bool on_free;
    struct thread *reserved; /* under free.lock: its home thread wants it */
    struct carrier *reserved_next;
    bool reserved_seen; /* the monitor's */

    /* Signals for its home thread: sched/deferred.h. */
    uint32_t deferred_count; /* written on this kernel thread only, as are all of these */
    uint32_t sent_again_count;
    volatile bool unnotified; /* the home thread does not know yet */
    volatile bool closed;     /* the deferred queue is full: all are blocked */
    /* of the kernel thread, or else what goes back when it is not closed any more: its home
     * thread's, whoever runs on it */
    uint64_t mask;
    bool preempt_sent;                    /* a counted preemption signal is pending here */
    struct kept deferred[DEFERRED_MAX];   /* oldest first */
    struct kept sent_again[DEFERRED_MAX]; /* on their way once more */
};

enum clone_state { CLONE_NONE, CLONE_SHARED, CLONE_COPIED }; /* see syscalls.c */

enum slot_state { SLOT_BUSY, SLOT_POLLING, SLOT_IDLE, SLOT_CLOSED };

/* In parts that are written by different ones, each in cache lines of its own: spinning threads of
 * other slots read at each turn. */
struct slot {
    /* by who schedules on it */
    struct lock lock;
    uint32_t ready_count;                   /* under lock, read without */
    struct thread *ready_head, *ready_tail; /* and ... */
    /* ... the last active thread at its head (sched/ready.h); NULL: there is none */
    struct thread *active_tail;
    uint32_t active_count;
    /* tsc: the first expired thread has waited for active ones since then; 0: not */
    uint64_t active_since;
    uint64_t popped_since;                      /* active_since before the last pop, ... */
    bool popped_expired;                        /* ... and whether that was an expired thread */
    struct thread *waiting_head, *waiting_tail; /* parked threads: sched/waiting.h */
    uint32_t waiting_count;                     /* under lock, read without */
    uint32_t overcommit;
    /* tsc: the first ready thread has seen parked ones go first since then; 0: not */
    uint64_t passed_since;
    uint64_t hand_on_until;     /* tsc: extra threads hand their places on; under lock */
    uint64_t kept_until;        /* tsc: other slots take no ready threads before; a guess */
    struct thread *runner;      /* who got the slot last; a hint */
    bool computing;             /* the runner only computes (sched/slices.h); a hint */
    uint32_t schedules;         /* moves whenever the slot changes hands or its thread yields */
    struct lost_time lost_time; /* by who holds it */
    uint32_t spin_yields;       /* by threads in loops that pause, and have no words to wait for */
    /* seldom */
    uint32_t state __attribute__((aligned(64))); /* enum slot_state; under lock, read without */
    /* how long to look for work before it is given up, and the most (sched/poll.c): by who holds
     * it, as ... */
    uint32_t poll_ns, poll_max_ns;
    /* ... tsc: it has nothing to run since then; 0: it has, or that is not to be learnt from */
    uint64_t idle_since;
    /* who runs on it is to leave it, and nobody is to come; under lock, read without */
    bool closed;
    uint32_t index;
    uint32_t cpu; /* where its kernel thread was last seen; a hint, as ... */
    /* ... the slot that was seen on the same CPU (its own index: none) */
    uint32_t neighbour;
    /* by its spinning thread */
    /* tsc: when it last looked at the parked ones (sched/park.c) */
    uint64_t looked_at __attribute__((aligned(64)));
    /* tsc: its thread last came to a site while nobody else could run; 0: others could since. It
     * has been so since then (sched/nap.h) */
    uint64_t alone_at, alone_since;
    uint32_t nap_after_us; /* alone for so long, its thread naps */
    uint32_t napping;      /* enum nap_kind; futex word */
    struct thread *napper; /* this one, while it waits for its words as well; or NULL */
    /* by the monitor */
    /* tsc: its thread is not looked at for busy-waiting before (spin/scan.c) */
    uint64_t scan_after __attribute__((aligned(64)));
    uint32_t monitor_seen; /* `schedules` at the last look, ... */
    /* ... how often its threads have been preempted since, ... */
    uint32_t monitor_preempts;
    /* ... since when it has found nothing scheduled, has preempted them or has granted an extra
     * thread (tsc), ... */
    uint64_t monitor_stuck;
    int32_t monitor_tid; /* ... and which kernel thread ran it, ... */
    /* ... that had used so much CPU time (ns) then (tsc) */
    uint64_t monitor_cpu_time, monitor_looked;
} __attribute__((aligned(128)));

struct scheduler {
    /* open: those of lower indices. Changes while the program runs (slots_resize) */
    uint32_t slots;
    uint32_t slots_made; /* ever opened */
    uint32_t idle_count;
    uint64_t all_idle_since; /* tsc: when the last slot became idle; a hint */
    uint32_t naps;           /* slots whose thread naps */
    uint64_t naps_looked_at; /* tsc; by the monitor */
    /* others want the CPU of the one thread that runs (monitor/lone.h); or did
     * a moment ago */
    bool lone_contended;
    /* tsc: what a system call takes that does nothing (monitor/lone.c) */
    uint32_t call_tsc;
    bool neighbours;       /* others want the CPUs of threads that run (monitor/neighbours.h) */
    uint32_t crowd;        /* its threads have one of so many parts of a CPU; at least 1 */
    uint32_t threads;      /* alive */
    bool has_made_threads; /* or, in the child of a fork, the child has */
    int32_t pid;
    bool native_waits; /* given up: threads wait in the kernel only */
    bool active;       /* patched and scheduling */
    /* The first thread has something that the kernel keeps for kernel threads; until it
     * registers. */
    bool first_is_tied;
    bool uses_rseq;         /* the program uses glibc's areas: see runtime/rseq.h */
    bool user_switch;       /* the machine can switch in user space */
    uint8_t level;          /* enum level */
    bool detect_spinning;   /* threads that wait in a loop give way */
    bool misjudge_spinning; /* all that are looked at do: a test of the bounds */
    bool observe_spinning;  /* they are only counted */
    uint32_t observe_us;    /* a scan of each slot every so many us; 0: the usual number */
    bool traced;            /* by a debugger; as of the monitor's last look */
    bool shares;            /* the CPUs with other programs under lissom (monitor/peers.c) */
    uint8_t idle_policy;    /* enum idle_policy */
    bool poll_for_openmp;   /* OpenMP's waits do not spin themselves */
    bool openmp_binds;      /* its threads are to be bound to places */
    uint64_t tsc_per_us;
    struct lock free_lock;
    struct carrier *free_head, *reserved_head;
    uint32_t monitor_started;
    /* futex: 1 = there may be ready threads; else how it sleeps (monitor.c) */
    uint32_t monitor_word;
    struct slot slot[LISSOM_MAX_SLOTS];
    /* by the threads that wait for events (docs/events.md): those that another thread has to look
     * for events for, ... */
    uint32_t event_watchers __attribute__((aligned(64)));
    uint32_t event_leader; /* ... and whether one of them waits in the kernel for all */
};
/* What the objects are (patch_config.object_found). */
enum object_kind { OBJECT_OTHER, OBJECT_OPENMP };

enum level { LEVEL_USER, LEVEL_KERNEL, LEVEL_OFF };

extern struct scheduler sched;
extern struct lissom_record *record;
extern __thread struct thread *lissom_self;

#define count(name) __atomic_fetch_add(&record->counter[LISSOM_C_##name], 1, __ATOMIC_RELAXED)
/* On the hot paths, by who holds s: its own stripe, and no locked instruction unless slots share
 * it. An extra thread on the slot may make it miss a few. */
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
struct thread *thread_register(void); /* the calling kernel thread; NULL: out of memory */
void thread_exit(struct thread *t);
void thread_forget_others(struct thread *t); /* in a fork's child */
struct carrier *carrier_by_tid(int32_t tid);
struct thread *thread_by_tid(int32_t tid);
/* f for each that holds s at the moment, a guess. Looks through all threads. */
void threads_on_slot(const struct slot *s, void (*f)(struct thread *));
void threads_each(void (*f)(struct thread *)); /* that is alive */
/* One that is alive and of which that is true, or NULL. */
struct thread *threads_find(bool (*is)(const struct thread *, int), int argument);
/* t, at home, may have got a scheduling class. Real-time threads go before others by priority,
 * which only the kernel can do. */
void thread_look_at_class(struct thread *t);
/* The scheduling class that the program was executed with is no choice of its own. */
void thread_class_at_start(void);
void thread_unpin(struct thread *t);
void thread_pin(struct thread *t, enum lissom_pin_reason reason);
/* t makes a call that has to be made at home, or begins a wait for whose sake it may leave it.
 * Threads that keep going home gain nothing by leaving it, and are pinned for a while. */
void thread_learn(struct thread *t, bool needs_home);

/* --- slots.c; park.c: slot_park, slot_wanted; sched/poll.c: slot_poll_in_place ---------------- */
void slots_init(uint32_t n); /* all idle and empty; at the start, and in a fork's child */
/* docs/slots.md: open, close. From then on there are n slots, 1..LISSOM_MAX_SLOTS. By the monitor
 * only. */
void slots_resize(uint32_t n);
/* Asks who still runs on closed slots to leave them. Post: there is somebody. By the monitor
 * only. */
bool slots_vacate(void);
/* How many threads could run just now: those that do (*running, unless NULL), one for each slot
 * that is not idle, and the ready ones. A guess. */
uint32_t slots_demand(uint32_t *running);
/* docs/slots.md: block. Pre: t holds s, and is in a queue, so t->slot is its waker's already.
 * Post: true: t was woken and holds t->slot. false: a signal (if t->interruptible) or the deadline
 * (CLOCK_REALTIME if `realtime`, else CLOCK_MONOTONIC; NULL: none) came first; t holds no slot and
 * may still be queued. A t that is not pinned and has no deadline is only ended by a wake: who
 * sends it a signal takes it out of its queue. A t with a deadline must be at home. */
bool slot_block(struct thread *t, struct slot *s, const struct timespec *deadline, bool realtime);
void slot_make_ready(struct thread *t);
/* linked by next, first come first served; the waker owns all */
void slots_make_ready(struct thread *list);
/* n threads from head to tail, linked by next, which have been taken out of chains, get ready on s.
 * kept_until: tsc; other slots do not take them before, and are not woken for them; 0: they
 * may. */
void slot_make_ready_list(struct slot *s, struct thread *head, struct thread *tail, uint32_t n,
                          uint64_t kept_until);
void slot_acquire(struct thread *t);
void slot_release(struct thread *t);
/* A waker owns t, which holds no slot and runs: until it is granted. Pre: not interruptible. */
void slot_await(struct thread *t);
void slot_yield(struct thread *t);
/* t lets those go first that were woken, and is the next after them: with the rest of its slice. */
void slot_make_way(struct thread *t);
/* docs/slots.md: step back. Post: true: t, which had an extra place, has waited for its turn, and
 * holds t->slot. false: there was none. */
bool slot_step_back(struct thread *t);
void slot_pass_on(struct slot *s);
/* Post: true: t, which had none, holds t->slot, which was idle. */
bool slot_try_acquire(struct thread *t);
/* Post: a slot that was idle and is the caller's now, or NULL. */
struct slot *slots_claim_idle(const struct slot *preferred);
void slot_overcommit(struct slot *s);
/* t, which holds its slot, waits in a loop for t->wait_word. Post: true: another thread has run,
 * and t holds t->slot. false: there is none that could. docs/slots.md: park. */
bool slot_park(struct thread *t, uint64_t now /* tsc */);
/* Whether another thread could run in the place of t, a guess: t should give way if it waits. */
bool slot_wanted(struct thread *t, uint64_t now /* tsc */);
/* t, which spins and is not proven to wait, lets other threads run. The loop may end by a count
 * that no proof has shown, so t->counts_on is then the turns that it may make for the time that it
 * was away. Pre: as slot_yield. */
void slot_yield_spinning(struct thread *t, uint64_t now /* tsc */);
struct thread *slot_pop(struct slot *s);
bool slots_anything_ready(void); /* or parked */
bool slot_over_slice(const struct thread *t);
/* An OpenMP runtime was told not to spin on `word`: does it for it, as long as no thread is ready.
 * Post: true: it is not `value` any more, or cannot be read. */
bool slot_poll_in_place(struct thread *t, const uint32_t *word, uint32_t value);

/* --- carrier.c -------------------------------------------------------------------------------- */
void carrier_dispatch(struct thread *t, struct slot *s);
/* docs/slots.md: run_next. now: tsc, of a moment ago; 0: the caller does not know it. */
bool carrier_run_next(struct thread *t, struct thread *u, struct slot *s, uint64_t now);
void carrier_rest(struct thread *t);
bool carrier_sleep_attached(struct thread *t, const struct timespec *deadline, bool realtime);
void carrier_migrate_home(struct thread *t);
struct thread *carrier_take_reserved(struct thread *t);
void carrier_put_back_reserved(struct thread *t, struct thread *r);
bool carrier_preempt_reserved(void); /* the monitor's look at who waits to come home */
void carrier_finish(struct thread *prev);

/* --- switch.S, context.S, guarded.S ----------------------------------------------------------- */
struct thread *lissom_switch(struct thread *from, struct thread *to); /* returns who was left */
struct thread *lissom_leave(struct thread *from, void *stack,
                            void (*f)(struct carrier *, struct thread *), struct carrier *k);
_Noreturn void lissom_enter(struct thread *to, struct thread *prev);
void lissom_syscall_entry(void);
/* Post: 0, or -EFAULT. */
long lissom_guarded_load(const uint32_t *address, uint32_t *value);
long lissom_guarded_copy(void *to, const void *from, size_t bytes);
long lissom_guarded_exchange(uint32_t *word, uint32_t *expected, uint32_t new); /* sched/user.h */
/* epoll_wait(2), but -EINTR if *pending_work is or becomes true before the kernel sleeps. */
struct epoll_event;
long lissom_event_sleep(int instance, struct epoll_event *events, int n, int ms,
                        const volatile uint32_t *pending_work);

/* Only its own kernel thread may run it: pinned, or that has its signal mask, or with credentials
 * of its own. */
static inline bool thread_stays(const struct thread *t)
{
    return t->pinned || t->kernel_has_mask || t->in_called_handler || t->own_credentials;
}
/* Why t's wait keeps its kernel thread; LISSOM_PIN_NONE: it does not. */
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
/* Whether the home thread of the carrier that t is on wants it back. */
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
