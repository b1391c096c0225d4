// Stands for a user's program with more threads than CPUs: `app --threads N` adds numbers in N
// threads, with a barrier after each round, and checks the sum. The runtime itself reports with
// LISSOM_VERBOSE=1 that it is active.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 200 };
static pthread_barrier_t barrier;
static long sum;

static void *work(void *number) {
    for (int round = 0; round < ROUNDS; round++) {
        __atomic_add_fetch(&sum, (long)number, __ATOMIC_RELAXED);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    long threads = argc == 3 && strcmp(argv[1], "--threads") == 0 ? atol(argv[2]) : 16;
    pthread_t *thread = calloc((size_t)threads, sizeof *thread);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(i + 1))) return 1;
    for (long i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    free(thread);
    // 1 + 2 + ... + threads, in each round
    long wanted = ROUNDS * threads * (threads + 1) / 2;
    printf("%s: %ld threads\n", sum == wanted ? "ok" : "WRONG", threads);
    return sum != wanted;
}
