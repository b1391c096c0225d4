/* SPDX-License-Identifier: MIT */
#include "policy/apple.h"

enum { AT = 0, ABOVE = 1, BELOW = 2 };

/* Returns d. If the caller's step is 0, so is d: a T that must not change ignores step_permille. */
static uint32_t step(const struct apple *a)
{
    uint64_t relative = (uint64_t)a->base * a->limits.step_permille / 1000;
    if (!a->limits.step || relative <= a->limits.step)
        return a->limits.step;
    return relative > UINT32_MAX ? UINT32_MAX : (uint32_t)relative;
}

/* Begin a round at T = base, clamped. Thresholds are unsigned: T-d could wrap around to the top,
 * and T+d to the bottom. So d is compared with the room, not the sum with the bound. */
static void begin_round(struct apple *a, uint32_t base)
{
    const struct apple_limits *l = &a->limits;
    a->base = base < l->lower ? l->lower : base > l->upper ? l->upper : base;
    uint32_t d = step(a);
    a->threshold[AT] = a->base;
    a->threshold[ABOVE] = l->upper - a->base < d ? l->upper : a->base + d;
    a->threshold[BELOW] = a->base - l->lower < d ? l->lower : a->base - d;
    a->trial = AT;
}

void apple_init(struct apple *a, const struct apple_limits *limits, uint32_t threshold)
{
    *a = (struct apple){.limits = *limits};
    begin_round(a, threshold);
}

/* Returns whether trial i was less inefficient than trial j, by the margin: wasted_i / time_i *
 * 1000 < wasted_j / time_j * (1000 - margin). Multiplied out in 128 bits, so nothing is rounded:
 * with equal costs, T does not change. clamp() leaves room for the factor 1000. */
static bool is_better(const struct apple *a, int i, int j, uint32_t margin)
{
    unsigned __int128 mine = (unsigned __int128)a->wasted[i] * a->time[j];
    unsigned __int128 other = (unsigned __int128)a->wasted[j] * a->time[i];
    return mine * 1000 < other * (1000 - (margin < 1000 ? margin : 1000));
}

static uint64_t clamp(uint64_t v) { return v >> 58 ? (uint64_t)1 << 58 : v; }

/* Returns whether a trial has an epoch. At a bound, T+d or T-d is T itself; its epoch would only
 * measure T again. */
static bool is_tried(const struct apple *a, int trial)
{
    return trial == AT || a->threshold[trial] != a->base;
}

uint32_t apple_epoch(struct apple *a, uint64_t wasted, uint64_t time)
{
    if (!time)
        return apple_threshold(a);
    a->wasted[a->trial] = clamp(wasted);
    a->time[a->trial] = clamp(time);
    while (++a->trial <= BELOW)
        if (is_tried(a, (int)a->trial))
            return apple_threshold(a);
    int best = AT;
    for (int i = ABOVE; i <= BELOW; i++)
        if (is_tried(a, i) && is_better(a, i, AT, a->limits.margin_permille) &&
            (best == AT || is_better(a, i, best, 0)))
            best = i;
    a->rounds++;
    a->moves += best != AT;
    begin_round(a, a->threshold[best]);
    return apple_threshold(a);
}
