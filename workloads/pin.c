/* SPDX-License-Identifier: MIT */
// A library that binds each thread of a program to one CPU, round-robin over the CPUs that the
// program may use at its start:
//
//     LD_PRELOAD=./pin.so PROGRAM
//
// A thread runs unbound if the kernel refuses to bind it because a cpuset has lost its CPU.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static cpu_set_t cpus; // allowed CPUs at the start
static atomic_int threads;
static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

// Bind the calling thread to the next CPU.
static void bind_to_next(void) {
    int left = atomic_fetch_add(&threads, 1) % CPU_COUNT(&cpus);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus) && left-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

__attribute__((constructor)) static void begin(void) {
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    if (sched_getaffinity(0, sizeof cpus, &cpus))
        abort();
    bind_to_next();
}

struct start {
    void *(*work)(void *);
    void *argument;
};

static void *bound(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    bind_to_next();
    return start.work(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *argument) {
    struct start *start = malloc(sizeof *start);
    if (!start)
        return EAGAIN;
    *start = (struct start){work, argument};
    int error = create(thread, attributes, bound, start);
    if (error)
        free(start);
    return error;
}
