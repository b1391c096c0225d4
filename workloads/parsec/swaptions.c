/* SPDX-License-Identifier: MIT */
// Prices payer swaptions by Monte Carlo simulation of forward rates with three factors.
// Specification: D. Heath, R. Jarrow, A. Morton, "Bond Pricing and the Term Structure of Interest
// Rates", Econometrica 60, 1992; discretized as in P. Glasserman, "Monte Carlo Methods in Financial
// Engineering", 2003, section 3.6; C. Bienia, S. Kumar, J. P. Singh, K. Li, "The PARSEC Benchmark
// Suite", PACT 2008.
//
// Synchronization: the main thread creates threads and joins them. Each prices its share of the
// swaptions, which take equal times, and waits for no other. Shares differ by at most one swaption;
// threads beyond the number of swaptions have none.
//
// Verification: the discretization keeps discounted prices martingales. So the mean of each
// underlying swap must be its value by today's rates, within five standard errors. A swaption must
// not be cheaper than its swap. A swaption on a swap of one period must have its exact price,
// within the same bound.
//
// Differences: each swaption has random numbers of its own, so prices do not depend on the number
// of threads. Rates are simulated up to the swaption's expiry. There are 16, 32 and 64 swaptions as
// in simsmall to simlarge, with more trials each.
#include <pthread.h>

#include "team.h"

enum {
    PERIODS = 11, // half-year periods of the rates
    EXPIRY = 7,   // first period of the swaps: they pay at the ends of periods from here on
    FACTORS = 3,
    BATCH = 16 // trials at a time
};

static const double period = 0.5; // length of a period, in years

struct problem {
    long swaptions, trials;
};

struct swaption {
    int expiry;                  // period of the expiry
    double strike, price, error; // error: standard error of the price
    double swap, swap_error;     // price and standard error of the swap
};

struct market {
    double rate[PERIODS]; // today's forward rates
    // By periods to maturity: volatility in a period, and the arbitrage-free drift.
    double shock[FACTORS][PERIODS], drift[PERIODS];
};

struct work {
    const struct market *market;
    struct swaption *swaption;
    long threads;
    struct problem problem;
};

// A batch of trials: forward rates by period, logarithm of the discount so far.
struct batch {
    double rate[PERIODS][BATCH], discount[BATCH];
};

static double polynomial(const double *coefficient, int count, double x) {
    double sum = 0;
    for (int i = count - 1; i >= 0; i--)
        sum = sum * x + coefficient[i];
    return sum;
}

// Return the inverse of the normal distribution, to 3e-9: B. Moro, "The Full Monte", Risk 8, 1995.
static double normal_inverse(double uniform) {
    static const double a[] = {2.50662823884, -18.61500062529, 41.39119773534, -25.44106049637};
    static const double b[] = {1, -8.47351093090, 23.08336743743, -21.06224101826, 3.13082909833};
    static const double c[] = {0.3374754822726147, 0.9761690190917186, 0.1607979714918209,
                               0.0276438810333863, 0.0038405729373609, 0.0003951896511919,
                               0.0000321767881768, 0.0000002888167364, 0.0000003960315187};
    double x = uniform - 0.5;
    if (fabs(x) < 0.42)
        return x * polynomial(a, 4, x * x) / polynomial(b, 5, x * x);
    double tail = polynomial(c, 9, log(-log(x > 0 ? 1 - uniform : uniform)));
    return x > 0 ? tail : -tail;
}

// Return a uniform number in (0, 1).
static double open_uniform(uint64_t seed, uint64_t index) {
    return ((double)(random_at(seed, index) >> 12) + 0.5) * 0x1p-52;
}

static struct market make_market(void) {
    struct market m = {.rate = {0}};
    for (int i = 0; i < PERIODS; i++) {
        const double volatility[FACTORS] = {0.01, 0.01 * exp(-0.1 * i), 0.001 - 0.00025 * i};
        m.rate[i] = 0.05 + 0.0025 * i;
        for (int k = 0; k < FACTORS; k++)
            m.shock[k][i] = volatility[k] * sqrt(period);
    }
    for (int k = 0; k < FACTORS; k++) {
        double sum = 0;
        for (int i = 1; i < PERIODS; i++) {
            double last = sum;
            sum += m.shock[k][i - 1] * sqrt(period);
            m.drift[i] += (sum * sum - last * last) / 2;
        }
    }
    return m;
}

// Advance the rates of all trials from period `now` to the next. normal: variables by factor and
// trial.
static void step(struct batch *b, const struct market *m, int now, const double *normal) {
    for (int t = 0; t < BATCH; t++)
        b->discount[t] -= b->rate[now][t] * period;
    for (int i = now + 1; i < PERIODS; i++) {
        int ahead = i - now;
        for (int t = 0; t < BATCH; t++) {
            double change = m->drift[ahead];
            for (int k = 0; k < FACTORS; k++)
                change += m->shock[k][ahead - 1] * normal[k * BATCH + t];
            b->rate[i][t] += change;
        }
    }
}

// Return the value, at `now`, of a swap that receives the floating rate and pays `strike` until the
// last period. rate[i * stride]: rate of period i.
static double swap_value(const double *rate, int stride, int now, double strike) {
    double bond = 1, fixed = 0, sum = 0;
    for (int i = now; i < PERIODS; i++) {
        sum += rate[i * stride] * period;
        bond = exp(-sum);
        fixed += strike * period * bond;
    }
    return 1 - bond - fixed;
}

static void start_batch(struct batch *b, const struct market *m) {
    for (int t = 0; t < BATCH; t++) {
        b->discount[t] = 0;
        for (int i = 0; i < PERIODS; i++)
            b->rate[i][t] = m->rate[i];
    }
}

static double standard_error(double sum, double squares, long trials) {
    double mean = sum / (double)trials;
    return sqrt((squares / (double)trials - mean * mean) / (double)trials);
}

static void price_swaption(struct swaption *s, const struct market *m, uint64_t seed, long trials) {
    double sum = 0, squares = 0, swaps = 0, swap_squares = 0;
    uint64_t drawn = 0;
    for (long trial = 0; trial < trials; trial += BATCH) {
        struct batch b;
        start_batch(&b, m);
        for (int now = 0; now < s->expiry; now++) {
            double normal[FACTORS * BATCH];
            for (int i = 0; i < FACTORS * BATCH; i++)
                normal[i] = normal_inverse(open_uniform(seed, drawn++));
            step(&b, m, now, normal);
        }
        for (int t = 0; t < BATCH; t++) {
            double swap =
                exp(b.discount[t]) * swap_value(&b.rate[0][t], BATCH, s->expiry, s->strike);
            double payoff = swap > 0 ? swap : 0;
            sum += payoff;
            squares += payoff * payoff;
            swaps += swap;
            swap_squares += swap * swap;
        }
    }
    s->price = sum / (double)trials;
    s->error = standard_error(sum, squares, trials);
    s->swap = swaps / (double)trials;
    s->swap_error = standard_error(swaps, swap_squares, trials);
}

static void price_share(long id, void *shared) {
    struct work *w = shared;
    long from = share_start(w->problem.swaptions, w->threads, id);
    long to = share_start(w->problem.swaptions, w->threads, id + 1);
    for (long i = from; i < to; i++)
        price_swaption(w->swaption + i, w->market, (uint64_t)(10 + i), w->problem.trials);
}

static double discount_until(const struct market *m, int expiry) {
    double sum = 0;
    for (int i = 0; i < expiry; i++)
        sum += m->rate[i] * period;
    return exp(-sum);
}

// Return the swap's value by today's rates, which needs no model.
static double todays_value(const struct market *m, const struct swaption *s) {
    return discount_until(m, s->expiry) * swap_value(m->rate, 1, s->expiry, s->strike);
}

static double normal_below(double x) { return erfc(-x / sqrt(2)) / 2; }

// Return the exact price of a swaption on a swap of one period: a put option on a bond, whose
// logarithm is normally distributed.
static double caplet_price(const struct market *m, double strike) {
    double face = 1 + strike * period, variance = 0;
    for (int k = 0; k < FACTORS; k++)
        for (int i = 0; i < PERIODS - 1; i++)
            variance += m->shock[k][i] * m->shock[k][i] * period * period;
    double now = discount_until(m, PERIODS - 1), bond = face * discount_until(m, PERIODS);
    double root = sqrt(variance), d1 = log(bond / now) / root + root / 2;
    return now * normal_below(root - d1) - bond * normal_below(-d1);
}

static void check_swaptions(struct suite *s, const struct work *w) {
    for (long i = 0; i < w->problem.swaptions; i++) {
        const struct swaption *o = w->swaption + i;
        double errors = (o->swap - todays_value(w->market, o)) / o->swap_error;
        suite_verify(s, "a swap, in standard errors", errors, 0, 5);
        if (!(o->price >= o->swap && o->price >= 0 && o->price < 1))
            fail("%s: swaption %ld costs %g, with an error of %g", s->program, i, o->price,
                 o->error);
    }
    struct swaption caplet = {.expiry = PERIODS - 1, .strike = 0.075};
    price_swaption(&caplet, w->market, 1, w->problem.trials);
    double errors = (caplet.price - caplet_price(w->market, caplet.strike)) / caplet.error;
    suite_verify(s, "a swap of one period, in standard errors", errors, 0, 5);
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct problem problems[] = {{16, 8000}, {16, 60000}, {32, 120000}, {64, 240000}};
    struct suite s = suite_parse("parsec/swaptions", classes, argc, argv);
    struct market market = make_market();
    struct work w = {&market, NULL, s.threads, problems[s.class_index]};
    size_t bytes = sizeof *w.swaption * (size_t)w.problem.swaptions;
    w.swaption = suite_memory(bytes);
    do {
        memset(w.swaption, 0, bytes);
        for (long i = 0; i < w.problem.swaptions; i++) {
            w.swaption[i].expiry = EXPIRY;
            w.swaption[i].strike = 0.04 + 0.05 * (double)i / (double)w.problem.swaptions;
        }
        suite_start(&s);
        team_run(s.threads, price_share, &w);
        suite_stop(&s);
        check_swaptions(&s, &w);
        suite_checksum(&s, suite_hash(0, w.swaption, bytes));
    } while (suite_next(&s));
    free(w.swaption);
    return suite_report(&s);
}
