// Beside a program that takes all CPUs (`hogs`, natively): threads that wait for each other all the
// time (`waits`, at a barrier of pthread's; `spins`, at one of their own), and threads that only
// compute (`computes`). Both for a while, in which the number of slots changes.
#include "pthread_test.h"

enum { MS = 2500 };
static pthread_barrier_t barrier;
static long rounds; // written by the first thread, between two barriers
static int over;    // the same
static int threads;
static _Atomic int arrived;
static _Atomic unsigned phase;
static int own_barrier;

static void *hog(void *arg) {
    for (volatile unsigned long i = 0;; i++) {}
    return arg;
}

static int hogs(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    puts("hogs");
    fflush(stdout);
    for (long i = 1; i < n; i++) {
        pthread_t t;
        OK(pthread_create(&t, NULL, hog, NULL));
    }
    hog(NULL);
    return 0;
}

static uint64_t work(uint64_t x) {
    for (int i = 0; i < 5000; i++) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x;
}

static void meet(void) {
    unsigned now = phase;
    if (!own_barrier) {
        int r = pthread_barrier_wait(&barrier);
        CHECK(!r || r == PTHREAD_BARRIER_SERIAL_THREAD, "barrier: %d", r);
    } else if (++arrived == threads) {
        arrived = 0;
        phase = now + 1;
    } else {
        while (phase == now) __builtin_ia32_pause();
    }
}

static void *waits(void *arg) {
    long i = (long)arg, r = 0;
    int64_t end = t_now(CLOCK_MONOTONIC) + MS * 1000000ll;
    uint64_t x = (uint64_t)i + 1;
    for (;; r++) {
        x = work(x);
        meet();
        if (i == 0) {
            EQ(rounds, r);
            rounds++;
            over = t_now(CLOCK_MONOTONIC) >= end;
        }
        meet();
        EQ(rounds, r + 1);
        if (over) break;
    }
    CHECK(x, "no random numbers left");
    return arg;
}

static void *computes(void *arg) {
    int64_t end = t_now(CLOCK_MONOTONIC) + MS * 1000000ll;
    uint64_t x = (uint64_t)(long)arg + 1, y = x;
    while (t_now(CLOCK_MONOTONIC) < end) x = work(x), y = work(y);
    EQ(x, y);
    return arg;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "waits";
    if (!strcmp(mode, "hogs")) return hogs();
    t_watchdog();
    threads = t_threads();
    own_barrier = !strcmp(mode, "spins");
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    for (long i = 0; i < threads; i++)
        OK(pthread_create(&t[i], NULL, !strcmp(mode, "computes") ? computes : waits, (void *)i));
    for (int i = 0; i < threads; i++) OK(pthread_join(t[i], NULL));
    free(t);
    printf("ok cpus_beside\n");
    return 0;
}
