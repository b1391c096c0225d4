// Loops in which threads wait, with pauses in which no thread does, so that code is patched and
// restored while others execute it. No page of code may stay writable, neither here nor in children
// of fork, which may be created at any time.
#include "pthread_test.h"
#include <stdatomic.h>

enum { LOOPS = 4 };
static atomic_uint turn[LOOPS] __attribute__((aligned(64)));
static atomic_int round_now, stop;
static int threads;

// Define a waiting function. Each is on a page of its own and has a site of its own.
#define WAIT(n) \
    __attribute__((noinline, aligned(4096))) static void wait_##n(unsigned me, unsigned of) { \
        while (atomic_load_explicit(&turn[n], memory_order_acquire) % of != me && \
               !atomic_load_explicit(&stop, memory_order_relaxed)) \
            __builtin_ia32_pause(); \
    }
WAIT(0)
WAIT(1)
WAIT(2)
WAIT(3)
static void (*const waits[LOOPS])(unsigned, unsigned) = {wait_0, wait_1, wait_2, wait_3};

static void *work(void *arg) {
    unsigned me = (unsigned)(uintptr_t)arg, of = (unsigned)threads / LOOPS, loop = me % LOOPS;
    for (int seen = 0; !atomic_load(&stop);) {
        while (atomic_load(&round_now) == seen && !atomic_load(&stop)) t_sleep_us(1000);
        seen = atomic_load(&round_now);
        for (int i = 0; i < 10 && !atomic_load(&stop); i++) {
            waits[loop](me / LOOPS, of);
            atomic_fetch_add(&turn[loop], 1);
        }
    }
    return NULL;
}

// Return the number of mappings that are writable and executable; 0 natively.
static int open_pages(void) {
    static char text[1 << 20];
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(maps, "maps");
    size_t n = fread(text, 1, sizeof text - 1, maps);
    fclose(maps);
    text[n] = 0;
    int found = 0;
    for (char *p = text; (p = strstr(p, " rwx")); p++) found++;
    return found;
}

int main(void) {
    t_watchdog();
    threads = t_threads() / LOOPS * LOOPS;
    if (threads < LOOPS) threads = LOOPS;
    if (threads > 64) threads = 64;
    uint64_t seed = t_seed();
    pthread_t t[64];
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    for (int r = 0; r < 12; r++) {
        atomic_fetch_add(&round_now, 1);
        for (int i = 0; i < 8; i++) {
            pid_t child = fork();
            SYS(child);
            if (!child) _exit(open_pages() ? 1 : 0);
            int status;
            EQ(waitpid(child, &status, 0), child);
            EQ(status, 0);
            t_sleep_us((int)(t_rand(&seed) % 5000));
        }
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    int tries = 0;
    while (open_pages() && ++tries < 100) t_sleep_ms(20); // one may be open at this moment
    CHECK(tries < 100, "pages of code stay writable");
    return t_ok("patch_pages");
}
