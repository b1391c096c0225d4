// Threads in a ring: each wakes the next one and waits for the previous one.
//     ring THREADS
// The first thread executes int3 after ROUNDS rounds. The program never ends.
#define _GNU_SOURCE
#include "marks.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 512, LINE = 16, BEGUN_US = 200000, ROUNDS = 1000 };
static uint32_t turn[MOST][LINE] __attribute__((aligned(64)));
static long threads;
static pthread_barrier_t barrier;

static void futex(uint32_t *word, int op, uint32_t value) {
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}
static void *work(void *arg) {
    long me = (intptr_t)arg, next = (me + 1) % threads;
    pthread_barrier_wait(&barrier);
    if (me == 0) usleep(BEGUN_US);
    for (long i = 0;; i++) {
        if (me == 0 && i == ROUNDS) __asm__ volatile("int3");
        if (me != 0 || i != 0) {
            MARK(BEFORE_WAIT);
            while (!__atomic_load_n(&turn[me][0], __ATOMIC_ACQUIRE)) futex(turn[me], FUTEX_WAIT, 0);
            MARK(AFTER_WAIT);
        }
        __atomic_store_n(&turn[me][0], 0, __ATOMIC_RELAXED);
        __atomic_store_n(&turn[next][0], 1, __ATOMIC_RELEASE);
        MARK(BEFORE_WAKE);
        futex(turn[next], FUTEX_WAKE, 1);
        MARK(AFTER_WAKE);
    }
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t t;
    threads = argc > 1 ? atol(argv[1]) : 8;
    if (threads < 2 || threads > MOST) return 2;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 1; i < threads; i++) pthread_create(&t, NULL, work, (void *)(intptr_t)i);
    work(NULL);
}
