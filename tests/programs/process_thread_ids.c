// The kernel reuses thread ids. State kept for the previous thread with an id must not apply to the
// next one: its mask, its signals.
#include "pthread_test.h"
#include <signal.h>

static pthread_barrier_t barrier;
static __thread int wants_signal;
static volatile sig_atomic_t signals;
static int only_cpu;
static volatile int stop;

static pid_t tid(void) { return (pid_t)syscall(SYS_gettid); }
static int cpu(void) {
    unsigned n;
    SYS(syscall(SYS_getcpu, &n, NULL, NULL));
    return (int)n;
}
static void meet(void) {
    int e = pthread_barrier_wait(&barrier);
    CHECK(!e || e == PTHREAD_BARRIER_SERIAL_THREAD, "barrier: %d", e);
}
static void on_signal(int sig) {
    EQ(sig, SIGUSR1);
    CHECK(wants_signal, "another thread's signal");
    signals++;
}

// several, so that state of an id's previous thread may still exist
enum { FIRST = 8 };
static void *first(void *id) {
    *(pid_t *)id = tid();
    return NULL;
}
static void *second(void *id) {
    *(pid_t *)id = tid();
    wants_signal = 1;
    for (int i = 0; i < 3; i++) {
        meet();
        EQ(cpu(), only_cpu);
    }
    meet();
    return NULL;
}

// More threads than slots, so that the process confines itself to as many CPUs as slots
// (LISSOM_CPUS).
static void *busy(void *unused) {
    while (!stop);
    return unused;
}

// Give the next thread this id, unless another program creates one first.
static void next_id(pid_t id) {
    FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "w");
    CHECK(f && fprintf(f, "%d", (int)id - 1) > 0 && !fclose(f), "ns_last_pid: %s", strerror(errno));
}

int main(void) {
    t_watchdog();
    cpu_set_t all, one;
    int cpus[CPU_SETSIZE], n_cpus = 0;
    SYS(sched_getaffinity(0, sizeof all, &all));
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all)) cpus[n_cpus++] = i;
    pthread_attr_t attributes;
    OK(pthread_attr_init(&attributes));
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &a, NULL));
    OK(pthread_barrier_init(&barrier, NULL, 2));
    pthread_t beside[3];
    for (int i = 0; i < 3; i++) beside[i] = t_spawn(busy, NULL);
    int again = 0;
    for (int i = 0; i < 2000 && again < 50; i++) {
        pthread_t t, firsts[FIRST];
        pid_t before[FIRST], after;
        for (int n = 0; n < FIRST; n++) OK(pthread_create(&firsts[n], NULL, first, &before[n]));
        for (int n = 0; n < FIRST; n++) OK(pthread_join(firsts[n], NULL));
        CPU_ZERO(&one);
        CPU_SET(only_cpu = cpus[i % n_cpus], &one);
        OK(pthread_attr_setaffinity_np(&attributes, sizeof one, &one));
        next_id(before[i % FIRST]);
        OK(pthread_create(&t, &attributes, second, &after));
        for (int n = 0; n < 3; n++) meet();
        if (after == before[i % FIRST]) again++;
        signals = 0;
        OK(pthread_kill(t, SIGUSR1));
        while (!signals) t_sleep_us(100);
        meet();
        OK(pthread_join(t, NULL));
        EQ(signals, 1);
    }
    stop = 1;
    for (int i = 0; i < 3; i++) t_join(beside[i]);
    EQ(again, 50);
    return t_ok("process_thread_ids");
}
