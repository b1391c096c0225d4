// build: -fopenmp
// compiler@clang: clang
// build@clang: -fopenmp
// Threads that OpenMP has bound to places of one CPU each (OMP_PROC_BIND, OMP_PLACES). The threads
// and their children must see that; teams of any size meet at barriers.
#include "pthread_test.h"
#include <omp.h>

static int cpus_of_caller(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    SYS(sched_getaffinity(0, sizeof set, &set));
    return CPU_COUNT(&set);
}

static void team(int threads, int rounds) {
    int places = 0, sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : places, sum)
    {
        places += cpus_of_caller();
        for (int i = 0; i < rounds; i++) {
            sum++;
#pragma omp barrier
        }
    }
    EQ(places, threads); // one for each
    EQ(sum, threads * rounds);
}

int main(void) {
    t_watchdog();
    int threads = t_threads(), status;
    CHECK(omp_get_num_places() > 0 && omp_get_proc_bind() != omp_proc_bind_false);
    EQ(cpus_of_caller(), 1);
    team(2, 100);
    for (int i = 0; i < 5; i++) team(threads, t_share(4000, threads));
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int i = 0; i < omp_get_num_places(); i++) {
        int cpu;
        EQ(omp_get_place_num_procs(i), 1);
        omp_get_place_proc_ids(i, &cpu);
        CPU_SET(cpu, &all);
    }
#ifdef __clang__
    int wanted = CPU_COUNT(&all); // libomp unbinds the child
#else
    int wanted = 1;
#endif
    pid_t pid = fork();
    SYS(pid);
    if (!pid) _exit(cpus_of_caller());
    SYS(waitpid(pid, &status, 0));
    EQ(WEXITSTATUS(status), wanted);
    team(2, 10);
    return t_ok("omp_places");
}
