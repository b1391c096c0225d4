/* SPDX-License-Identifier: MIT */
// Programs that only synchronize, one for each pattern. The work between two waits is divided among
// the threads, so its amount does not depend on their number.
//
//     sync barrier --threads 32 --rounds 8000 --work 80000
//
// Prints one line of JSON. The time is that of the parallel phase: from when the first thread
// passes the gate that all threads have to reach, until the last one has done its part.
#define _GNU_SOURCE
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "threads.h"

struct pattern {
    const char *name;
    void (*prepare)(void);
    void (*work)(struct worker *);
    // Run by the main thread meanwhile; NULL: it only waits for the others to end.
    void (*lead)(void);
    void (*check)(void);
};
static const struct pattern *pattern;

static void *start(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(&gate);
    if (w->index == 0)
        count_from_here();
    w->start = now();
    pattern->work(w);
    w->end = now();
    return NULL;
}

// --- barrier: every thread computes its part of a round, and waits for the others ----------------

static pthread_barrier_t barrier;

static void barrier_prepare(void) {
    pthread_barrier_init(&barrier, NULL, (unsigned)options.threads);
}

static void barrier_work(struct worker *w) {
    long part = share(options.work, options.threads, w->index);
    for (long i = 0; i < options.rounds; i++) {
        w->sum = compute(w->sum, part);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            w->count++;
    }
}

static void barrier_check(void) { expect("the number of serial threads", total(), options.rounds); }

// --- cond: a broadcast wakes all threads, each computes its part, and all acknowledge ------------

static struct {
    pthread_mutex_t lock;
    pthread_cond_t go, done;
    long round, acknowledged;
} cond = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static void cond_work(struct worker *w) {
    long part = share(options.work, options.threads, w->index);
    for (long i = 0; i < options.rounds; i++) {
        pthread_mutex_lock(&cond.lock);
        while (cond.round == i)
            pthread_cond_wait(&cond.go, &cond.lock);
        pthread_mutex_unlock(&cond.lock);
        w->sum = compute(w->sum, part);
        pthread_mutex_lock(&cond.lock);
        if (++cond.acknowledged == options.threads)
            pthread_cond_signal(&cond.done);
        pthread_mutex_unlock(&cond.lock);
        w->count++;
    }
}

static void cond_lead(void) {
    for (long i = 0; i < options.rounds; i++) {
        pthread_mutex_lock(&cond.lock);
        cond.acknowledged = 0;
        cond.round = i + 1;
        pthread_cond_broadcast(&cond.go);
        while (cond.acknowledged < options.threads)
            pthread_cond_wait(&cond.done, &cond.lock);
        pthread_mutex_unlock(&cond.lock);
    }
}

static void cond_check(void) {
    expect("the number of wake-ups", total(), options.rounds * options.threads);
}

// --- mutex: one lock, short sections inside and outside ------------------------------------------

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long sections; // protected by the mutex
static atomic_int stop;

static void mutex_section(struct worker *w) {
    pthread_mutex_lock(&mutex);
    w->sum = compute(w->sum, options.work);
    sections++;
    pthread_mutex_unlock(&mutex);
    w->count++;
    w->sum = compute(w->sum, options.outside);
}

static void mutex_work(struct worker *w) {
    if (options.seconds > 0) {
        while (!atomic_load_explicit(&stop, memory_order_relaxed))
            mutex_section(w);
    } else {
        for (long i = share(options.rounds, options.threads, w->index); i > 0; i--)
            mutex_section(w);
    }
}

static void mutex_lead(void) {
    sleep_for(options.seconds);
    atomic_store(&stop, 1);
}

static void mutex_check(void) { expect("the counter under the lock", sections, total()); }

// --- sem: pairs of threads pass the turn to each other; a round is there and back ----------------

static struct pair {
    alignas(LINE) sem_t there;
    sem_t back;
} *pairs;

static void sem_prepare(void) {
    pairs = memory(sizeof *pairs * (size_t)options.threads / 2);
    for (long i = 0; i < options.threads / 2; i++) {
        sem_init(&pairs[i].there, 0, 0);
        sem_init(&pairs[i].back, 0, 0);
    }
}

static void sem_take(sem_t *sem) {
    while (sem_wait(sem) != 0)
        if (errno != EINTR)
            fail("sem_wait: %s", strerror(errno));
}

static void sem_work(struct worker *w) {
    struct pair *p = &pairs[w->index / 2];
    for (long i = share(options.rounds, options.threads / 2, w->index / 2); i > 0; i--) {
        if (w->index % 2 == 0) {
            w->sum = compute(w->sum, options.work);
            sem_post(&p->there);
            sem_take(&p->back);
        } else {
            sem_take(&p->there);
            w->sum = compute(w->sum, options.work);
            sem_post(&p->back);
        }
        w->count++;
    }
}

static void sem_check(void) {
    expect("the number of turns", total(), 2 * options.rounds);
    for (long i = 0; i < options.threads / 2; i++) {
        int value;
        sem_getvalue(&pairs[i].there, &value);
        expect("what is left in a semaphore", value, 0);
        sem_getvalue(&pairs[i].back, &value);
        expect("what is left in a semaphore", value, 0);
    }
}

// --- queue: half of the threads produce, half consume, through a bounded queue -------------------

enum { QUEUE = 64 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t not_full, not_empty;
    long head, tail;
    long item[QUEUE];
} queue = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, {0}};

static void produce(long item) {
    pthread_mutex_lock(&queue.lock);
    while (queue.tail - queue.head == QUEUE)
        pthread_cond_wait(&queue.not_full, &queue.lock);
    queue.item[queue.tail++ % QUEUE] = item;
    pthread_cond_signal(&queue.not_empty);
    pthread_mutex_unlock(&queue.lock);
}

static long consume(void) {
    pthread_mutex_lock(&queue.lock);
    while (queue.tail == queue.head)
        pthread_cond_wait(&queue.not_empty, &queue.lock);
    long item = queue.item[queue.head++ % QUEUE];
    pthread_cond_signal(&queue.not_full);
    pthread_mutex_unlock(&queue.lock);
    return item;
}

static void queue_work(struct worker *w) {
    long items = share(options.rounds, options.threads / 2, w->index / 2);
    for (long i = 1; i <= items; i++) {
        if (w->index % 2 == 0) {
            w->sum = compute(w->sum, options.work);
            produce(i);
            w->count += i;
        } else {
            w->count -= consume();
            w->sum = compute(w->sum, options.work);
        }
    }
}

static void queue_check(void) {
    expect("the number of items", queue.head, options.rounds);
    expect("items produced less items consumed", total(), 0);
}

// --- late: all threads compute; the main thread sleeps again and again, for `seconds` ------------

enum { SLEEPS = 10000, SLEEP_US = 5000 };

static void late_work(struct worker *w) {
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        w->sum = compute(w->sum, 10000);
        w->count++;
    }
}

// Measure how late the main thread wakes up: the 90th percentile, in us.
static void late_lead(void) {
    static double late[SLEEPS];
    double begun = now();
    size_t n = 0;
    while (n < SLEEPS && (n == 0 || now() - begun < options.seconds)) {
        double since = now();
        sleep_for(SLEEP_US / 1e6);
        late[n++] = (now() - since) * 1e6 - SLEEP_US;
    }
    atomic_store(&stop, 1);
    qsort(late, n, sizeof *late, ascending);
    late_us = late[n * 9 / 10] > 0 ? late[n * 9 / 10] : 0;
}

// -------------------------------------------------------------------------------------------------

static const struct pattern patterns[] = {
    {"barrier", barrier_prepare, barrier_work, NULL, barrier_check},
    {"cond", NULL, cond_work, cond_lead, cond_check},
    {"mutex", NULL, mutex_work, mutex_lead, mutex_check},
    {"sem", sem_prepare, sem_work, NULL, sem_check},
    {"queue", NULL, queue_work, NULL, queue_check},
    {"late", NULL, late_work, late_lead, NULL},
};

static void run_pattern(void) {
    int leads = pattern->lead && (pattern->lead != mutex_lead || options.seconds > 0);
    if (!strcmp(pattern->name, "sem") || !strcmp(pattern->name, "queue"))
        options.threads = options.threads < 2 ? 2 : options.threads / 2 * 2;
    if (pattern->prepare)
        pattern->prepare();
    create_threads(start, leads);
    double led = 0;
    if (leads) {
        pthread_barrier_wait(&gate);
        led = now();
        pattern->lead();
    }
    join_threads();
    if (pattern->check)
        pattern->check();

    struct span span = span_of_workers();
    if (leads)
        span_add(&span, led, led);
    int timed = pattern->lead == mutex_lead && leads;
    report(&options, timed ? sections : options.rounds, span_seconds(&span),
           timed ? fairness(sections) : -1);
}

// --- other tools of benchmarks -------------------------------------------------------------------

// Print the iterations of compute() in a microsecond, with as many threads as there are CPUs, which
// share caches, power and cores during the measurement. Each thread takes the median of many short
// pieces: few of them include slices of other programs.
enum { PIECES = 301, ITERATIONS = 200000 };

static void *calibrate_thread(void *argument) {
    struct worker *w = argument;
    double rate[PIECES];
    pthread_barrier_wait(&gate);
    for (int i = 0; i < PIECES; i++) {
        double begun = now();
        w->sum = compute(w->sum, ITERATIONS);
        rate[i] = ITERATIONS / ((now() - begun) * 1e6);
    }
    qsort(rate, PIECES, sizeof *rate, ascending);
    w->end = rate[PIECES / 2];
    return NULL;
}

static void calibrate(void) {
    create_threads(calibrate_thread, 0);
    join_threads();
    double sum = 0;
    for (long i = 0; i < options.threads; i++)
        sum += workers[i].end;
    printf("{\"workload\": \"calibrate\", \"threads\": %ld, \"iterations_per_us\": %.3f}\n",
           options.threads, sum / (double)options.threads);
}

// Threads that only wait, to measure the memory of a thread.
static void *idle_thread(void *argument) {
    (void)argument;
    pthread_barrier_wait(&gate);
    return NULL;
}

static void idle(void) {
    create_threads(idle_thread, 1);
    usleep(300000); // all threads wait by then
    long rss = status_kib("VmRSS"), tables = status_kib("VmPTE");
    pthread_barrier_wait(&gate);
    join_threads();
    printf("{\"workload\": \"idle\", \"threads\": %ld, \"rss_kib\": %ld, \"rss_kib_per_thread\": "
           "%.4f, "
           "\"page_tables_kib\": %ld, \"max_rss_kib\": %ld}\n",
           options.threads, rss, (double)rss / (double)options.threads, tables,
           status_kib("VmHWM"));
}

// Another program, which wants a CPU all the time.
__attribute__((noreturn)) static void hog(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (options.cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)options.cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0)
            fail("cannot run on CPU %ld: %s", options.cpu, strerror(errno));
    }
    for (volatile uint64_t x = 0;;)
        x = compute(x, 1000000);
}

int main(int argc, char **argv) {
    options = parse(argc, argv);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (!strcmp(options.workload, patterns[i].name))
            pattern = &patterns[i];
    if (pattern)
        run_pattern();
    else if (!strcmp(options.workload, "calibrate"))
        calibrate();
    else if (!strcmp(options.workload, "idle"))
        idle();
    else if (!strcmp(options.workload, "hog"))
        hog();
    else
        fail("unknown workload %s", options.workload);
    return 0;
}
