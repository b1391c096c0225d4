// build: -fopenmp
// compiler@clang: clang
// build@clang: -fopenmp
// Dynamically scheduled loops: every schedule, type, stride and edge, with reductions, ordered,
// nested and cancelled regions, tasks, sequences without barriers, and short loops. Each iteration
// must run exactly once. With an argument the CPUs change all the time.
#include "cpus_change.h"
#include <limits.h>
#include <omp.h>

// Distance in steps that loops keep from the limits of a type. GCC's go up to the last value;
// LLVM's library loses loops whose chunks end beyond it.
#ifdef __clang__
enum { AWAY = 2000 };
#else
enum { AWAY = 0 };
#endif
enum { MOST = 4000 };
static int threads;
static unsigned char hit[MOST];

// Make loops last long enough for threads to be suspended.
static void work(long i) {
    static _Thread_local volatile unsigned sink __attribute__((unused));
    unsigned n = i % 61 ? 300 : 60000;
    for (unsigned k = 0; k < n; k++) sink += k;
}

static void once(long n) {
    for (long i = 0; i < n; i++)
        if (hit[i] != 1) FAIL("iteration %ld of %ld was run %d times", i, n, hit[i]);
    memset(hit, 0, sizeof hit);
}

#define PRAGMA(...) _Pragma(#__VA_ARGS__)
// SIGN and WHILE: + and <, or - and >.
#define LOOP(NAME, TYPE, SIGN, WHILE, ...) \
    static void NAME(TYPE lo, TYPE step, long n) { \
        TYPE end = (TYPE)(lo SIGN(TYPE)((TYPE)n * step)); \
        long sum = 0; \
        PRAGMA(omp parallel for reduction(+ : sum) __VA_ARGS__) \
        for (TYPE i = lo; i WHILE end; i SIGN## = step) { \
            long k = (long)((TYPE)(0 SIGN(i - lo)) / step); \
            hit[k]++; \
            sum += k; \
            work(k); \
        } \
        EQ(sum, n *(n - 1) / 2); \
        once(n); \
    }
#define TYPES(NAME, ...) \
    LOOP(NAME##_int, int, +, <, __VA_ARGS__) \
    LOOP(NAME##_unsigned, unsigned, +, <, __VA_ARGS__) \
    LOOP(NAME##_long, long, +, <, __VA_ARGS__) \
    LOOP(NAME##_ulong, unsigned long, +, <, __VA_ARGS__) \
    LOOP(NAME##_int_down, int, -, >, __VA_ARGS__) \
    LOOP(NAME##_ulong_down, unsigned long, -, >, __VA_ARGS__) \
    static void NAME(void) { \
        static const long sizes[] = {0, 1, 33, 500}; \
        for (int s = 0; s < 4; s++) { \
            long n = sizes[s]; \
            NAME##_int(0, 1, n); \
            NAME##_int(INT_MAX - ((int)n + AWAY) * 3, 3, n); \
            NAME##_int(INT_MIN + AWAY * 5, 5, n); \
            NAME##_unsigned(UINT_MAX - ((unsigned)n + AWAY) * 7, 7, n); \
            NAME##_long(-100, 1, n); \
            NAME##_long(LONG_MAX - (n + AWAY) * 9, 9, n); \
            NAME##_ulong(5, 2, n); \
            NAME##_ulong(ULONG_MAX - ((unsigned long)n + AWAY) * 11, 11, n); \
            NAME##_int_down(INT_MIN + ((int)n + AWAY) * 4, 4, n); \
            NAME##_ulong_down(((unsigned long)n + AWAY) * 6, 6, n); \
        } \
    }

TYPES(all_static, schedule(static))
TYPES(all_static_7, schedule(static, 7))
TYPES(all_dynamic, schedule(dynamic))
TYPES(all_dynamic_7, schedule(dynamic, 7))
TYPES(all_dynamic_1000, schedule(dynamic, 1000))
TYPES(all_guided, schedule(guided))
TYPES(all_guided_7, schedule(guided, 7))
TYPES(all_auto, schedule(auto))
TYPES(all_runtime, schedule(runtime))
TYPES(all_nonmonotonic, schedule(nonmonotonic : dynamic, 3))
TYPES(all_nonmonotonic_guided, schedule(nonmonotonic : guided, 2))
TYPES(all_monotonic, schedule(monotonic : dynamic, 3))

static void ordered(void) {
    static int last;
#define ORDERED(...) \
    last = -1; \
    PRAGMA(omp parallel for ordered __VA_ARGS__) \
    for (int i = 0; i < 400; i++) { \
        work(i); \
        _Pragma("omp ordered") { \
            EQ(last, i - 1); \
            last = i; \
        } \
    } \
    EQ(last, 399);
    ORDERED(schedule(dynamic))
    ORDERED(schedule(dynamic, 7))
    ORDERED(schedule(guided, 2))
    ORDERED(schedule(runtime))
    ORDERED(schedule(static, 3))
    // A chain of dependences: iterations wait for earlier ones.
    static int after[300];
    memset(after, 0, sizeof after);
#pragma omp parallel for ordered(1) schedule(dynamic)
    for (int i = 1; i < 300; i++) {
#pragma omp ordered depend(sink : i - 1)
        after[i] = after[i - 1] + 1;
#pragma omp ordered depend(source)
    }
    EQ(after[299], 299);
}

static void nested(void) {
    int count = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel for schedule(dynamic) num_threads(6) reduction(+ : count)
    for (int i = 0; i < 24; i++) {
#pragma omp parallel for schedule(dynamic, 2) num_threads(5) reduction(+ : count)
        for (int k = 0; k < 50; k++) {
            work(k);
            count++;
        }
        work(i);
    }
    EQ(count, 24 * 50);
    omp_set_max_active_levels(1);
}

// Cancels only if OMP_CANCELLATION is set.
static void cancelled(void) {
    for (int r = 0; r < 20; r++) {
        int found = -1, run = 0;
#pragma omp parallel for schedule(dynamic, 2)
        for (int i = 0; i < 3000; i++) {
#pragma omp cancellation point for
#pragma omp atomic
            run++;
            work(i);
            if (i == 90 * r + 5) {
#pragma omp atomic write
                found = i;
#pragma omp cancel for
            }
        }
        EQ(found, 90 * r + 5);
        CHECK(run >= 1 && (run <= 3000), "%d", run);
        if (!omp_get_cancellation()) EQ(run, 3000);
    }
    // Later loops must not be affected.
    all_dynamic_int(0, 1, 500);
}

static void tasks(void) {
    int done = 0;
#pragma omp parallel
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < 3; k++) {
#pragma omp task shared(done)
            {
                work(k);
#pragma omp atomic
                done++;
            }
        }
        if (i % 3 == 0) {
#pragma omp taskwait
        }
    }
    EQ(done, 600);
}

// Loops without barriers: a fast thread is several loops ahead of the others.
static void sequences(void) {
    enum { LOOPS = 40, N = 60 };
    static int count[LOOPS][N];
    int singles = 0, sections = 0, critical = 0;
    memset(count, 0, sizeof count);
#pragma omp parallel
    {
        for (int l = 0; l < LOOPS; l += 4) {
#pragma omp for schedule(dynamic) nowait
            for (int i = 0; i < N; i++) {
                work(i + l);
                count[l][i]++;
            }
#pragma omp for schedule(guided) nowait
            for (int i = 0; i < N; i++) count[l + 1][i]++;
#pragma omp for schedule(dynamic, 1000) nowait
            for (int i = 0; i < N; i++) count[l + 2][i]++;
#pragma omp single nowait
            singles++;
#pragma omp for schedule(runtime) nowait
            for (int i = 0; i < N; i++) {
                count[l + 3][i]++;
#pragma omp critical
                critical++;
            }
#pragma omp sections nowait
            {
#pragma omp section
                {
#pragma omp atomic
                    sections++;
                }
#pragma omp section
                {
#pragma omp atomic
                    sections++;
                }
            }
#pragma omp barrier
        }
    }
    for (int l = 0; l < LOOPS; l++)
        for (int i = 0; i < N; i++) EQ(count[l][i], 1);
    EQ(singles, LOOPS / 4);
    EQ(sections, LOOPS / 2);
    EQ(critical, LOOPS / 4 * N);
}

// Iterations that cannot end before others run: threads that wait for a turn must be let in.
static void dependent(void) {
    atomic_int here = 0;
    int n = threads < 8 ? threads : 8;
#pragma omp parallel for schedule(dynamic) num_threads(n)
    for (int i = 0; i < n; i++) {
        atomic_fetch_add(&here, 1);
        while (atomic_load(&here) < n) __builtin_ia32_pause();
    }
    EQ(atomic_load(&here), n);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < threads; i++) {
        work(0);
        pthread_barrier_wait(&barrier);
    }
    pthread_barrier_destroy(&barrier);
}

static void forks(void) {
    int children = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : children)
    for (int i = 0; i < 60; i++) {
        work(i);
        if (i % 10 == 3) {
            pid_t child = fork();
            SYS(child);
            if (!child) _exit(0);
            c_ended_well(child);
            children++;
        }
    }
    EQ(children, 6);
}

static void *other_team(void *arg) { // a second team, concurrent with main's
    static atomic_long total;
    for (int r = 0; r < 10; r++) {
        long sum = 0;
#pragma omp parallel for schedule(dynamic) num_threads(5) reduction(+ : sum)
        for (int i = 0; i < 120; i++) {
            work(i);
            sum += i;
        }
        EQ(sum, 120 * 119 / 2);
        atomic_fetch_add(&total, sum);
    }
    return arg;
}

static cpu_set_t all;

static void change(pid_t pid) {
    uint64_t seed = t_seed();
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    while (getppid() == pid) {
        c_affinity(pid, &one);
        t_sleep_us((int)(t_rand(&seed) % 60000));
        c_affinity(pid, &all);
        t_sleep_us((int)(t_rand(&seed) % 60000));
    }
}

int main(int argc, char **argv) {
    (void)argv;
    t_watchdog();
    threads = t_threads();
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    SYS(sched_getaffinity(0, sizeof all, &all));
    omp_get_num_procs(); // libomp stores the current CPUs, and binds each thread to them
    pid_t changer = argc > 1 ? c_beside(change) : 0;
    static const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided,
                                        omp_sched_auto};
    PHASE("static");
    all_static();
    all_static_7();
    PHASE("dynamic");
    all_dynamic();
    all_dynamic_7();
    all_dynamic_1000();
    PHASE("guided");
    all_guided();
    all_guided_7();
    PHASE("auto");
    all_auto();
    PHASE("runtime");
    for (int k = 0; k < 4; k++) {
        omp_set_schedule(kinds[k], k);
        all_runtime();
    }
    PHASE("modifiers");
    all_nonmonotonic();
    all_nonmonotonic_guided();
    all_monotonic();
    omp_set_schedule(omp_sched_guided, 3);
    PHASE("ordered");
    ordered();
    PHASE("nested");
    nested();
    PHASE("cancelled");
    cancelled();
    PHASE("tasks");
    tasks();
    PHASE("sequences");
    for (int r = 0; r < 5; r++) sequences();
    PHASE("dependent");
    dependent();
    PHASE("forks");
    forks();
    PHASE("teams");
    t_run(4, other_team);
    if (changer) {
        SYS(kill(changer, SIGKILL));
        int status;
        waitpid(changer, &status, 0);
    }
    return t_ok("omp_loops");
}
