// A pool whose workers spin endlessly for work that comes rarely: between two pieces nothing
// happens for a while. Another thread waits for the same in the kernel. All work must be done once,
// and signals must arrive.
//
//     spin_idle [yields]: call sched_yield(2) instead of `pause`
#include "spin_test.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

static volatile uint32_t done[1024], signals, over;
static uint32_t slept;
static int yields;
static sem_t sem, answered;

static void on_signal(int s) {
    (void)s;
    __atomic_add_fetch(&signals, 1, __ATOMIC_SEQ_CST);
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    for (uint32_t round = 1;; round++) {
        if (yields)
            while (spin_cell[me].word < round) sched_yield();
        else
            while (spin_cell[me].word < round) __builtin_ia32_pause();
        if (over) return arg;
        done[me] = round;
    }
}

static void *sleeper(void *arg) {
    for (;;) {
        while (sem_wait(&sem)) {}
        if (over) return arg;
        slept++;
        sem_post(&answered);
    }
}

int main(int argc, char **argv) {
    t_watchdog();
    yields = argc > 1 && !strcmp(argv[1], "yields");
    spin_threads = t_threads();
    if (spin_threads > 64) spin_threads = 64;
    signal(SIGUSR1, on_signal);
    sem_init(&sem, 0, 0);
    sem_init(&answered, 0, 0);
    pthread_t worker[64], waits;
    pthread_create(&waits, NULL, sleeper, NULL);
    for (int i = 1; i < spin_threads; i++)
        pthread_create(&worker[i], NULL, work, (void *)(intptr_t)i);
    uint32_t rounds = 12;
    for (uint32_t round = 1; round <= rounds; round++) {
        usleep(40000);
        sem_post(&sem);
        while (sem_wait(&answered)) {}
        usleep(20000);
        for (int i = 1; i < spin_threads; i++) {
            pthread_kill(worker[i], SIGUSR1);
            __atomic_store_n(&spin_cell[i].word, round, __ATOMIC_SEQ_CST);
        }
        for (int i = 1; i < spin_threads; i++)
            while (done[i] != round) __builtin_ia32_pause();
        // Wait for the handlers: a second signal would merge with a pending one, and a signal is
        // lost if its thread ends.
        while (signals != round * (uint32_t)(spin_threads - 1)) __builtin_ia32_pause();
    }
    over = 1;
    for (int i = 1; i < spin_threads; i++) spin_cell[i].word = rounds + 1;
    sem_post(&sem);
    for (int i = 1; i < spin_threads; i++) pthread_join(worker[i], NULL);
    pthread_join(waits, NULL);
    EQ(slept, rounds);
    EQ(signals, rounds * (uint32_t)(spin_threads - 1));
    return t_ok("spin_idle");
}
