/* SPDX-License-Identifier: MIT */
// Programs that wait busily: patterns of hand-made synchronization, with the spinlocks of locks/ where they
// need a lock.
//
//     spin pipeline --threads 8 --rounds 1000 --work 2000 [--tokens 2] [--flag volatile]
//     spin lock-pipeline --threads 8 --rounds 1000 --work 2000 --lock mcs [--no-pause]
//     spin contended --threads 8 --rounds 100000 --lock cna [--nodes 2]
//     spin barrier --threads 8 --rounds 1000 --work 2000
//     spin spin-then-block --threads 8 --rounds 1000 --work 2000 [--spins 1000] [--block cond]
//     spin sensitivity --lock ticket [--seconds 0.1] [--rounds 1]
//     spin locks
//
// prints one line of JSON as sync does, and a few members more, or the names of the locks. What is said there
// about time and the splitting of work holds here too; in the pipelines a round is a token's way once around.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "locks/all.h"
#include "sync.h"

struct worker {
    alignas(LINE) pthread_t thread; // neighbours do not share a cache line
    long index;
    long count;   // what it has done; the meaning depends on the pattern
    long blocked; // how often it has given up spinning
    uint64_t sum;
    double start, end;
};

static struct options options;
static struct worker *workers;

// The options that sync does not have.
static const struct lock_kind *kind;
static int pauses = 1, flag_volatile, block_cond;
static long tokens = 1, spins = 1000, numa_nodes;

static char members[512]; // for the line of JSON

__attribute__((format(printf, 1, 2))) static void member(const char *format, ...) {
    size_t used = strlen(members);
    va_list list;
    va_start(list, format);
    vsnprintf(members + used, sizeof members - used, format, list);
    va_end(list);
}

// Two loops: the one without `pause` does not decide at every turn not to pause.
#define WAIT_UNTIL(condition)                                                                                  \
    do {                                                                                                       \
        if (pauses)                                                                                            \
            while (!(condition))                                                                               \
                CPU_PAUSE();                                                                                   \
        else                                                                                                   \
            while (!(condition))                                                                               \
                ;                                                                                              \
    } while (0)

static void *memory(size_t bytes) {
    bytes = (bytes + LINE - 1) / LINE * LINE;
    void *p = aligned_alloc(LINE, bytes);
    if (!p)
        fail("no memory");
    return memset(p, 0, bytes);
}

static long total(void) {
    long sum = 0;
    for (long i = 0; i < options.threads; i++)
        sum += workers[i].count;
    return sum;
}

static void expect(const char *what, long seen, long expected) {
    if (seen != expected)
        fail("%s: %s is %ld and should be %ld", options.workload, what, seen, expected);
}

// --- tokens: what the pipelines pass on. Plain memory: the hand-over has to order the accesses --------------

static struct token {
    alignas(LINE) long steps; // taken so far
} * token;

static void tokens_prepare(void) { token = memory(sizeof *token * (size_t)tokens); }

// Stage `index` works on its token of the given pass. The passes of a stage take the tokens in turn.
static void take_step(struct worker *w, long pass) {
    struct token *t = &token[pass % tokens];
    expect("the number of steps that a token has taken", t->steps, pass / tokens * options.threads + w->index);
    w->sum = compute(w->sum, share(options.work, options.threads, w->index));
    t->steps++;
    w->count++;
}

static void tokens_check(void) {
    long steps = 0;
    for (long i = 0; i < tokens; i++)
        steps += token[i].steps;
    expect("the number of steps", steps, options.rounds * options.threads);
    expect("the number of passes", total(), steps);
}

// --- pipeline: a ring of stages, each waiting for its own flag ------------------------------------------------

// How many tokens have arrived at a stage. Stored by the stage before it only: released with the token, and
// acquired by the one who waits. Programs that use volatile instead have a fence there, or rely on x86.
static struct stage {
    alignas(LINE) atomic_long arrived;
    volatile long arrived_volatile;
} * stages;

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

// --- locks ------------------------------------------------------------------------------------------------------

static void *new_lock(long threads) {
    void *lock = memory(kind->size + kind->per_thread * (size_t)threads);
    kind->init(lock, threads);
    return lock;
}

static struct lock_node *new_nodes(long count) { return memory(sizeof(struct lock_node) * (size_t)count); }

// `user` of the lock is thread `index` of the program.
static void name_node(struct lock_node *node, long user, long index) {
    node->index = user;
    node->numa = numa_nodes > 0 ? index % numa_nodes : -1;
}

static void lock_describe(void) { member("\"lock\": \"%s\", ", kind->name); }

// --- lock-pipeline: a ring of stages, each waiting for a lock that its predecessor holds -------------------------
//
// A lock says `not yet` as long as it is held, once. So each link between two stages has a ring of locks, of
// which the predecessor always holds the one for its next pass: it takes the next before it frees this one. It
// can be ahead of its successor by all tokens, and needs a lock more than that.

static struct link {
    void **lock;
    struct lock_node *node; // two for each lock: the predecessor's and the successor's
} * links;                  // link i leads from stage i to the next
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

// Before any stage starts: all successors have to wait.
static void lock_pipeline_enter(struct worker *w) { link_lock(&links[w->index], 0, BEFORE); }

static void lock_pipeline_work(struct worker *w) {
    struct link *in = &links[(w->index + options.threads - 1) % options.threads], *out = &links[w->index];
    for (long pass = 0; pass < options.rounds; pass++) {
        long sent = w->index == 0 ? pass - tokens : pass; // the predecessor's pass; < 0: tokens start here
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

// --- contended: all threads want one lock ------------------------------------------------------------------------

static void *the_lock;
static struct lock_node *the_nodes;
static long sections;         // under the lock
static volatile long holder;  // under the lock; volatile, or the compiler knows that nobody changes it
static atomic_int stop;

static void one_lock_prepare(void) {
    the_lock = new_lock(options.threads);
    the_nodes = new_nodes(options.threads);
    for (long i = 0; i < options.threads; i++)
        name_node(&the_nodes[i], i, i);
}

// All take from one store of rounds, so that a thread that gets the lock more often does more.
static void contended_work(struct worker *w) {
    struct lock_node *node = &the_nodes[w->index];
    int timed = options.seconds > 0, more = 1;
    while (more) {
        kind->lock(the_lock, node);
        holder = w->index;
        w->sum = compute(w->sum, options.work);
        more = timed ? !atomic_load_explicit(&stop, memory_order_relaxed) : sections < options.rounds;
        if (more) {
            sections++;
            w->count++;
        }
        if (holder != w->index)
            fail("contended: threads %ld and %ld hold the lock %s together", w->index, holder, kind->name);
        kind->unlock(the_lock, node);
        w->sum = compute(w->sum, options.outside);
    }
}

static void contended_lead(void) {
    struct timespec t = {(time_t)options.seconds, (long)((options.seconds - (double)(time_t)options.seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
    atomic_store(&stop, 1);
}

static void contended_check(void) {
    expect("the counter under the lock", sections, total());
    if (!(options.seconds > 0))
        expect("the counter under the lock", sections, options.rounds);
}

static void contended_describe(void) {
    lock_describe();
    member("\"nodes\": %ld, \"work\": %ld, \"outside\": %ld, ", numa_nodes, options.work, options.outside);
}

// --- barrier: centralized and sense-reversing, with work between -------------------------------------------------

static struct {
    alignas(LINE) atomic_long missing;
    alignas(LINE) atomic_int sense;
} barrier;
static struct progress {
    alignas(LINE) atomic_long round; // relaxed: the barrier orders it
} * progress;

static void barrier_prepare(void) {
    atomic_init(&barrier.missing, options.threads);
    progress = memory(sizeof *progress * (size_t)options.threads);
}

// Arriving is acquire and release, so that the last one has seen what all did before; it releases that with
// the new sense, and before that the count for the next round.
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
    struct progress *mine = &progress[w->index], *next = &progress[(w->index + 1) % options.threads];
    int sense = 0;
    for (long i = 1; i <= options.rounds; i++) {
        w->sum = compute(w->sum, part);
        atomic_store_explicit(&mine->round, i, memory_order_relaxed);
        sense = !sense;
        w->count += barrier_pass(sense);
        long seen = atomic_load_explicit(&next->round, memory_order_relaxed);
        if (seen != i && seen != i + 1) // it may have gone on to the next barrier, not through it
            fail("barrier: a thread has passed it in round %ld while its neighbour was in %ld", i, seen);
    }
}

static void barrier_check(void) { expect("the number of those who came last", total(), options.rounds); }

// --- spin-then-block: a ring with one token; a stage spins for a while, and then sleeps ---------------------------

static struct sleeper {
    alignas(LINE) _Atomic uint32_t arrived; // counts, and wraps
    atomic_uint asleep;                     // for --block futex
    pthread_mutex_t lock;                   // for --block cond
    pthread_cond_t changed;
} * sleepers;

static void spin_then_block_prepare(void) {
    tokens_prepare();
    sleepers = memory(sizeof *sleepers * (size_t)options.threads);
    for (long i = 0; i < options.threads; i++) {
        pthread_mutex_init(&sleepers[i].lock, NULL);
        pthread_cond_init(&sleepers[i].changed, NULL);
    }
    atomic_init(&sleepers[0].arrived, 1);
}

static int has_arrived(struct sleeper *s, uint32_t before) {
    return atomic_load_explicit(&s->arrived, memory_order_acquire) != before;
}

static int spin_for(struct sleeper *s, uint32_t before) {
    if (pauses) {
        for (long n = spins; n > 0; n--) {
            if (has_arrived(s, before))
                return 1;
            CPU_PAUSE();
        }
    } else {
        for (long n = spins; n > 0; n--)
            if (has_arrived(s, before))
                return 1;
    }
    return has_arrived(s, before);
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void spin_then_block(struct worker *w, struct sleeper *s, uint32_t before) {
    if (spin_for(s, before))
        return;
    w->blocked++;
    if (block_cond) {
        pthread_mutex_lock(&s->lock);
        while (!has_arrived(s, before))
            pthread_cond_wait(&s->changed, &s->lock);
        pthread_mutex_unlock(&s->lock);
        return;
    }
    // Either we see the arrival, or the other sees us asleep: both sides store, then load the other's word,
    // in one total order.
    atomic_store(&s->asleep, 1);
    while (atomic_load(&s->arrived) == before)
        if (futex(&s->arrived, FUTEX_WAIT, before) != 0 && errno != EAGAIN && errno != EINTR)
            fail("futex: %s", strerror(errno));
    atomic_store_explicit(&s->asleep, 0, memory_order_relaxed);
}

static void arrive(struct sleeper *s) {
    if (block_cond) {
        pthread_mutex_lock(&s->lock);
        atomic_fetch_add_explicit(&s->arrived, 1, memory_order_release);
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
        return;
    }
    atomic_fetch_add(&s->arrived, 1);
    if (atomic_load(&s->asleep))
        futex(&s->arrived, FUTEX_WAKE, 1);
}

static void spin_then_block_work(struct worker *w) {
    struct sleeper *mine = &sleepers[w->index], *next = &sleepers[(w->index + 1) % options.threads];
    for (long pass = 0; pass < options.rounds; pass++) {
        spin_then_block(w, mine, (uint32_t)pass);
        take_step(w, pass);
        arrive(next);
    }
}

static void spin_then_block_describe(void) {
    long blocked = 0;
    for (long i = 0; i < options.threads; i++)
        blocked += workers[i].blocked;
    member("\"spins\": %ld, \"block\": \"%s\", \"blocked\": %ld, ", spins, block_cond ? "cond" : "futex", blocked);
}

// --- sensitivity: one thread holds a lock for long, and the other spins for it ------------------------------------

static sem_t held, asked, done; // not to be spun for: only the lock is
static double freed;            // when; under the lock
static struct {
    double hold, wait, wait_cpu, late; // sums, in seconds
} times;

static void sensitivity_prepare(void) {
    one_lock_prepare();
    sem_init(&held, 0, 0);
    sem_init(&asked, 0, 0);
    sem_init(&done, 0, 0);
}

static void sem_take(sem_t *sem) {
    while (sem_wait(sem) != 0)
        if (errno != EINTR)
            fail("sem_wait: %s", strerror(errno));
}

static void hold(struct worker *w) {
    kind->lock(the_lock, &the_nodes[w->index]);
    sem_post(&held);
    sem_take(&asked); // the other is about to ask for the lock
    double begun = now();
    if (options.seconds > 0)
        while (now() - begun < options.seconds)
            w->sum = compute(w->sum, 1000);
    else
        w->sum = compute(w->sum, options.work);
    sections++;
    freed = now();
    times.hold += freed - begun;
    kind->unlock(the_lock, &the_nodes[w->index]);
    sem_take(&done);
}

static double cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void wait_for_lock(struct worker *w) {
    sem_take(&held);
    double cpu = cpu_time(), begun = now();
    sem_post(&asked);
    kind->lock(the_lock, &the_nodes[w->index]);
    double got = now();
    times.wait += got - begun;
    times.wait_cpu += cpu_time() - cpu;
    times.late += got - freed;
    if (got < freed)
        fail("sensitivity: the lock %s was taken %.3f us before it was free", kind->name, (freed - got) * 1e6);
    sections++;
    kind->unlock(the_lock, &the_nodes[w->index]);
    sem_post(&done);
}

static void sensitivity_work(struct worker *w) {
    for (long i = 1; i <= options.rounds; i++) {
        if (w->index == 0)
            hold(w);
        else
            wait_for_lock(w);
        w->count++;
    }
}

static void sensitivity_check(void) { expect("the counter under the lock", sections, 2 * options.rounds); }

// Means. wait_cpu_us is what the waiter burnt of wait_us; late_us is from the unlock to the lock.
static void sensitivity_describe(void) {
    double each = 1e6 / (double)options.rounds;
    lock_describe();
    member("\"hold_us\": %.1f, \"wait_us\": %.1f, \"wait_cpu_us\": %.1f, \"late_us\": %.1f, ", times.hold * each,
           times.wait * each, times.wait_cpu * each, times.late * each);
}

// ------------------------------------------------------------------------------------------------------------------

static const struct pattern {
    const char *name;
    void (*prepare)(void);
    void (*enter)(struct worker *); // by each thread, before the first starts to work
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
    {"sensitivity", sensitivity_prepare, NULL, sensitivity_work, sensitivity_check, sensitivity_describe, 0},
};
static const struct pattern *pattern;
static pthread_barrier_t gate;

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
    workers = memory(sizeof *workers * (size_t)options.threads);
    pthread_barrier_init(&gate, NULL, (unsigned)options.threads + 1);
    pattern->prepare();
    for (long i = 0; i < options.threads; i++) {
        workers[i].index = i;
        workers[i].sum = (uint64_t)i;
        int error = pthread_create(&workers[i].thread, NULL, start, &workers[i]);
        if (error)
            fail("thread %ld of %ld cannot be created: %s", i + 1, options.threads, strerror(error));
    }
    int contended = pattern->work == contended_work;
    pthread_barrier_wait(&gate);
    if (contended && options.seconds > 0)
        contended_lead();
    for (long i = 0; i < options.threads; i++)
        pthread_join(workers[i].thread, NULL);
    pattern->check();

    double first = INFINITY, last = 0;
    long least = workers[0].count, rounds = contended ? sections : options.rounds;
    for (long i = 0; i < options.threads; i++) {
        first = workers[i].start < first ? workers[i].start : first;
        last = workers[i].end > last ? workers[i].end : last;
        least = workers[i].count < least ? workers[i].count : least;
    }

    // report() prints the workload's name between quotes; what else there is to say follows it there.
    struct options reported = options;
    member("%s\", ", options.workload);
    if (pattern->describe)
        pattern->describe();
    if (pattern->handoffs)
        member("\"us_per_handoff\": %.4f, ", (last - first) * 1e6 / (double)rounds / (double)options.threads);
    member("\"pause\": \"%s", pauses ? "yes" : "no");
    reported.workload = members;
    report(&reported, rounds, last - first,
           contended ? (double)least * (double)options.threads / (double)(sections ? sections : 1) : -1);
}

// --- options ------------------------------------------------------------------------------------------------------

// Iterations of compute() in 100 ns: the median of short pieces.
static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

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

static const char *choice(const char *name, const char *text, const char *first, const char *second) {
    if (strcmp(text, first) && strcmp(text, second))
        fail("%s wants %s or %s, not `%s`", name, first, second, text);
    return text;
}

// Takes our own options out of the arguments, and leaves the rest to parse(); says which of those it has seen.
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
        if (options.threads != 2)
            fail("sensitivity has 2 threads");
        options.rounds = has_rounds ? options.rounds : 1;
        if (!has_work && !(options.seconds > 0))
            options.seconds = 0.1;
    }
    run_pattern();
    return 0;
}
