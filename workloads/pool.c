/* SPDX-License-Identifier: MIT */
// A pool of threads as in inference engines (llama.cpp's ggml, for example): a graph of small
// matrix-vector products. Between two products all threads meet at a barrier of atomics, where they
// spin with `pause` without a limit. Between two graphs they poll for the next one for a while, and
// then sleep at a condition variable.
//
//     pool graphs --threads 8 --rounds 200 --work 96
//
// A round is a graph of 24 products of a matrix of `work` x `work` floats, whose rows are divided
// among the threads. Prints one line of JSON as sync does, with a checksum that does not depend on
// the number of threads.
#include <stdatomic.h>

#include "threads.h"

#if defined __x86_64__ || defined __i386__
#define CPU_PAUSE() __asm__ volatile("pause")
#else
#define CPU_PAUSE() __asm__ volatile("")
#endif

enum { PRODUCTS = 24, POLLS = 20000, BETWEEN_US = 100 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    alignas(LINE) atomic_long graph; // number of the last graph that may be computed
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static struct {
    alignas(LINE) atomic_long arrived;
    alignas(LINE) atomic_long passed; // number of barriers so far
} barrier;

static float *matrix, *vector[2];

static void meet(void) {
    long before = atomic_load_explicit(&barrier.passed, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&barrier.arrived, 1, memory_order_acq_rel) ==
        options.threads - 1) {
        atomic_store_explicit(&barrier.arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&barrier.passed, before + 1, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&barrier.passed, memory_order_acquire) == before)
        CPU_PAUSE();
}

// Compute thread `index`'s rows of the product of the matrix and vector[from]: the input of the
// next product. The result is scaled, or else it would grow without bounds.
static void product(long index, int from) {
    long n = options.work, first = n * index / options.threads,
         end = n * (index + 1) / options.threads;
    for (long row = first; row < end; row++) {
        float sum = 0;
        for (long i = 0; i < n; i++)
            sum += matrix[row * n + i] * vector[from][i];
        vector[!from][row] = sum / (float)n + 0.25f;
    }
}

static void compute_graph(long index) {
    for (int i = 0; i < PRODUCTS; i++) {
        product(index, i % 2);
        meet();
    }
}

static int has(long graph) {
    return atomic_load_explicit(&pool.graph, memory_order_acquire) >= graph;
}

static void *start(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(&gate);
    if (w->index == 0)
        count_from_here();
    w->start = now();
    for (long graph = 1; graph <= options.rounds; graph++) {
        if (w->index == 0) {
            // One thread works between two graphs.
            for (double until = now() + BETWEEN_US * 1e-6; now() < until;)
                ;
            pthread_mutex_lock(&pool.lock);
            atomic_store_explicit(&pool.graph, graph, memory_order_release);
            pthread_cond_broadcast(&pool.more);
            pthread_mutex_unlock(&pool.lock);
        }
        for (long polls = POLLS; polls > 0 && !has(graph); polls--)
            CPU_PAUSE();
        if (!has(graph)) {
            pthread_mutex_lock(&pool.lock);
            w->blocked++;
            while (!has(graph))
                pthread_cond_wait(&pool.more, &pool.lock);
            pthread_mutex_unlock(&pool.lock);
        }
        compute_graph(w->index);
        w->count++;
    }
    w->end = now();
    return NULL;
}

int main(int argc, char **argv) {
    options = parse(argc, argv);
    if (strcmp(options.workload, "graphs"))
        fail("unknown workload %s", options.workload);
    if (options.work < 1 || options.work > 10000)
        fail("--work is the size of the matrix, from 1 to 10000");
    size_t n = (size_t)options.work;
    matrix = memory(n * n * sizeof *matrix);
    vector[0] = memory(n * sizeof **vector);
    vector[1] = memory(n * sizeof **vector);
    for (size_t i = 0; i < n * n; i++)
        matrix[i] = (float)(i * 2654435761u % 1000) / 1000.0f;
    for (size_t i = 0; i < n; i++)
        vector[0][i] = 1;
    create_threads(start, 0);
    join_threads();
    expect("the number of graphs", total(), options.rounds * options.threads);
    double sum = 0;
    long blocked = 0;
    for (size_t i = 0; i < n; i++)
        sum += vector[0][i];
    for (long i = 0; i < options.threads; i++)
        blocked += workers[i].blocked;
    struct span span = span_of_workers();
    struct used used = used_from_there();
    double seconds = span_seconds(&span);
    printf("{\"workload\": \"graphs\", \"threads\": %ld, \"rounds\": %ld, \"seconds\": %.6f, "
           "\"us_per_round\": %.4f, "
           "\"checksum\": \"%.6e\", \"blocked\": %ld, \"cpu_seconds\": %.6f, \"voluntary\": %ld, "
           "\"involuntary\": %ld}\n",
           options.threads, options.rounds, seconds, seconds * 1e6 / (double)options.rounds, sum,
           blocked, used.cpu_seconds, used.voluntary, used.involuntary);
    return 0;
}
