// A baton travels around a ring of threads. Each waits for it in a loop with a time limit: by the
// time stamp counter, by its lower half, by a clock, or by the time spent in the loop. At the limit
// it starts again. No thread may leave a loop before its limit without the baton, and limits must
// be reached.
#include "spin_test.h"

#include <x86intrin.h>

enum { KINDS = 6 };

static volatile uint32_t never;

static uint64_t ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Wait until *word is `is`, or until the limit (TSC ticks or ns). Returns whether *word is `is`.
typedef int wait_f(const volatile uint32_t *word, uint32_t is, uint64_t limit);

__attribute__((noinline)) static int by_tsc(const volatile uint32_t *word, uint32_t is,
                                            uint64_t limit) {
    uint64_t from = __rdtsc();
    while (*word != is)
        if (__rdtsc() - from > limit) return 0;
    return 1;
}

__attribute__((noinline)) static int by_tsc_with_pause(const volatile uint32_t *word, uint32_t is,
                                                       uint64_t limit) {
    uint64_t until = __rdtsc() + limit;
    do {
        if (*word == is) return 1;
        _mm_pause();
    } while (__rdtsc() < until);
    return 0;
}

__attribute__((noinline)) static int by_half_of_tsc(const volatile uint32_t *word, uint32_t is,
                                                    uint64_t limit) {
    uint32_t from = (uint32_t)__rdtsc();
    while (*word != is) {
        __asm__ volatile("nop; nop; nop; nop");
        if ((uint32_t)__rdtsc() - from > (uint32_t)limit) return 0;
    }
    return 1;
}

__attribute__((noinline)) static int by_tsc_spent(const volatile uint32_t *word, uint32_t is,
                                                  uint64_t limit) {
    uint64_t last = __rdtsc(), spent = 0;
    while (*word != is) {
        unsigned cpu;
        uint64_t now = __rdtscp(&cpu);
        spent += now - last;
        last = now;
        if (spent > limit) return 0;
    }
    return 1;
}

__attribute__((noinline)) static int by_clock(const volatile uint32_t *word, uint32_t is,
                                              uint64_t limit) {
    uint64_t from = ns();
    while (*word != is)
        if (ns() - from > limit) return 0;
    return 1;
}

__attribute__((noinline, optimize("O0"))) static int by_clock_slowly(const volatile uint32_t *word,
                                                                     uint32_t is, uint64_t limit) {
    uint64_t until = ns() + limit;
    while (*word != is) {
        _mm_pause();
        if (ns() >= until) return 0;
    }
    return 1;
}

static wait_f *const waits[KINDS] = {by_tsc,       by_tsc_with_pause, by_half_of_tsc,
                                     by_tsc_spent, by_clock,          by_clock_slowly};

static void until(const volatile uint32_t *word, uint32_t is, uint32_t kind, uint64_t limit) {
    for (;;) {
        int by_ns = kind >= 4;
        uint64_t from = by_ns ? ns() : __rdtsc();
        int seen = waits[kind](word, is, limit);
        uint64_t took = (by_ns ? ns() : __rdtsc()) - from;
        if (seen) {
            CHECK(*word == is, "kind %u: %u, not %u", kind, *word, is);
            return;
        }
        CHECK(took >= limit, "kind %u: left after %lu of %lu", kind, (unsigned long)took,
              (unsigned long)limit);
        if (word == &never) return;
        sched_yield();
    }
}

static void work(int me) {
    for (uint32_t round = 1;; round++) {
        /* Usually, short limits are reached and long ones are not. */
        until(&spin_cell[me].word, round, ((uint32_t)me + round) % KINDS,
              round % 4 ? 1ull << 28 : 1 << 16);
        int more = spin_more(me, round);
        spin_pass(me, round);
        if (!more) return;
        if (round % 64 == (uint32_t)me % 64)
            until(&never, 1, ((uint32_t)me + round / 64) % KINDS, 1 << 20);
    }
}

int main(void) {
    t_watchdog();
    spin_threads = t_threads();
    spin_begin(800);
    spin_start_token();
    t_run(spin_threads, work);
    return t_ok("spin_timed");
}
