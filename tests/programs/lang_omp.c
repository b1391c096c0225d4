// build: -fopenmp -lm
// compiler@clang: clang
// build@clang: -fopenmp -lm
// OpenMP with libgomp and libomp: all schedules, nested and serial regions, critical, ordered,
// single, barriers, tasks and taskloops with dependencies, exact reductions, locks, dynamic team
// sizes, threadprivate data.
#include "pthread_test.h"
#include <math.h>
#include <omp.h>

static int threads;
static int tp;
#pragma omp threadprivate(tp)

static void schedules(void) {
    enum { N = 5000 };
    static int hit[N];
    static const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided,
                                        omp_sched_auto};
    for (int k = 0; k < 4; k++)
        for (int chunk = 0; chunk < 8; chunk += 7) {
            omp_set_schedule(kinds[k], chunk);
            memset(hit, 0, sizeof hit);
            long sum = 0;
#pragma omp parallel for schedule(runtime) reduction(+ : sum)
            for (int i = 0; i < N; i++) {
                hit[i]++;
                sum += i;
            }
            EQ(sum, (long)N * (N - 1) / 2);
            for (int i = 0; i < N; i++) EQ(hit[i], 1);
        }
    long sum = 0;
#pragma omp parallel for schedule(static, 3) collapse(2) reduction(+ : sum)
    for (int i = 0; i < 50; i++)
        for (int j = 0; j < 40; j++) sum += i * j;
    EQ(sum, 1225 * 780);
}

static void regions(void) {
    int rounds = t_share(6000, threads), total = 0, serial = 0, masters = 0, seen[1024] = {0};
    for (int r = 0; r < rounds; r++) {
#pragma omp parallel
        {
            EQ(omp_get_num_threads(), threads);
#pragma omp atomic
            seen[omp_get_thread_num()]++;
#pragma omp critical
            total++;
#pragma omp barrier
            EQ(total, (r + 1) * threads);
#pragma omp barrier
#pragma omp single
            serial++;
#pragma omp master
            masters++;
        }
    }
    EQ(total, rounds * threads);
    EQ(serial, rounds);
    EQ(masters, rounds);
    for (int i = 0; i < threads; i++) EQ(seen[i], rounds);
    int last = -1;
#pragma omp parallel for ordered schedule(dynamic)
    for (int i = 0; i < 200; i++) {
#pragma omp ordered
        {
            EQ(last, i - 1);
            last = i;
        }
    }
    EQ(last, 199);
}

static void team_sizes(void) {
    int sizes[] = {1, 2, threads, 3, threads, threads + 3};
    for (int r = 0; r < 12; r++) {
        int want = sizes[r % 6], n = 0;
#pragma omp parallel num_threads(want) reduction(+ : n)
        n += 1;
        EQ(n, want);
    }
    omp_set_dynamic(0);
    tp = -1;
#pragma omp parallel
    tp = omp_get_thread_num() + 100;
#pragma omp parallel
    EQ(tp, omp_get_thread_num() + 100); // kept between regions of one size
    omp_set_dynamic(1);
    int n = 0;
#pragma omp parallel reduction(+ : n)
    n += 1;
    CHECK(n >= 1 && n <= threads, "%d threads", n);
    omp_set_dynamic(0);
    omp_set_max_active_levels(2);
    int inner = 0;
#pragma omp parallel num_threads(3)
    {
#pragma omp parallel num_threads(4)
        {
            EQ(omp_get_level(), 2);
            EQ(omp_get_num_threads(), 4);
#pragma omp barrier
#pragma omp atomic
            inner++;
        }
    }
    EQ(inner, 12);
    omp_set_max_active_levels(1);
}

static long fib(int n) {
    if (n < 2) return n;
    long a, b;
#pragma omp task shared(a) if (n > 8)
    a = fib(n - 1);
#pragma omp task shared(b) if (n > 8)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}
static void tasks(void) {
    long f = 0;
#pragma omp parallel
#pragma omp single
    f = fib(18);
    EQ(f, 2584);
    static int cell[300];
    int chain = 0;
    memset(cell, 0, sizeof cell);
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop grainsize(7)
        for (int i = 0; i < 300; i++) cell[i]++;
#pragma omp taskgroup
        {
            for (int i = 0; i < 100; i++) {
#pragma omp task depend(inout : chain)
                {
                    EQ(chain, i); // dependences serialize the tasks
                    chain = i + 1;
                }
            }
        }
        EQ(chain, 100);
    }
    for (int i = 0; i < 300; i++) EQ(cell[i], 1);
}

static void locks(void) {
    omp_lock_t l;
    omp_nest_lock_t nest;
    omp_init_lock(&l);
    omp_init_nest_lock(&nest);
    long a = 0, b = 0, c = 0, d = 0;
    int rounds = t_share(10000, threads);
#pragma omp parallel
    for (int i = 0; i < rounds; i++) {
        omp_set_lock(&l);
        a++;
        omp_unset_lock(&l);
        omp_set_nest_lock(&nest);
        EQ(omp_test_nest_lock(&nest), 2);
        b++;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
        if (omp_test_lock(&l)) {
            d++;
            omp_unset_lock(&l);
        }
#pragma omp atomic update
        c += 2;
    }
    EQ(a, (long)rounds * threads);
    EQ(b, a);
    EQ(c, 2 * a);
    CHECK(d >= 0 && d <= a, "%ld", d);
    omp_destroy_lock(&l);
    omp_destroy_nest_lock(&nest);
}

// Integer sums in doubles are exact in any order, as are min, max and logical reductions.
static void reductions(void) {
    for (int r = 0; r < t_share(600, threads); r++) {
        double sum = 0, lowest = 1e9, highest = -1e9;
        unsigned bits = 0, x = 0;
        int all = 1;
#pragma omp parallel for reduction(+ : sum) reduction(min : lowest) reduction(max : highest) \
    reduction(| : bits) reduction(^ : x) reduction(&& : all)
        for (int i = 1; i <= 2000; i++) {
            sum += (double)i * i;
            lowest = fmin(lowest, -i);
            highest = fmax(highest, i);
            bits |= 1u << (i % 20);
            x ^= (unsigned)i;
            all = all && i > 0;
        }
        CHECK(sum == 2000.0 * 2001 * 4001 / 6, "sum %.17g", sum);
        CHECK(lowest == -2000 && highest == 2000 && bits == 0xfffff && x == 2000 && all,
              "%g %g %x %u %d", lowest, highest, bits, x, all);
    }
}
static void *other_master(void *arg) { // a pthread with its own team, concurrent with main's
    int n = 0;
    for (int r = 0; r < 6; r++) {
#pragma omp parallel num_threads(3) reduction(+ : n)
        n += 1;
    }
    EQ(n, 18);
    return arg;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    PHASE("schedules");
    schedules();
    PHASE("regions");
    regions();
    PHASE("team sizes");
    team_sizes();
    PHASE("tasks");
    tasks();
    PHASE("locks");
    locks();
    PHASE("reductions");
    reductions();
    PHASE("masters in other threads");
    t_run(4, other_master);
    return t_ok("lang_omp");
}
