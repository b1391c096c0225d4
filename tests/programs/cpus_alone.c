/* SPDX-License-Identifier: MIT */
// A thread that computes alone may use all CPUs, though it was bound to one CPU while others ran.
// The others wait or have ended; they ran all at a time or one after the other.
#include "cpus_change.h"

static int n_threads, n_cpus, members, laps;
static int lap_turn; // under mutex; final value: members * laps

// Run one at a time, in the order of their numbers.
static void *one_by_one(void *arg) {
    int i = (int)(intptr_t)arg;
    pthread_mutex_lock(&mutex);
    for (int lap = 0; lap < laps; lap++) {
        while (lap_turn != lap * members + i) pthread_cond_wait(&turn_changed, &mutex);
        lap_turn++;
        pthread_cond_broadcast(&turn_changed);
    }
    while (!stop) pthread_cond_wait(&turn_changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *at_a_time(void *arg) {
    int i = (int)(intptr_t)arg;
    for (int lap = 0; lap < laps; lap++) {
        pthread_mutex_lock(&mutex);
        guarded++;
        pthread_mutex_unlock(&mutex);
        compute(5);
    }
    pthread_mutex_lock(&mutex);
    lap_turn += laps;
    pthread_cond_broadcast(&turn_changed);
    while (!stop && i >= 0) pthread_cond_wait(&turn_changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

// Compute until all CPUs are allowed, for at most ten seconds. Pre: no other thread runs.
static void all_are_allowed(const char *when) {
    int64_t end = t_now(CLOCK_MONOTONIC) + 10000000000;
    while (c_cpus_allowed() < n_cpus && t_now(CLOCK_MONOTONIC) < end) compute(100);
    CHECK(c_cpus_allowed() == n_cpus, "%s: %d CPUs, not %d", when, c_cpus_allowed(), n_cpus);
}

static void alone_after(void *(*kind)(void *), const char *when) {
    pthread_t t[1024];
    stop = lap_turn = 0;
    for (int i = 0; i < n_threads; i++) t[i] = t_spawn(kind, (void *)(intptr_t)i);
    pthread_mutex_lock(&mutex);
    while (lap_turn < members * laps) pthread_cond_wait(&turn_changed, &mutex);
    pthread_mutex_unlock(&mutex);
    all_are_allowed(when);
    pthread_mutex_lock(&mutex);
    stop = 1;
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < n_threads; i++) t_join(t[i]);
    all_are_allowed("the others have ended");
}

int main(void) {
    t_watchdog();
    cpu_set_t all;
    SYS(sched_getaffinity(0, sizeof all, &all));
    n_cpus = CPU_COUNT(&all);
    n_threads = members = t_threads();
    laps = 200;
    for (int round = 0; round < 3; round++) {
        alone_after(one_by_one, "one by one");
        alone_after(at_a_time, "all at a time");
    }
    return t_ok("cpus_alone");
}
