/* A ring of threads that pass a turn round: the one whose turn it is computes for about a
 * millisecond, and all others busy-wait. Counts the CPU time of its waits itself.
 *     stat_ring N          wait until the turn reaches a number
 *     stat_ring N flag     wait for a flag of one's own
 * Prints "ready", and for SIGUSR1 a line with the share of its CPU time that it has spent waiting
 * so far. Runs until it is killed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

static unsigned n;
static bool by_flag;
static _Atomic uint64_t turn;
static struct {
    _Alignas(64) atomic_bool flag;
    clockid_t clock;             /* its CPU time */
    _Atomic int64_t waited_ns;   /* CPU time of all waits that have ended */
    _Atomic int64_t waits_since; /* CPU time at which its wait began; -1: it computes */
} ring[MOST];

static int64_t cpu_time(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void compute_for(int64_t ns) {
    int64_t end = cpu_time(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (cpu_time(CLOCK_THREAD_CPUTIME_ID) < end)
        for (volatile int i = 0; i < 100 * 1000; i++);
}

__attribute__((noinline)) static void wait_for_turn(uint64_t mine) {
    while (atomic_load_explicit(&turn, memory_order_acquire) < mine) __builtin_ia32_pause();
}

__attribute__((noinline)) static void wait_for_flag(unsigned i) {
    while (!atomic_load_explicit(&ring[i].flag, memory_order_acquire)) __builtin_ia32_pause();
    atomic_store_explicit(&ring[i].flag, false, memory_order_relaxed);
}

static void *pass_round(void *number) {
    unsigned i = (unsigned)(uintptr_t)number;
    for (uint64_t mine = i;; mine += n) {
        int64_t begin = ring[i].waits_since = cpu_time(CLOCK_THREAD_CPUTIME_ID);
        if (by_flag)
            wait_for_flag(i);
        else
            wait_for_turn(mine);
        ring[i].waits_since = -1;
        ring[i].waited_ns += cpu_time(CLOCK_THREAD_CPUTIME_ID) - begin;
        compute_for(1000 * 1000);
        atomic_store_explicit(&ring[(i + 1) % n].flag, true, memory_order_release);
        atomic_store_explicit(&turn, mine + 1, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv) {
    n = argc > 1 ? (unsigned)atoi(argv[1]) : 6;
    if (n < 2 || n > MOST) return 2;
    by_flag = argc > 2 && strcmp(argv[2], "flag") == 0;
    sigset_t asked;
    sigemptyset(&asked);
    sigaddset(&asked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &asked, NULL);
    ring[0].flag = true;
    for (uintptr_t i = 0; i < n; i++) {
        pthread_t t;
        ring[i].waits_since = -1;
        if (pthread_create(&t, NULL, pass_round, (void *)i)) return 1;
        if (pthread_getcpuclockid(t, &ring[i].clock)) return 1;
    }
    for (puts("ready");;) {
        fflush(stdout);
        int signal;
        sigwait(&asked, &signal);
        int64_t waited = 0;
        for (unsigned i = 0; i < n; i++) {
            int64_t since = ring[i].waits_since;
            waited += ring[i].waited_ns + (since < 0 ? 0 : cpu_time(ring[i].clock) - since);
        }
        printf("%.4f\n", (double)waited / (double)cpu_time(CLOCK_PROCESS_CPUTIME_ID));
    }
}
