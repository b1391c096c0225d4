/* SPDX-License-Identifier: MIT */
// The permission for AMX tiles belongs to the process. Some programs request it repeatedly in each
// thread (llama.cpp: for each matrix multiplication). The answer must not depend on the carrier.
#include "pthread_test.h"
#include <sys/syscall.h>

enum { SUPPORTED = 0x1021, PERMITTED = 0x1022, ASK = 0x1023, TILE_DATA = 18, ROUNDS = 200 };
static pthread_barrier_t barrier;
static uint64_t supported, permitted;

static uint64_t mask_of(int what) {
    uint64_t mask = 0;
    EQ(t_raw(SYS_arch_prctl, what, (long)&mask, 0, 0, 0), 0);
    return mask;
}
static int has_tiles(void) { return supported >> TILE_DATA & 1; }

static void *work(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        if (has_tiles()) EQ(t_raw(SYS_arch_prctl, ASK, TILE_DATA, 0, 0, 0), 0);
        EQ(mask_of(SUPPORTED), supported);
        EQ(mask_of(PERMITTED), permitted);
        pthread_barrier_wait(&barrier);
    }
    return arg;
}

int main(void) {
    t_watchdog();
    uint64_t mask;
    if (t_raw(SYS_arch_prctl, SUPPORTED, (long)&mask, 0, 0, 0)) return t_ok("vector_permission");
    supported = mask;
    permitted = mask_of(PERMITTED) | (has_tiles() ? 1ul << TILE_DATA : 0);
    if (has_tiles()) EQ(t_raw(SYS_arch_prctl, ASK, TILE_DATA, 0, 0, 0), 0);
    int n = t_threads();
    pthread_t t[n];
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)n));
    for (int i = 1; i < n; i++) OK(pthread_create(&t[i], NULL, work, NULL));
    work(NULL);
    for (int i = 1; i < n; i++) OK(pthread_join(t[i], NULL));
    return t_ok("vector_permission");
}
