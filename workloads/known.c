/* SPDX-License-Identifier: MIT */
// Programs of known behaviour, to test what `lissom bench` measures (docs/guide/bench.md).
//
//     known switches --rounds 500 [--threads N] [--processes N]
//
// sleep     sleep for --seconds
// switches  sleep for a millisecond: one voluntary context switch each
// waits     pass a turn on between two or more threads: on one CPU one futex wait each
// spin      wait in a loop for another thread's store for --percent of the CPU time, and compute
//           for the rest, for --seconds of CPU time
// faults    touch a new page for the first time
// moves     move from one CPU to another, by sched_setaffinity
//
// --rounds is the number of such steps of all threads of all processes together. Processes are
// forked, and waited for.
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "handover.h"

enum { PIECE = 20000, MS = 1000000 };

static long processes = 1, percent = 50;
static struct turn *turns;

static void sleep_ns(long ns) {
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static void switches_work(struct worker *w) {
    for (; w->count > 0; w->count--)
        sleep_ns(MS);
}

static void waits_work(struct worker *w) {
    for (; w->count > 0; w->count--) {
        turn_take(turns, w->index);
        turn_give(turns, (w->index + 1) % options.threads);
    }
}

static void faults_work(struct worker *w) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page * (size_t)(w->count ? w->count : 1);
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // EINVAL: the kernel has no huge pages
    if (p == MAP_FAILED || (madvise(p, bytes, MADV_NOHUGEPAGE) != 0 && errno != EINVAL))
        fail("no memory");
    for (long i = 0; i < w->count; i++)
        *(volatile char *)(p + page * (size_t)i) = 1;
    munmap(p, bytes);
}

static void moves_work(struct worker *w) {
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    if (CPU_COUNT(&all) < 2)
        fail("moves wants two CPUs");
    int cpu = sched_getcpu();
    for (; w->count > 0; w->count--) {
        do
            cpu = (cpu + 1) % CPU_SETSIZE;
        while (!CPU_ISSET(cpu, &all));
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        // The thread is on that CPU when this returns.
        if (sched_setaffinity(0, sizeof one, &one) != 0)
            fail("sched_setaffinity: %s", strerror(errno));
    }
}

// --- spin: the first thread waits and computes, the second one ends its waits --------------------

static struct {
    alignas(LINE) atomic_long flag;  // number of waits that have ended
    alignas(LINE) atomic_long begun; // number of waits that have begun; -1: no more follow
    clockid_t clock;                 // the first thread's CPU time
} spin;

static double cpu_time(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const double turn = 0.01; // CPU seconds of a wait and the work after it
static double waited, computed;  // CPU seconds

__attribute__((noinline)) static void wait_for(long number) {
    while (atomic_load_explicit(&spin.flag, memory_order_acquire) < number)
        ;
}

static void spin_and_compute(struct worker *w) {
    pthread_getcpuclockid(pthread_self(), &spin.clock); // before the second thread sees a wait
    for (long number = 1; waited + computed < options.seconds; number++) {
        double before = cpu_time(CLOCK_THREAD_CPUTIME_ID);
        atomic_store(&spin.begun, number);
        if (percent > 0)
            wait_for(number);
        double between = cpu_time(CLOCK_THREAD_CPUTIME_ID), after = between;
        waited += between - before;
        // On a busy machine a wait ends late: compute more to keep the ratio.
        double enough =
            percent > 0 ? waited * (double)(100 - percent) / (double)percent : computed + turn;
        while (computed + (after - between) < enough) {
            w->sum = compute(w->sum, PIECE);
            after = cpu_time(CLOCK_THREAD_CPUTIME_ID);
        }
        computed += after - between;
    }
    atomic_store(&spin.begun, -1);
}

// End each wait after its CPU time: sleep, and check the first thread's CPU clock in between.
static void end_waits(void) {
    for (long number = 1;; number++) {
        long begun;
        while ((begun = atomic_load(&spin.begun)) != -1 && begun < number)
            sleep_ns(MS / 4);
        if (begun == -1)
            return;
        double until = cpu_time(spin.clock) + turn * (double)percent / 100;
        while (cpu_time(spin.clock) < until && atomic_load(&spin.begun) == number)
            sleep_ns(MS / 4);
        atomic_store(&spin.flag, number);
    }
}

static void spin_work(struct worker *w) {
    if (w->index == 0)
        spin_and_compute(w);
    else if (w->index == 1)
        end_waits();
}

// -------------------------------------------------------------------------------------------------

static void sleep_work(struct worker *w) {
    (void)w;
    sleep_for(options.seconds);
}

static const struct pattern {
    const char *name;
    void (*work)(struct worker *);
} patterns[] = {
    {"sleep", sleep_work},   {"switches", switches_work}, {"waits", waits_work},
    {"faults", faults_work}, {"moves", moves_work},       {"spin", spin_work},
};
static const struct pattern *pattern;

static void *start(void *argument) {
    struct worker *w = argument;
    w->count = share(options.rounds, options.threads, w->index);
    pattern->work(w);
    w->end = now();
    return NULL;
}

// Run the threads of one process. Their start and end add a few context switches and faults.
static void run_process(void) {
    if (options.threads == 1) {
        struct worker only = {.count = options.rounds};
        pattern->work(&only);
        return;
    }
    turns = memory(sizeof *turns * (size_t)options.threads);
    atomic_store(&turns[0].mine, 1);
    create_threads(start, 0);
    join_threads();
}

int main(int argc, char **argv) {
    double begun = now();
    options = (struct options){.threads = 1, .rounds = 1};
    if (argc < 2 || argc % 2 != 0)
        fail("usage: %s PROGRAM [--threads N] [--processes N] [--rounds N] [--seconds S] "
             "[--percent N]",
             argv[0]);
    options.workload = argv[1];
    const struct setting known[] = {
        {"--threads", &options.threads, NULL}, {"--processes", &processes, NULL},
        {"--rounds", &options.rounds, NULL},   {"--percent", &percent, NULL},
        {"--seconds", NULL, &options.seconds}, {0}};
    read_settings(known, argc - 2, argv + 2);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (!strcmp(patterns[i].name, options.workload))
            pattern = &patterns[i];
    if (!pattern || options.threads < 1 || processes < 1 || percent < 0 || percent > 100)
        fail("unknown workload %s, or no thread, or no process, or more than 100 percent",
             options.workload);
    if (pattern->work == waits_work || pattern->work == spin_work)
        options.threads = options.threads < 2 ? 2 : options.threads;
    long rounds = options.rounds;
    for (long i = 0; i < processes; i++) {
        if (processes == 1) {
            run_process();
            break;
        }
        options.rounds = share(rounds, processes, i);
        pid_t child = fork();
        if (child < 0)
            fail("fork: %s", strerror(errno));
        if (child == 0) {
            run_process();
            _exit(0);
        }
    }
    for (int status; wait(&status) > 0;)
        if (status != 0)
            fail("a process has failed");
    printf("{\"workload\": \"%s\", \"threads\": %ld, \"processes\": %ld, \"rounds\": %ld, "
           "\"seconds\": %.6f, "
           "\"spin_share\": %.4f}\n",
           options.workload, options.threads, processes, rounds, now() - begun,
           waited / (waited + computed > 0 ? waited + computed : 1));
    return 0;
}
