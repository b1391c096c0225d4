// build: -fopenmp
// compiler@clang: clang
// build@clang: -fopenmp
// omp_teams [MOST]: the teams of all kinds of parallel regions have the requested size, or MOST if
// that is smaller. Results must be the same.
#include "omp_work.h"
#include "pthread_test.h"
#include <omp.h>

enum { N = 200 };
static int most = 1024, threads;

static int least(int a, int b) { return a < b ? a : b; }

// Called by each thread of a team. The team must have the expected size, and each thread is
// counted.
static void here(int asked, int *seen) {
    EQ(omp_get_num_threads(), least(asked, most));
#pragma omp atomic
    seen[omp_get_thread_num()]++;
}

#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define REGION(ASKED, ...) \
    do { \
        int seen[1024] = {0}, asked = ASKED; \
        PRAGMA(omp parallel __VA_ARGS__) \
        here(asked, seen); \
        for (int i = 0; i < 1024; i++) EQ(seen[i], i < least(asked, most)); \
    } while (0)
#define LOOP(ASKED, ...) \
    do { \
        long sum = 0; \
        PRAGMA(omp parallel for reduction(+ : sum) __VA_ARGS__) \
        for (int i = 0; i < N; i++) { \
            EQ(omp_get_num_threads(), least(ASKED, most)); \
            work(i); \
            sum += i; \
        } \
        EQ(sum, N *(N - 1) / 2); \
    } while (0)

static void sections(void) {
    int done = 0;
#pragma omp parallel sections num_threads(3)
    {
#pragma omp section
        {
            EQ(omp_get_num_threads(), least(3, most));
#pragma omp atomic
            done++;
        }
#pragma omp section
        {
#pragma omp atomic
            done++;
        }
    }
    EQ(done, 2);
}

static void nested(void) {
    long sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel for num_threads(4) schedule(dynamic) reduction(+ : sum)
    for (int i = 0; i < 8; i++) {
        EQ(omp_get_num_threads(), least(4, most));
#pragma omp parallel for num_threads(3) reduction(+ : sum)
        for (int k = 0; k < 20; k++) {
            EQ(omp_get_num_threads(), least(3, most));
            work(k);
            sum += k;
        }
    }
    EQ(sum, 8 * 190);
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel
        EQ(omp_get_num_threads(), 1);
    }
}

static void task_reduction(void) {
    long sum = 0;
#pragma omp parallel reduction(task, + : sum)
    {
        EQ(omp_get_num_threads(), least(threads, most));
#pragma omp single
        for (int i = 0; i < 50; i++) {
#pragma omp task in_reduction(+ : sum)
            sum += i;
        }
    }
    EQ(sum, 1225);
}

static void regions(void) {
    EQ(omp_get_max_threads(), threads);
    REGION(threads);
    REGION(threads, num_threads(asked));
    REGION(2, num_threads(asked));
    REGION(1, num_threads(asked));
#ifdef __clang__ // LLVM 14 would apply the 7 to the next region
    REGION(1, if (asked == 0));
#else
    REGION(1, if (asked == 0) num_threads(7));
#endif
    REGION(threads);
    LOOP(threads, );
    LOOP(threads, schedule(static, 3));
    LOOP(threads, schedule(dynamic));
    LOOP(5, schedule(dynamic) num_threads(5));
    LOOP(threads, schedule(guided));
    LOOP(threads, schedule(runtime));
    LOOP(3, schedule(monotonic : runtime) num_threads(3));
    LOOP(threads, schedule(nonmonotonic : runtime));
    LOOP(threads, ordered schedule(dynamic));
    sections();
    nested();
    task_reduction();
    EQ(omp_get_max_threads(), threads);
}

static void *another(void *arg) { // a thread with its own default
    omp_set_num_threads(3);
    for (int r = 0; r < 20; r++) {
        REGION(3);
        REGION(2, num_threads(asked));
    }
    return arg;
}

int main(int argc, char **argv) {
    t_watchdog();
    if (argc > 1) most = atoi(argv[1]);
    threads = t_threads();
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    regions();
    t_run(4, another);
    omp_set_num_threads(threads = 1);
    regions();
    return t_ok("omp_teams");
}
