// build: -fopenmp -lm
// compiler@clang: clang
// build@clang: -fopenmp -lm
// Prints the results of many kinds of OpenMP loops: schedules, reductions, ordered and nested
// regions, cancellation, tasks inside loops. A result depends on how often each iteration was run,
// but not on threads or time: the output must be the same everywhere.
#include "omp_work.h"
#include "pthread_test.h"
#include <math.h>
#include <omp.h>

// LLVM 14's runtime loses the last iteration of a loop with schedule dynamic.
#ifdef __clang__
#define LAST guided
#else
#define LAST dynamic
#endif

enum { N = 600 };
static int threads;
static uint64_t out[N * 4];

// Print a hash of the first n elements of the array, and clear it.
static void print(const char *what, int n) {
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < n; i++) hash = (hash ^ out[i]) * 1099511628211u;
    printf("%s: %016llx\n", what, (unsigned long long)hash);
    memset(out, 0, sizeof out);
}

// Run iteration i and record it, so that repeated and missing iterations change the result.
static void did(long i) {
    work(i);
    uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u;
    __atomic_fetch_add(&out[i], x >> 7 | 1, __ATOMIC_RELAXED);
}

#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define LOOP(TYPE, FIRST, ...) \
    do { \
        PRAGMA(omp parallel for __VA_ARGS__) \
        for (TYPE i = FIRST; i < (TYPE)(FIRST + N); i++) did((long)(i - (FIRST))); \
        print(#TYPE " " #__VA_ARGS__, N); \
    } while (0)
#define LOOPS(...) \
    LOOP(int, -7, __VA_ARGS__); \
    LOOP(unsigned long, 3000000000u, __VA_ARGS__)

static void schedules(void) {
    LOOPS(schedule(static));
    LOOPS(schedule(static, 5));
    LOOPS(schedule(dynamic));
    LOOPS(schedule(dynamic, 5));
    LOOPS(schedule(guided));
    LOOPS(schedule(guided, 3));
    LOOPS(schedule(auto));
    LOOPS(schedule(monotonic : dynamic, 2));
    LOOPS(schedule(nonmonotonic : dynamic));
    LOOPS(schedule(nonmonotonic : dynamic, 4));
    LOOPS(schedule(monotonic : guided));
    LOOPS(schedule(nonmonotonic : guided, 4));
    static const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided,
                                        omp_sched_auto};
    for (int k = 0; k < 8; k++) {
        omp_set_schedule(kinds[k % 4] | (k >= 4 ? omp_sched_monotonic : 0), k % 3);
        LOOPS(schedule(runtime));
        LOOPS(schedule(monotonic : runtime));
        LOOPS(schedule(nonmonotonic : runtime));
    }
    omp_set_schedule(omp_sched_dynamic, 2);
#pragma omp parallel for collapse(3) schedule(dynamic, 3)
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 10; j++)
            for (int k = 0; k < 12; k++) did((i * 10 + j) * 12 + k);
    print("collapse", N);
#pragma omp parallel for simd schedule(simd : dynamic, 16)
    for (int i = 0; i < N; i++) out[i] += (uint64_t)i * 3;
    print("simd", N);
}

struct worst {
    long value, at;
};
static struct worst worse(struct worst a, struct worst b) {
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}
#pragma omp declare reduction(worse : struct worst : omp_out = worse(omp_out, omp_in)) \
    initializer(omp_priv = (struct worst){-1, -1})

static void reductions(void) {
    long sum = 5, least = 1 << 30, most = -1, bits = 0, differ = 0, all = -1, last = 0, scale = 1;
    int any = 0, every = 1;
    double half = 0;
    long array[7] = {0};
    struct worst w = {-1, -1};
#pragma omp parallel for schedule(dynamic) reduction(+ : sum, half, array[ : 7]) \
    reduction(min : least) reduction(max : most) reduction(| : bits) reduction(^ : differ) \
    reduction(& : all) reduction(|| : any) reduction(&& : every) reduction(* : scale) \
    reduction(worse : w)
    for (int i = 0; i < N; i++) {
        long x = i * 7919L % 1009;
        work(i);
        sum += x;
        half += (double)x / 2;
        array[i % 7] += x;
        least = x < least ? x : least;
        most = x > most ? x : most;
        bits |= x << (i % 20);
        differ ^= x * i;
        all &= ~(x & 3);
        any = any || x == 500;
        every = every && x >= 0;
        scale *= i % 100 == 7 ? 3 : 1;
        w = worse(w, (struct worst){x % 100, i});
    }
#pragma omp parallel for schedule(LAST) lastprivate(last)
    for (int i = 0; i < N; i++) {
        work(i);
        last = i * 7L;
    }
    printf("reductions: %ld %g %ld %ld %ld %ld %ld %d %d %ld %ld %ld %ld\n", sum, half, least, most,
           bits, differ, all, any, every, scale, w.value, w.at, last);
    for (int i = 0; i < 7; i++) printf(" %ld", array[i]);
    printf("\n");
    // The team outlives the loops, which have no barriers.
    long a = 0, b = 0, c = 0;
#pragma omp parallel reduction(+ : a)
    {
#pragma omp for schedule(guided) nowait
        for (int i = 0; i < N; i++) {
            work(i);
            a += i;
        }
#pragma omp for schedule(nonmonotonic : dynamic, 3) reduction(+ : b) nowait
        for (int i = 0; i < N; i++) b += i * 2L;
#pragma omp for schedule(runtime) reduction(task, + : c)
        for (int i = 0; i < N; i++) {
#pragma omp task in_reduction(+ : c)
            c += i * 3L;
        }
    }
    printf("of a team: %ld %ld %ld\n", a, b, c);
}

#define ORDERED(...) \
    do { \
        int n = 0; \
        PRAGMA(omp parallel for ordered __VA_ARGS__) \
        for (int i = 0; i < 300; i++) { \
            work(i); \
            _Pragma("omp ordered") out[n++] = (uint64_t)i; \
            work(i + 20); \
        } \
        print("ordered " #__VA_ARGS__, 300); \
    } while (0)

static void orders(void) {
    ORDERED(schedule(dynamic));
    ORDERED(schedule(dynamic, 4));
    ORDERED(schedule(guided));
    ORDERED(schedule(static, 2));
    for (int k = 0; k < 2; k++) {
        omp_set_schedule(k ? omp_sched_guided : omp_sched_dynamic, 3);
        ORDERED(schedule(runtime));
    }
    // Each element depends on the one above and the one to the left.
    enum { SIDE = 20 };
    static uint64_t grid[SIDE][SIDE];
    memset(grid, 0, sizeof grid);
#pragma omp parallel for ordered(2) schedule(dynamic)
    for (int i = 1; i < SIDE; i++)
        for (int j = 1; j < SIDE; j++) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
            grid[i][j] = grid[i - 1][j] * 3 + grid[i][j - 1] * 5 + (uint64_t)(i ^ j);
#pragma omp ordered depend(source)
        }
    for (int i = 0; i < SIDE; i++) memcpy(&out[i * SIDE], grid[i], sizeof grid[i]);
    print("doacross", SIDE * SIDE);
}

static void nested(void) {
    omp_set_max_active_levels(3);
#pragma omp parallel for schedule(dynamic) num_threads(5)
    for (int i = 0; i < 20; i++) {
        work(i);
#pragma omp parallel for schedule(guided) num_threads(4)
        for (int j = 0; j < 30; j++) did(i * 30 + j);
        work(i + 9);
    }
    print("nested 2", N);
    long sum = 0;
#pragma omp parallel for schedule(nonmonotonic : dynamic) num_threads(3) reduction(+ : sum)
    for (int i = 0; i < 6; i++) {
#pragma omp parallel for schedule(dynamic, 2) num_threads(3) reduction(+ : sum)
        for (int j = 0; j < 10; j++) {
#pragma omp parallel for schedule(runtime) num_threads(2) reduction(+ : sum)
            for (int k = 0; k < 10; k++) {
                did((i * 10 + j) * 10 + k);
                sum += k;
            }
        }
    }
    print("nested 3", N);
    printf("%ld\n", sum);
    omp_set_max_active_levels(1);
    // An inner region of one thread.
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 20; i++) {
#pragma omp parallel for schedule(dynamic)
        for (int j = 0; j < 30; j++) did(i * 30 + j);
    }
    print("nested serial", N);
}

// Cancels only if OMP_CANCELLATION is set; the result is the same otherwise.
static void cancelled(void) {
    for (int r = 0; r < 10; r++) {
        int found = -1;
#pragma omp parallel
#pragma omp for schedule(dynamic)
        for (int i = 0; i < N; i++) {
            work(i);
            if (i == 37 * r) {
#pragma omp atomic write
                found = i;
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
        printf("found %d", found);
        found = -1;
#pragma omp parallel
        {
#pragma omp for schedule(guided, 2)
            for (int i = 0; i < N; i++) {
                work(i);
                if (i == 11 * r + 3) {
#pragma omp atomic write
                    found = i;
#pragma omp cancel for
                }
            }
#pragma omp for schedule(dynamic, 2)
            for (int i = 0; i < N; i++) did(i);
        }
        printf(", %d", found);
        print(", and behind it", N);
        found = -1;
#pragma omp parallel
        {
#pragma omp for schedule(dynamic)
            for (int i = 0; i < N; i++) did(i);
            if (omp_get_thread_num() == r % threads) {
                found = r;
#pragma omp cancel parallel
            }
            for (int k = 0; k < 5; k++) {
#pragma omp cancellation point parallel
#pragma omp for schedule(dynamic) nowait
                for (int i = 0; i < 20; i++) work(i);
            }
#pragma omp for schedule(guided)
            for (int i = 0; i < 20; i++) work(i);
        }
        print("before it", N);
        printf("a region: %d\n", found);
    }
    int tasks = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : tasks)
    for (int i = 0; i < 40; i++) {
        int here = 0;
#pragma omp taskgroup
        for (int k = 0; k < 5; k++) {
#pragma omp task shared(here) firstprivate(k)
            {
                work(k);
#pragma omp atomic
                here++;
#pragma omp cancel taskgroup
            }
        }
        tasks += here > 0;
    }
    printf("taskgroups: %d\n", tasks);
}

static long fibonacci(int n) {
    long a, b;
    if (n < 2) return n;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

static void tasks(void) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 6; k++) {
#pragma omp task firstprivate(i, k)
            did(i * 6 + k);
        }
        if (i % 3 == 0) {
#pragma omp taskwait
        }
        if (i % 7 == 0) {
#pragma omp taskyield
        }
    }
    print("tasks", N);
#pragma omp parallel for schedule(guided)
    for (int i = 0; i < 60; i++) {
#pragma omp taskloop grainsize(2)
        for (int k = 0; k < 10; k++) did(i * 10 + k);
    }
    print("taskloops", N);
#pragma omp parallel for schedule(nonmonotonic : dynamic)
    for (int i = 0; i < 60; i++) {
        uint64_t x = (uint64_t)i;
#pragma omp task shared(x) depend(out : x)
        x = x * 7 + 1;
#pragma omp task shared(x) depend(inout : x)
        {
            work(i);
            x = x * 11 + 2;
        }
#pragma omp task shared(x) depend(in : x)
        out[i] = x;
#pragma omp taskwait
    }
    print("dependences", 60);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 24; i++) out[i] = (uint64_t)fibonacci(10 + i % 3);
    print("recursion", 24);
    // Loops beside tasks: threads that wait in the loop run no tasks.
    long sum = 0;
#pragma omp parallel
    {
#pragma omp single nowait
        for (int i = 0; i < 200; i++) {
#pragma omp task shared(sum)
            {
                work(i);
#pragma omp atomic
                sum += i;
            }
        }
#pragma omp for schedule(dynamic)
        for (int i = 0; i < N; i++) did(i);
    }
    print("beside tasks", N);
    printf("%ld\n", sum);
}

static void synchronisation(void) {
    long in_critical = 0, locked = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < N; i++) {
        work(i);
#pragma omp critical
        in_critical += i;
        omp_set_lock(&lock);
        locked += i * 2L;
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
    printf("locks: %ld %ld\n", in_critical, locked);
    int singles = 0, sizes = 0;
#pragma omp parallel reduction(+ : sizes)
    for (int r = 0; r < 8; r++) {
#pragma omp single
        singles++;
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 75; i++) did(r * 75 + i);
#pragma omp for schedule(guided)
        // written by another thread, before the barrier
        for (int i = 0; i < 75; i++) out[N + r * 75 + i] = out[r * 75 + (i + 1) % 75];
        sizes += omp_get_num_threads() == threads;
    }
    print("barriers", 2 * N);
    printf("%d %d\n", singles, sizes == 8 * threads);
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    PHASE("schedules");
    schedules();
    PHASE("reductions");
    reductions();
    PHASE("orders");
    orders();
    PHASE("nested");
    nested();
    PHASE("cancelled");
    if (omp_get_cancellation()) cancelled();
    PHASE("tasks");
    tasks();
    PHASE("synchronisation");
    synchronisation();
    return t_ok("omp_results");
}
