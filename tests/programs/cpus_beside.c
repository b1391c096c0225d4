// Threads beside a program that takes all CPUs (`hogs`, run natively). Modes: threads that wait for
// each other all the time at a pthread barrier (`waits`) or a barrier of their own (`spins`), and
// threads that only compute (`computes`). Each mode runs for a fixed time. With the argument
// `changes` it also waits for a change of the number of slots. That takes until the kernel's
// scheduler no longer gives the program most of the CPUs.
#include "cpus_change.h"

enum { MS = 2500, MOST_MS = 20000 };
static pthread_barrier_t barrier;
static int waits_for_change;
static long rounds;      // written by the first thread between two barriers
static _Atomic int over; // written by the first thread between two barriers
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

// Return whether the test is over. Called by the first thread.
static int is_over(int64_t began) {
    static int first, changed;
    int ms = (int)((t_now(CLOCK_MONOTONIC) - began) / 1000000);
    int slots = waits_for_change ? c_slots(getpid()) : -1;
    if (!first) first = slots;
    changed |= slots != first || slots < 0;
    return ms >= MS && (changed || ms >= MOST_MS);
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
    int64_t began = t_now(CLOCK_MONOTONIC);
    uint64_t x = (uint64_t)i + 1;
    for (;; r++) {
        x = work(x);
        meet();
        if (i == 0) {
            EQ(rounds, r);
            rounds++;
            over = is_over(began);
        }
        meet();
        EQ(rounds, r + 1);
        if (over) break;
    }
    CHECK(x, "no random numbers left");
    return arg;
}

static void *computes(void *arg) {
    int64_t began = t_now(CLOCK_MONOTONIC);
    uint64_t x = (uint64_t)(long)arg + 1, y = x;
    while (!over) {
        x = work(x), y = work(y);
        if (!arg) over = is_over(began);
    }
    EQ(x, y);
    return arg;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "waits";
    if (!strcmp(mode, "hogs")) return hogs();
    waits_for_change = argc > 2 && !strcmp(argv[2], "changes");
    if (waits_for_change) c_region(argv);
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
