/* A process with known numbers of runnable threads, until it is killed:
 *     busy N           N threads compute
 *     pulses N ON OFF  N threads compute for ON ms and sleep for OFF ms, all in step
 *     sleep N          N threads sleep
 *     wakes N          N threads wake each other for 300 ms, one at a time, and then sleep
 *     churn            threads and processes start and exit for 600 ms; then nothing runs
 *     exec             a thread other than the first executes this program with `busy 1`
 *     spawn COUNT      COUNT processes, one after the other, exit at once; then nothing runs */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *self;
static int on_ms, off_ms;
static sem_t ring[64];
static int ring_length;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void compute(double s) {
    double end = now() + s;
    while (now() < end)
        for (volatile int i = 0; i < 1000; i++) {}
}

static void *busy(void *unused) {
    for (;;) compute(1);
    return unused;
}

/* Follow the clock, so that all threads compute at the same time. */
static void *pulses(void *unused) {
    double period = (on_ms + off_ms) / 1e3;
    for (;;) {
        long turn = (long)(now() / period);
        double end = turn * period + on_ms / 1e3, next = (turn + 1) * period;
        while (now() < end) {}
        double left = next - now();
        if (left > 0) usleep((useconds_t)(left * 1e6));
    }
    return unused;
}

static void *sleeps(void *unused) {
    for (;;) pause();
    return unused;
}

static void *wakes(void *index) {
    int i = (int)(long)index;
    double end = now() + 0.3;
    while (now() < end) {
        sem_wait(&ring[i]);
        sem_post(&ring[(i + 1) % ring_length]);
    }
    sem_post(&ring[(i + 1) % ring_length]);
    return sleeps(NULL);
}

static void *short_life(void *unused) {
    compute(0.0005);
    return unused;
}

static void churn(void) {
    for (double end = now() + 0.6; now() < end;) {
        pthread_t thread[8];
        for (int i = 0; i < 8; i++) pthread_create(&thread[i], NULL, short_life, NULL);
        pid_t child = fork();
        if (child == 0) _exit(0);
        for (int i = 0; i < 8; i++) pthread_join(thread[i], NULL);
        waitpid(child, NULL, 0);
    }
}

static void *becomes_another(void *unused) {
    usleep(100000);
    execl(self, self, "busy", "1", (char *)NULL);
    perror("execl");
    exit(1);
    return unused;
}

static void start(int n, void *(*body)(void *)) {
    for (long i = 0; i < n; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, body, (void *)i) != 0) exit(1);
    }
}

int main(int argc, char **argv) {
    self = argv[0];
    const char *mode = argc > 1 ? argv[1] : "";
    int n = argc > 2 ? atoi(argv[2]) : 1;
    if (strcmp(mode, "busy") == 0) {
        start(n, busy);
    } else if (strcmp(mode, "pulses") == 0 && argc > 4) {
        on_ms = atoi(argv[3]);
        off_ms = atoi(argv[4]);
        start(n, pulses);
    } else if (strcmp(mode, "sleep") == 0) {
        start(n, sleeps);
    } else if (strcmp(mode, "wakes") == 0 && n <= 64) {
        ring_length = n;
        for (int i = 0; i < n; i++) sem_init(&ring[i], 0, i == 0);
        start(n, wakes);
    } else if (strcmp(mode, "churn") == 0) {
        churn();
    } else if (strcmp(mode, "exec") == 0) {
        start(1, becomes_another);
    } else if (strcmp(mode, "spawn") == 0) {
        for (int i = 0; i < n; i++) {
            pid_t child = fork();
            if (child == 0) _exit(0);
            waitpid(child, NULL, 0);
        }
    } else {
        return 2;
    }
    sleeps(NULL);
}
