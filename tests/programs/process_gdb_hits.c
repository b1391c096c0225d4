// Threads that call checkpoint() a known number of times, computing and waiting in between. A
// debugger with a breakpoint there must count that number.
#include "pthread_test.h"

enum { CALLS = 8, THREADS = 16 };
static pthread_barrier_t barrier;

void __attribute__((noinline)) checkpoint(int n) { __asm__ volatile("" : : "r"(n) : "memory"); }

static void *work(void *arg) {
    for (int i = 0; i < CALLS; i++) {
        // slices end while the debugger works
        for (volatile int n = 0; n < 400000 * (1 + (int)(intptr_t)arg % 8); n++) {}
        checkpoint(i);
        if (i % 2) pthread_barrier_wait(&barrier);
    }
    return arg;
}

int main(void) {
    t_watchdog();
    OK(pthread_barrier_init(&barrier, NULL, THREADS));
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) t_join(t[i]);
    return t_ok("process_gdb_hits");
}
