/* SPDX-License-Identifier: MIT */
// Prices European options by the closed formula of Black and Scholes, in single precision.
// Specification: F. Black, M. Scholes, "The Pricing of Options and Corporate Liabilities", Journal
// of Political Economy 81, 1973; C. Bienia, S. Kumar, J. P. Singh, K. Li, "The PARSEC Benchmark
// Suite", PACT 2008. The normal distribution is formula 26.2.17 of M. Abramowitz, I. A. Stegun,
// "Handbook of Mathematical Functions", 1964.
//
// Synchronization: the main thread creates threads and joins them. Each prices its equal part of
// the options 100 times, and waits for no other meanwhile. Parts take equal times.
//
// Verification: prices in the literature; all prices against erfc() in double precision.
//
// Differences: options are generated, not read from a file. Classes have 20 times the options of
// simsmall to simlarge, for longer runs. PACT 2008 has 8 barrier waits with 8 threads, one for
// each; this program has none, as the pthreads version of PARSEC 3.0.
#include <pthread.h>

#include "team.h"

enum { RUNS = 100, INPUTS = 5, COLUMNS = 6 }; // COLUMNS: inputs, and prices

// Inputs and results of all options. Rate and volatility are per year.
struct options_list {
    long count, threads;
    float *spot, *strike, *rate, *volatility, *years, *price;
    uint8_t *put;
};

struct known {
    float spot, strike, rate, volatility, years;
    int put;
    double price;
};

// Examples of J. C. Hull, "Options, Futures, and Other Derivatives", chapters on Black-Scholes and
// the Greek letters; and of E. G. Haug, "The Complete Guide to Option Pricing Formulas", chapter 1.
static const struct known literature[] = {
    {42, 40, 0.1f, 0.2f, 0.5f, 0, 4.7594},      {42, 40, 0.1f, 0.2f, 0.5f, 1, 0.8086},
    {49, 50, 0.05f, 0.2f, 0.3846f, 0, 2.4005},  {60, 65, 0.08f, 0.3f, 0.25f, 0, 2.1334},
    {100, 100, 0.05f, 0.2f, 1, 0, 10.45058357}, {100, 100, 0.05f, 0.2f, 1, 1, 5.57352602},
};

enum { KNOWN = sizeof literature / sizeof *literature };

static float normal(float x) {
    const float root = 0.39894228040143270286f; // square root of 1 / (2 pi)
    float k = 1 / (1 + 0.2316419f * fabsf(x));
    float sum = 1.330274429f * k - 1.821255978f;
    sum = ((sum * k + 1.781477937f) * k - 0.356563782f) * k + 0.319381530f;
    float tail = root * expf(-0.5f * x * x) * sum * k;
    return x < 0 ? tail : 1 - tail;
}

static float price(const struct options_list *o, long i) {
    float root = o->volatility[i] * sqrtf(o->years[i]);
    float drift = (o->rate[i] + o->volatility[i] * o->volatility[i] / 2) * o->years[i];
    float d1 = (logf(o->spot[i] / o->strike[i]) + drift) / root;
    float n1 = normal(d1), n2 = normal(d1 - root);
    float discounted = o->strike[i] * expf(-o->rate[i] * o->years[i]);
    if (o->put[i])
        return discounted * (1 - n2) - o->spot[i] * (1 - n1);
    return o->spot[i] * n1 - discounted * n2;
}

static void price_part(long id, void *shared) {
    const struct options_list *o = shared;
    long from = share_start(o->count, o->threads, id);
    long to = share_start(o->count, o->threads, id + 1);
    for (int run = 0; run < RUNS; run++)
        for (long i = from; i < to; i++)
            o->price[i] = price(o, i);
}

static double exact_price(const struct options_list *o, long i) {
    double spot = o->spot[i], strike = o->strike[i], rate = o->rate[i], years = o->years[i];
    double root = o->volatility[i] * sqrt(years), sign = o->put[i] ? -1 : 1;
    double d1 = log(spot / strike) / root + rate * years / root + root / 2;
    return sign * spot * erfc(-sign * d1 / sqrt(2)) / 2 -
           sign * strike * exp(-rate * years) * erfc(-sign * (d1 - root) / sqrt(2)) / 2;
}

static struct options_list make_options(long count, long threads) {
    struct options_list o = {.count = count, .threads = threads};
    float **column[] = {&o.spot, &o.strike, &o.rate, &o.volatility, &o.years, &o.price};
    for (int c = 0; c < COLUMNS; c++)
        *column[c] = suite_memory(sizeof(float) * (size_t)count);
    o.put = suite_memory((size_t)count);
    for (long i = 0; i < count; i++) {
        const float least[] = {50, 50, 0.01f, 0.1f, 0.1f}, range[] = {50, 50, 0.09f, 0.5f, 1};
        for (int c = 0; c < INPUTS; c++)
            (*column[c])[i] =
                least[c] + range[c] * (float)uniform_at(3, (uint64_t)i * 8 + (uint64_t)c);
        o.put[i] = random_at(3, (uint64_t)i * 8 + 5) & 1;
    }
    for (long i = 0; i < KNOWN; i++) {
        const struct known *k = literature + i;
        const float known[] = {k->spot, k->strike, k->rate, k->volatility, k->years};
        for (int c = 0; c < INPUTS; c++)
            (*column[c])[i] = known[c];
        o.put[i] = (uint8_t)k->put;
    }
    return o;
}

static void free_options(struct options_list *o) {
    float *column[] = {o->spot, o->strike, o->rate, o->volatility, o->years, o->price};
    for (int c = 0; c < COLUMNS; c++)
        free(column[c]);
    free(o->put);
}

static void check_prices(struct suite *s, const struct options_list *o) {
    for (long i = 0; i < o->count; i++) {
        double exact = exact_price(o, i);
        if (!(fabs(o->price[i] - exact) <= 1e-4))
            fail("%s: option %ld costs %g, not %g", s->program, i, o->price[i], exact);
    }
    for (long i = 0; i < KNOWN; i++)
        suite_verify(s, "a known price", o->price[i], literature[i].price, 1e-4);
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const long counts[] = {1000, 20 * 4096, 20 * 16384, 20 * 65536};
    struct suite s = suite_parse("parsec/blackscholes", classes, argc, argv);
    struct options_list o = make_options(counts[s.class_index], s.threads);
    do {
        memset(o.price, 0, sizeof *o.price * (size_t)o.count);
        suite_start(&s);
        team_run(o.threads, price_part, &o);
        suite_stop(&s);
        check_prices(&s, &o);
        suite_checksum(&s, suite_hash(0, o.price, sizeof *o.price * (size_t)o.count));
    } while (suite_next(&s));
    free_options(&o);
    return suite_report(&s);
}
