/* SPDX-License-Identifier: MIT */
// The barrier pattern of sync.c in OpenMP: the same work, and the barrier of the compiler's OpenMP
// library.
//
//     sync_omp gomp-barrier --threads 32 --rounds 8000 --work 80000
#include <omp.h>

#include "sync.h"

int main(int argc, char **argv) {
    struct options o = parse(argc, argv);
    if (strcmp(o.workload, "gomp-barrier"))
        fail("unknown workload %s", o.workload);
    struct span span = {0, 0};
    long team = 0, passed = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads((int)o.threads) reduction(+ : passed)
    {
        long index = omp_get_thread_num();
        long part = share(o.work, o.threads, index);
        uint64_t sum = (uint64_t)index;
#pragma omp single
        {
            team = omp_get_num_threads();
            count_from_here();
        }
        // The barrier at the end of `single` is the gate: all threads have started.
        double begun = now();
        for (long i = 0; i < o.rounds; i++) {
            sum = compute(sum, part);
            passed += sum != 0; // keeps the sum alive
#pragma omp barrier
        }
        double ended = now();
#pragma omp critical
        span_add(&span, begun, ended);
    }
    if (team != o.threads)
        fail("OpenMP made a team of %ld threads, not %ld", team, o.threads);
    if (passed == 0)
        fail("no thread has computed anything");
    report(&o, o.rounds, span_seconds(&span), -1);
    return 0;
}
