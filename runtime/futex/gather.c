/* SPDX-License-Identifier: MIT */
#include "futex/gather.h"

enum {
    TRIAL = 48,       /* bulk wakes per trial */
    USE = 2048,       /* bulk wakes until the next trial; doubled if its result is the same */
    LONG_USE = 65536, /* maximum of those bulk wakes */
    /* a longer time per woken thread means work for several CPUs, and counts as this */
    LONGEST_NS = 2000,
    KEPT_NS = 1000,  /* how long gathered threads stay, per thread */
    KEPT_MOST = 100, /* threads that count for that, at most */
    /* rounds in a row of twice the trial's time that end the use of its result */
    SLOW = 8,
};

enum way { TRY_APART, TRY_TOGETHER, APART, TOGETHER };

/* All wakers write these without a lock: guesses. */
static struct {
    enum way way, last; /* last: APART or TOGETHER */
    uint32_t rounds;    /* bulk wakes since the last change of way */
    uint32_t use;
    uint32_t slow;
    uint32_t threads; /* that the last bulk wake woke */
    uint64_t since;   /* tsc of the last bulk wake */
    struct trial {
        uint64_t time; /* ticks */
        uint64_t threads;
    } trial[2];
} tried __attribute__((aligned(64)));

static uint64_t ticks(uint64_t ns) { return ns * sched.tsc_per_us / 1000; }

uint64_t gather_kept_for(uint32_t n) { return ticks(KEPT_NS) * (n < KEPT_MOST ? n : KEPT_MOST); }

static void try(enum way way)
{
    tried.way = way;
    tried.rounds = 0;
    tried.trial[way] = (struct trial){0};
}

static void use(enum way way)
{
    bool again = way == tried.last;
    tried.use = !again ? USE : tried.use < LONG_USE ? 2 * tried.use : LONG_USE;
    tried.way = tried.last = way;
    tried.rounds = tried.slow = 0;
}

static void count_round(struct trial *trial, uint64_t time)
{
    trial->time += time;
    trial->threads += tried.threads;
}

static bool is_slower(const struct trial *a, const struct trial *than)
{
    return a->time * than->threads > than->time * a->threads;
}

/* Return whether the program must have changed since the trial. */
static bool has_changed(const struct trial *together, uint64_t time)
{
    bool slow = time * together->threads > 2 * together->time * tried.threads;
    tried.slow = slow ? tried.slow + 1 : 0;
    return tried.slow >= SLOW;
}

bool gather(uint64_t now)
{
    struct trial *apart = &tried.trial[TRY_APART], *together = &tried.trial[TRY_TOGETHER];
    uint64_t longest = ticks(LONGEST_NS) * tried.threads, time = now - tried.since;
    tried.since = now;
    tried.rounds++;
    if (time > longest)
        time = longest;
    switch (tried.way) {
    case TRY_APART:
        count_round(apart, time);
        if (tried.rounds < TRIAL)
            break;
        if (apart->time < apart->threads * ticks(LONGEST_NS) / 4 * 3)
            try(TRY_TOGETHER);
        else
            use(APART);
        break;
    case TRY_TOGETHER:
        count_round(together, time);
        if (together->time > apart->time) /* at once: with many slots each round may be long */
            use(APART);
        else if (tried.rounds >= TRIAL)
            use(is_slower(together, apart) ? APART : TOGETHER);
        break;
    case APART:
        if (tried.rounds >= tried.use)
            try(TRY_APART);
        break;
    case TOGETHER:
        if (tried.rounds >= tried.use || has_changed(together, time))
            try(TRY_APART);
        break;
    }
    return tried.way == TRY_TOGETHER || tried.way == TOGETHER;
}

void gather_woke(uint32_t n) { tried.threads = n; }

void gather_after_fork(void) { try(TRY_APART); }
