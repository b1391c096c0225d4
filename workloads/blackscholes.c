/* SPDX-License-Identifier: MIT */
// Prices of options, as blackscholes of PARSEC. One thread reads the options, which are text. All
// threads price a fixed part each, several times, and one thread writes the prices. Not malleable:
// the parts and the number of threads are fixed. --size: options.
#include <math.h>
#include <pthread.h>

#include "mix.h"

enum { RUNS = 5, RECORD = 64 };
static struct mix mix;
static struct option {
    double spot, strike, rate, volatility, time;
    int put;
    double price;
} *option;
static char (*input)[RECORD], (*output)[RECORD];
static pthread_barrier_t begin, end;

static double cumulative(double x) { return erfc(-x * 0.7071067811865476) / 2; }

static double price(const struct option *o) {
    double root = o->volatility * sqrt(o->time);
    double d1 =
        (log(o->spot / o->strike) + (o->rate + o->volatility * o->volatility / 2) * o->time) / root;
    double d2 = d1 - root, discounted = o->strike * exp(-o->rate * o->time);
    if (o->put)
        return discounted * cumulative(-d2) - o->spot * cumulative(-d1);
    return o->spot * cumulative(d1) - discounted * cumulative(d2);
}

static void price_part(long index) {
    long from = mix.size * index / mix.threads, to = mix.size * (index + 1) / mix.threads;
    for (int run = 0; run < RUNS; run++)
        for (long i = from; i < to; i++)
            option[i].price = price(&option[i]);
}

static void *work(void *argument) {
    for (;;) {
        pthread_barrier_wait(&begin);
        price_part((long)argument);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

static void make_input(void) {
    for (long i = 0; i < mix.size; i++) {
        uint64_t n = (uint64_t)i * 5;
        snprintf(input[i], RECORD, "%.4f %.4f %.4f %.4f %.4f %c", 50 + 50 * mix_uniform(21, n),
                 50 + 50 * mix_uniform(21, n + 1), 0.01 + 0.09 * mix_uniform(21, n + 2),
                 0.1 + 0.5 * mix_uniform(21, n + 3), 0.1 + mix_uniform(21, n + 4),
                 mix_random(22, n) % 2 ? 'P' : 'C');
    }
}

static uint64_t round_of_options(void) {
    for (long i = 0; i < mix.size; i++) {
        struct option *o = &option[i];
        char *p = input[i], kind;
        double *fields[] = {&o->spot, &o->strike, &o->rate, &o->volatility, &o->time};
        for (int k = 0; k < 5; k++)
            *fields[k] = strtod(p, &p);
        kind = p[1];
        o->put = kind == 'P';
    }
    pthread_barrier_wait(&begin);
    price_part(0);
    pthread_barrier_wait(&end);
    uint64_t hash = 0;
    for (long i = 0; i < mix.size; i++) {
        int length = snprintf(output[i], RECORD, "%.10f\n", option[i].price);
        hash = mix_hash(hash, output[i], (size_t)length);
        if (!(option[i].price > -1e-9 && option[i].price < 100))
            fail("blackscholes: option %ld is worth %g", i, option[i].price);
    }
    return hash;
}

int main(int argc, char **argv) {
    mix = mix_parse("blackscholes", 100000, 10, argc, argv);
    option = mix_memory(sizeof *option * (size_t)mix.size);
    input = mix_memory(RECORD * (size_t)mix.size);
    output = mix_memory(RECORD * (size_t)mix.size);
    make_input();
    pthread_barrier_init(&begin, NULL, (unsigned)mix.threads);
    pthread_barrier_init(&end, NULL, (unsigned)mix.threads);
    for (long i = 1; i < mix.threads; i++) {
        pthread_t thread;
        int error = pthread_create(&thread, NULL, work, (void *)i);
        if (error)
            fail("thread %ld of %ld cannot be created: %s", i + 1, mix.threads, strerror(error));
    }
    return mix_run(&mix, round_of_options);
}
