// build: -fopenmp
// compiler@clang: clang
// build@clang: -fopenmp
// omp_ceiling CEILING: run it with teams of CEILING threads, whatever the program requests. Loops
// must compute the same with any active count.
#include "omp_work.h"
#include "pthread_test.h"
#include <omp.h>

enum { N = 400 };
static int ceiling;

// Call by pointer: clang replaces a visible call after omp_set_num_threads by that number.
static int max_threads(void) {
    static int (*volatile call)(void) = omp_get_max_threads;
    return call();
}

static void team(void) {
    int size = 0;
#pragma omp parallel
    {
#pragma omp single
        size = omp_get_num_threads();
    }
    EQ(size, ceiling);
}

#define LOOP(...) \
    do { \
        long sum = 0; \
        _Pragma(#__VA_ARGS__) for (int i = 0; i < N; i++) { \
            work(i); \
            sum += i; \
        } \
        EQ(sum, N *(N - 1) / 2); \
    } while (0)

static void loops(void) {
    for (int r = 0; r < 20; r++) {
        LOOP(omp parallel for reduction(+ : sum) schedule(dynamic));
        LOOP(omp parallel for reduction(+ : sum) schedule(guided));
        LOOP(omp parallel for reduction(+ : sum) schedule(runtime));
        LOOP(omp parallel for reduction(+ : sum));
    }
}

int main(int argc, char **argv) {
    omp_set_num_threads(2); // before any system call of the main thread
    t_watchdog();
    CHECK(argc == 2);
    ceiling = atoi(argv[1]);
    EQ(max_threads(), ceiling);
    team();
    loops();
    static const int counts[] = {1, 2, 1000, 0, 3};
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        omp_set_num_threads(counts[i]);
        EQ(max_threads(), ceiling);
        team();
        loops();
    }
    int size = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        size = omp_get_num_threads();
    }
    EQ(size, 2);
    return t_ok("omp_ceiling");
}
