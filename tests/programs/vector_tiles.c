// Each thread keeps its AMX tiles and AVX-512 registers across waits, signals, handlers that use
// tiles themselves, and forks. Some threads have never used a tile.
#include "pthread_test.h"
#include <signal.h>
#include <stdatomic.h>

enum { ASK_PERMISSION = 0x1023, TILE_DATA = 18, BYTES = 1024 };
static int rounds, threads;
static pthread_barrier_t barrier;
static pthread_t thread[1024];
static atomic_int handled;

static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} all_tiles __attribute__((aligned(64))) = {.palette = 1, .row_bytes = {64, 64}, .rows = {16, 16}};

static void fill(uint8_t *bytes, uint64_t seed) {
    for (int i = 0; i < BYTES; i++) bytes[i] = (uint8_t)(t_rand(&seed) >> 8);
}

// Load two tiles with bytes made from `seed`.
static void load_tiles(uint64_t seed) {
    uint8_t bytes[BYTES];
    fill(bytes, seed);
    __asm__ volatile("ldtilecfg %0" : : "m"(all_tiles));
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm0\n\ttileloadd (%0,%1,1), %%tmm1"
                     :
                     : "r"(bytes), "r"(64L)
                     : "memory");
}

static void check_tiles(uint64_t seed, const char *when) {
    uint8_t bytes[BYTES], got[2][BYTES];
    fill(bytes, seed);
    __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(got[0]), "r"(64L) : "memory");
    __asm__ volatile("tilestored %%tmm1, (%0,%1,1)" : : "r"(got[1]), "r"(64L) : "memory");
    CHECK(!memcmp(got[0], bytes, BYTES) && !memcmp(got[1], bytes, BYTES),
          "other bytes in the tiles %s", when);
}

static void release_tiles(void) { __asm__ volatile("tilerelease"); }

static void load_vector(uint64_t seed) {
    __asm__ volatile("vpbroadcastq %0, %%zmm20" : : "r"(seed));
}

static void check_vector(uint64_t seed) {
    uint64_t got[8];
    __asm__ volatile("vmovdqu64 %%zmm20, %0" : "=m"(got));
    for (int i = 0; i < 8; i++) CHECK(got[i] == seed, "other bits in zmm20");
}

static void handler(int sig) {
    uint64_t seed = (uint64_t)handled + 77;
    (void)sig;
    load_tiles(seed);
    check_tiles(seed, "in a handler");
    release_tiles();
    handled++;
}

// The compiler does not use zmm20 here (-mno-avx), so nothing else changes it.
static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    int tiles = me % 8 == 1; // the others use AVX-512 only
    uint64_t seed = (uint64_t)me * 1000003 + 1, state = seed;
    for (int i = 0; i < rounds; i++) {
        if (tiles) load_tiles(seed + (uint64_t)i);
        load_vector(seed ^ (uint64_t)i);
        switch (t_rand(&state) % 4) {
        case 0: sched_yield(); break;
        case 1: // sometimes until the slice ends
            for (int k = 0; k < 60000; k++) __asm__ volatile("pause");
            break;
        case 2: OK(pthread_kill(thread[t_rand(&state) % (uint32_t)threads], SIGUSR1)); break;
        }
        int r = pthread_barrier_wait(&barrier);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
        check_vector(seed ^ (uint64_t)i);
        if (tiles) check_tiles(seed + (uint64_t)i, "after a wait");
        if (tiles && t_rand(&state) % 2) release_tiles();
    }
    release_tiles();
    int r = pthread_barrier_wait(&barrier); // handles are used until here
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    return NULL;
}

static void *of_child(void *arg) {
    load_tiles((uint64_t)(intptr_t)arg);
    t_sleep_us(200);
    check_tiles((uint64_t)(intptr_t)arg, "in a child");
    return NULL;
}

static void in_child(void) {
    pid_t pid = fork();
    SYS(pid);
    if (!pid) {
        pthread_t t[2];
        for (intptr_t i = 0; i < 2; i++) t[i] = t_spawn(of_child, (void *)(i + 1));
        for (int i = 0; i < 2; i++) t_join(t[i]);
        _exit(0);
    }
    int status;
    SYS(waitpid(pid, &status, 0));
    EQ(status, 0);
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    rounds = t_share(4000, threads);
    SYS(syscall(SYS_arch_prctl, ASK_PERMISSION, TILE_DATA));
    struct sigaction action = {.sa_handler = handler};
    SYS(sigaction(SIGUSR1, &action, NULL));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (int i = 0; i < threads; i++) thread[i] = pthread_self();
    for (int i = 0; i < threads; i++) thread[i] = t_spawn(work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++) t_join(thread[i]);
    in_child();
    puts("ok vector_tiles");
    return 0;
}
