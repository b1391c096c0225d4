// build: -fopenmp
// Ordered loops with a task reduction: libgomp's functions that begin them have eight arguments.
#include <stdio.h>
#include <stdlib.h>

enum { N = 60 };
static long sum, next;

static void check(const char *what, long is, long wanted) {
    if (is == wanted) return;
    printf("FAIL omp_reductions: %s: %ld, expected %ld\n", what, is, wanted);
    exit(1);
}
#define PRAGMA(text) _Pragma(#text)
#define LOOP(type, last, how) \
    static void loop_##type##_##how(void) { \
        sum = 0; \
        next = 1; \
        PRAGMA(omp parallel) \
        { \
            PRAGMA(omp for ordered(1) reduction(task, + : sum) schedule(how, 2)) \
            for (type i = 1; i <= last; i++) { \
                PRAGMA(omp task in_reduction(+ : sum)) \
                sum += (long)i; \
                PRAGMA(omp ordered depend(sink : i - 1)) \
                check("order", next++, (long)i); \
                PRAGMA(omp ordered depend(source)) \
            } \
        } \
        check(#type " " #how, sum, N *(N + 1) / 2); \
    }
typedef unsigned long long large;
static volatile large many = N;
LOOP(int, N, static)
LOOP(int, N, dynamic)
LOOP(int, N, guided)
LOOP(large, many, static)
LOOP(large, many, dynamic)
LOOP(large, many, guided)

int main(void) {
    for (int round = 0; round < 30; round++) {
        loop_int_static();
        loop_int_dynamic();
        loop_int_guided();
        loop_large_static();
        loop_large_dynamic();
        loop_large_guided();
    }
    puts("ok omp_reductions");
    return 0;
}
