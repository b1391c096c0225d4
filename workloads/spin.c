/* SPDX-License-Identifier: MIT */
// Programs that busy-wait: patterns of hand-made synchronization, with the spinlocks of locks/
// where they need a lock.
//
//     spin pipeline --threads 8 --rounds 1000 --work 2000 [--tokens 2] [--flag volatile]
//     spin lock-pipeline --threads 8 --rounds 1000 --work 2000 --lock mcs [--no-pause]
//     spin contended --threads 8 --rounds 100000 --lock cna [--nodes 2]
//     spin barrier --threads 8 --rounds 1000 --work 2000
//     spin spin-then-block --threads 8 --rounds 1000 --work 2000 [--spins 1000] [--block cond]
//     spin sensitivity --threads 2 --lock ticket [--seconds 0.1] [--rounds 1] [--hold sleep]
//     spin locks
//
// `locks` prints the names of the locks; the others print one line of JSON as sync does, with a few
// more members. Time and the division of work are as in sync.c. In the pipelines a round is a
// token's way once around the ring.
#define _GNU_SOURCE
#include "spin.h"
#include "spin_block.h"
#include "spin_sensitivity.h"

static int flag_volatile;

// --- pipeline: a ring of stages, each waiting for its own flag -----------------------------------

// Number of tokens that have arrived at a stage. Only the stage before it stores it: it releases
// the number with the token, and the waiter acquires it. Programs that use volatile instead have a
// fence there, or rely on x86. To C, and to ThreadSanitizer, which does not know fences, that is a
// race of the flag and of the token. It works on this hardware: an aligned long is stored and
// loaded whole. The fences keep the compiler's order, and the processor's where it needs that.
static struct stage {
    alignas(LINE) atomic_long arrived;
    volatile long arrived_volatile;
} *stages;

static void pipeline_prepare(void) {
    tokens_prepare();
    stages = memory(sizeof *stages * (size_t)options.threads);
    atomic_init(&stages[0].arrived, tokens); // all start there
    stages[0].arrived_volatile = tokens;
}

static void pipeline_work(struct worker *w) {
    struct stage *mine = &stages[w->index], *next = &stages[(w->index + 1) % options.threads];
    long head_start = w->index + 1 == options.threads ? tokens : 0;
    for (long pass = 0; pass < options.rounds; pass++) {
        if (flag_volatile) {
            WAIT_UNTIL(mine->arrived_volatile > pass);
            atomic_thread_fence(memory_order_acquire);
        } else {
            WAIT_UNTIL(atomic_load_explicit(&mine->arrived, memory_order_acquire) > pass);
        }
        take_step(w, pass);
        if (flag_volatile) {
            atomic_thread_fence(memory_order_release);
            next->arrived_volatile = pass + 1 + head_start;
        } else {
            atomic_store_explicit(&next->arrived, pass + 1 + head_start, memory_order_release);
        }
    }
}

static void pipeline_describe(void) {
    member("\"tokens\": %ld, \"flag\": \"%s\", ", tokens, flag_volatile ? "volatile" : "atomic");
}

// --- lock-pipeline: a ring of stages, each waiting for a lock that its predecessor holds ---------
//
// A held lock makes the successor wait once. So each link between two stages has a ring of locks,
// of which the predecessor always holds the one for its next pass: it takes the next before it
// releases this one. It can be ahead of its successor by all tokens, so a ring has one lock more
// than that.

static struct link {
    void **lock;
    struct lock_node *node; // two for each lock: the predecessor's and the successor's
} *links;                   // link i leads from stage i to the next
static long ring;

enum { BEFORE, AFTER };

static void link_lock(struct link *l, long pass, int user) {
    kind->lock(l->lock[pass % ring], &l->node[pass % ring * 2 + user]);
}

static void link_unlock(struct link *l, long pass, int user) {
    kind->unlock(l->lock[pass % ring], &l->node[pass % ring * 2 + user]);
}

static void lock_pipeline_prepare(void) {
    tokens_prepare();
    ring = tokens + 1;
    links = memory(sizeof *links * (size_t)options.threads);
    for (long i = 0; i < options.threads; i++) {
        links[i].lock = memory(sizeof(void *) * (size_t)ring);
        links[i].node = new_nodes(2 * ring);
        for (long j = 0; j < ring; j++) {
            links[i].lock[j] = new_lock(2);
            name_node(&links[i].node[2 * j + BEFORE], BEFORE, i);
            name_node(&links[i].node[2 * j + AFTER], AFTER, (i + 1) % options.threads);
        }
    }
}

// Take the first lock before any stage starts, so that all successors wait.
static void lock_pipeline_enter(struct worker *w) { link_lock(&links[w->index], 0, BEFORE); }

static void lock_pipeline_work(struct worker *w) {
    struct link *in = &links[(w->index + options.threads - 1) % options.threads],
                *out = &links[w->index];
    for (long pass = 0; pass < options.rounds; pass++) {
        // the predecessor's pass; < 0: tokens start here
        long sent = w->index == 0 ? pass - tokens : pass;
        if (sent >= 0) {
            link_lock(in, sent, AFTER);
            link_unlock(in, sent, AFTER);
        }
        take_step(w, pass);
        link_lock(out, pass + 1, BEFORE);
        link_unlock(out, pass, BEFORE);
    }
    link_unlock(out, options.rounds, BEFORE);
}

static void lock_pipeline_describe(void) {
    member("\"tokens\": %ld, ", tokens);
    lock_describe();
}

// --- contended: all threads want one lock --------------------------------------------------------

// Protected by the lock. Volatile, or else the compiler assumes that no other thread changes it.
static volatile long holder;
static atomic_int stop;

// All threads share one number of rounds, so a thread that gets the lock more often does more.
static void contended_work(struct worker *w) {
    struct lock_node *node = &the_nodes[w->index];
    int timed = options.seconds > 0, more = 1;
    while (more) {
        kind->lock(the_lock, node);
        holder = w->index;
        w->sum = compute(w->sum, options.work);
        more =
            timed ? !atomic_load_explicit(&stop, memory_order_relaxed) : sections < options.rounds;
        if (more) {
            sections++;
            w->count++;
        }
        if (holder != w->index)
            fail("contended: threads %ld and %ld hold the lock %s together", w->index, holder,
                 kind->name);
        kind->unlock(the_lock, node);
        w->sum = compute(w->sum, options.outside);
    }
}

static void contended_lead(void) {
    sleep_for(options.seconds);
    atomic_store(&stop, 1);
}

static void contended_check(void) {
    expect("the counter under the lock", sections, total());
    if (!(options.seconds > 0))
        expect("the counter under the lock", sections, options.rounds);
}

static void contended_describe(void) {
    lock_describe();
    member("\"nodes\": %ld, \"work\": %ld, \"outside\": %ld, ", numa_nodes, options.work,
           options.outside);
}

// --- barrier: centralized and sense-reversing, with work between ---------------------------------

static struct {
    alignas(LINE) atomic_long missing;
    alignas(LINE) atomic_int sense;
} barrier;
static struct progress {
    alignas(LINE) atomic_long round; // relaxed: the barrier orders it
} *progress;

static void barrier_prepare(void) {
    atomic_init(&barrier.missing, options.threads);
    progress = memory(sizeof *progress * (size_t)options.threads);
}

// Wait for all threads. Returns 1 in the last one to arrive. Arriving is acquire and release, so
// the last thread sees what all did before. It releases that with the new sense, after the count
// for the next round.
static int barrier_pass(int sense) {
    if (atomic_fetch_sub_explicit(&barrier.missing, 1, memory_order_acq_rel) == 1) {
        atomic_store_explicit(&barrier.missing, options.threads, memory_order_relaxed);
        atomic_store_explicit(&barrier.sense, sense, memory_order_release);
        return 1;
    }
    WAIT_UNTIL(atomic_load_explicit(&barrier.sense, memory_order_acquire) == sense);
    return 0;
}

static void barrier_work(struct worker *w) {
    long part = share(options.work, options.threads, w->index);
    struct progress *mine = &progress[w->index],
                    *next = &progress[(w->index + 1) % options.threads];
    int sense = 0;
    for (long i = 1; i <= options.rounds; i++) {
        w->sum = compute(w->sum, part);
        atomic_store_explicit(&mine->round, i, memory_order_relaxed);
        sense = !sense;
        w->count += barrier_pass(sense);
        long seen = atomic_load_explicit(&next->round, memory_order_relaxed);
        if (seen != i && seen != i + 1) // it may have reached the next barrier, but not passed it
            fail("barrier: a thread has passed it in round %ld while its neighbour was in %ld", i,
                 seen);
    }
}

static void barrier_check(void) {
    expect("the number of those who came last", total(), options.rounds);
}

// -------------------------------------------------------------------------------------------------

static const struct pattern {
    const char *name;
    void (*prepare)(void);
    void (*enter)(struct worker *); // by each thread, before any starts to work
    void (*work)(struct worker *);
    void (*check)(void);
    void (*describe)(void);
    int handoffs; // a round is a way around the ring
} patterns[] = {
    {"pipeline", pipeline_prepare, NULL, pipeline_work, tokens_check, pipeline_describe, 1},
    {"lock-pipeline", lock_pipeline_prepare, lock_pipeline_enter, lock_pipeline_work, tokens_check,
     lock_pipeline_describe, 1},
    {"contended", one_lock_prepare, NULL, contended_work, contended_check, contended_describe, 0},
    {"barrier", barrier_prepare, NULL, barrier_work, barrier_check, NULL, 0},
    {"spin-then-block", spin_then_block_prepare, NULL, spin_then_block_work, tokens_check,
     spin_then_block_describe, 1},
    {"sensitivity", sensitivity_prepare, NULL, sensitivity_work, sensitivity_check,
     sensitivity_describe, 0},
};
static const struct pattern *pattern;

static void *start(void *argument) {
    struct worker *w = argument;
    if (pattern->enter)
        pattern->enter(w);
    pthread_barrier_wait(&gate);
    w->start = now();
    pattern->work(w);
    w->end = now();
    return NULL;
}

static void run_pattern(void) {
    pattern->prepare();
    create_threads(start, 1);
    int contended = pattern->work == contended_work;
    pthread_barrier_wait(&gate);
    if (contended && options.seconds > 0)
        contended_lead();
    join_threads();
    pattern->check();

    struct span span = span_of_workers();
    double seconds = span_seconds(&span);
    long rounds = contended ? sections : options.rounds;

    // report() prints the workload's name between quotes: append the other members to it.
    struct options reported = options;
    member("%s\", ", options.workload);
    if (pattern->describe)
        pattern->describe();
    if (pattern->handoffs)
        member("\"us_per_handoff\": %.4f, ",
               seconds * 1e6 / (double)rounds / (double)options.threads);
    member("\"pause\": \"%s", pauses ? "yes" : "no");
    reported.workload = members;
    report(&reported, rounds, seconds, contended ? fairness(sections) : -1);
}

// --- options -------------------------------------------------------------------------------------

// Return the iterations of compute() in 100 ns: the median of short pieces.
static long iterations_in_100ns(void) {
    enum { PIECES = 101, ITERATIONS = 10000 };
    double rate[PIECES];
    uint64_t sum = 1;
    for (int i = 0; i < PIECES; i++) {
        double begun = now();
        sum = compute(sum, ITERATIONS);
        rate[i] = ITERATIONS / (now() - begun) + (sum == 0); // keeps the sum alive
    }
    qsort(rate, PIECES, sizeof *rate, ascending);
    return (long)(rate[PIECES / 2] * 1e-7 + 0.5);
}

static const char *choice(const char *name, const char *text, const char *first,
                          const char *second) {
    if (strcmp(text, first) && strcmp(text, second))
        fail("%s wants %s or %s, not `%s`", name, first, second, text);
    return text;
}

// Take the options of spin.c out of the arguments, and leave the rest to parse(). has_*: whether
// that option is among the rest.
static void own_options(int *argc, char **argv, int *has_work, int *has_outside, int *has_rounds) {
    const char *lock = "ticket";
    int kept = *argc < 2 ? *argc : 2;
    for (int i = 2; i < *argc; i++) {
        const char *name = argv[i];
        if (!strcmp(name, "--no-pause")) {
            pauses = 0;
            continue;
        }
        char *value = i + 1 < *argc ? argv[i + 1] : NULL;
        if (!value)
            fail("%s wants a value", name);
        i++;
        if (!strcmp(name, "--lock")) {
            lock = value;
        } else if (!strcmp(name, "--tokens")) {
            tokens = (long)number(name, value);
        } else if (!strcmp(name, "--spins")) {
            spins = (long)number(name, value);
        } else if (!strcmp(name, "--nodes")) {
            numa_nodes = (long)number(name, value);
        } else if (!strcmp(name, "--flag")) {
            flag_volatile = !strcmp(choice(name, value, "atomic", "volatile"), "volatile");
        } else if (!strcmp(name, "--block")) {
            block_cond = !strcmp(choice(name, value, "futex", "cond"), "cond");
        } else if (!strcmp(name, "--hold")) {
            hold_sleeping = !strcmp(choice(name, value, "compute", "sleep"), "sleep");
        } else {
            *has_work |= !strcmp(name, "--work");
            *has_outside |= !strcmp(name, "--outside");
            *has_rounds |= !strcmp(name, "--rounds");
            argv[kept++] = argv[i - 1];
            argv[kept++] = value;
        }
    }
    *argc = kept;
    for (int i = 0; i < LOCK_KINDS; i++)
        if (!strcmp(lock, lock_kinds[i].name) && lock_kinds[i].pauses == pauses)
            kind = &lock_kinds[i];
    if (!kind)
        fail("unknown lock %s; `%s locks` lists them", lock, argv[0]);
    if (tokens < 1 || tokens > 100000)
        fail("--tokens must be 1 to 100000");
}

int main(int argc, char **argv) {
    int has_work = 0, has_outside = 0, has_rounds = 0;
    own_options(&argc, argv, &has_work, &has_outside, &has_rounds);
    options = parse(argc, argv);
    if (!strcmp(options.workload, "locks")) {
        for (int i = 0; i < LOCK_KINDS; i++)
            if (lock_kinds[i].pauses)
                puts(lock_kinds[i].name);
        return 0;
    }
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (!strcmp(options.workload, patterns[i].name))
            pattern = &patterns[i];
    if (!pattern)
        fail("unknown workload %s", options.workload);

    if (pattern->work == contended_work && !(has_work && has_outside)) {
        long iterations = iterations_in_100ns();
        options.work = has_work ? options.work : iterations;
        options.outside = has_outside ? options.outside : iterations;
    }
    if (pattern->work == spin_then_block_work)
        tokens = 1;
    if (pattern->work == sensitivity_work) {
        if (options.threads < 2)
            fail("sensitivity has 2 threads at least");
        options.rounds = has_rounds ? options.rounds : 1;
        if ((!has_work || hold_sleeping) && !(options.seconds > 0))
            options.seconds = 0.1;
    }
    run_pattern();
    return 0;
}
