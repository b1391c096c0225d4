// build: -shared -fPIC -fopenmp
// compiler@clang: clang
// build@clang: -shared -fPIC -fopenmp
// The library of omp_late: loops of the OpenMP runtime that it is linked to.
#include "omp_work.h"
#include <omp.h>

long late_loops(int threads, int n);
long late_loops(int threads, int n) {
    long sum = 0;
    int last = -1, wrong = 0;
    omp_set_dynamic(0);
#pragma omp parallel for schedule(dynamic) num_threads(threads) reduction(+ : sum)
    for (int i = 0; i < n; i++) {
        work(i);
        sum += i;
    }
#pragma omp parallel for schedule(guided) num_threads(threads) reduction(+ : sum)
    for (int i = 0; i < n; i++) {
        work(i);
        sum += i * 3L;
    }
#pragma omp parallel for ordered schedule(dynamic) num_threads(threads)
    for (int i = 0; i < n / 4; i++) {
        work(i);
#pragma omp ordered
        {
            wrong += last != i - 1;
            last = i;
        }
    }
    return wrong ? -1 : sum;
}
