/* SPDX-License-Identifier: MIT
 *
 * Epochs for the controller of apple.c (threshold.h).
 */
#include "sched/threshold.h"
#include "policy/apple.h"
#include "sched/thread.h"

enum {
    EVENTS = 1000,   /* minimum per epoch: the paper's number */
    EPOCH_US = 2000, /* minimum length of an epoch: a slice more or less must not matter */
    /* events that a slot counts before it adds them to the epoch's */
    BATCH = 9 * THRESHOLD_SAMPLE,
    COUNTED_US = 100, /* maximum counted of a wait */
    /* best of the fixed thresholds, over all programs of `lissom bench adapt` */
    START_NS = 500,
};

/* The step d is a quarter of T, so that both ends of the range are near: a switch in user space and
 * one in the kernel differ tenfold. */
static const struct apple_limits limits = {
    .lower = 200, .upper = 50000, .step = 200, .step_permille = 250};

static struct {
    struct lock lock; /* protects apple and the fields up to slots; only tried */
    struct apple apple;
    uint64_t began;        /* tsc: begin of the epoch */
    uint64_t lost, beyond; /* sums over all slots at that time */
    uint32_t slots;        /* number open at that time; 0: no epoch has begun */
    bool fixed;
    /* in this epoch, or more; written by all threads */
    uint32_t events __attribute__((aligned(64)));
    uint32_t ns __attribute__((aligned(64))); /* read by all threads */
} epoch;

void threshold_init(bool fixed, uint32_t ns)
{
    epoch.fixed = fixed;
    epoch.ns = fixed ? ns : START_NS;
    apple_init(&epoch.apple, &limits, START_NS);
}

/* The learned threshold is valid for the child, too. The epoch is not: the other threads are
 * gone. */
void threshold_after_fork(void)
{
    epoch.lock = (struct lock){0};
    epoch.slots = 0;
    apple_init(&epoch.apple, &limits, epoch.ns);
}

uint32_t threshold_ns(void) { return __atomic_load_n(&epoch.ns, __ATOMIC_RELAXED); }

/* Add n to a sum, by the slot's holder. May lose some while the slot has an extra thread. */
static void add(uint64_t *sum, uint64_t n)
{
    __atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/* End the epoch and begin the next. Pre: epoch.lock. */
static void end_epoch(uint64_t now)
{
    uint64_t lost = 0, beyond = 0;
    uint32_t slots = slots_open();
    for (uint32_t i = 0; i < sched.slots_made; i++) {
        lost += __atomic_load_n(&sched.slot[i].lost_time.lost, __ATOMIC_RELAXED);
        beyond += __atomic_load_n(&sched.slot[i].lost_time.beyond, __ATOMIC_RELAXED);
    }
    uint64_t all = (now - epoch.began) * slots, not_counted = beyond - epoch.beyond;
    /* If the number of slots changed, the thresholds of a round cannot be compared: repeat the
     * epoch. */
    uint64_t time = slots == epoch.slots && all > not_counted ? all - not_counted : 0;
    __atomic_store_n(&epoch.ns, apple_epoch(&epoch.apple, lost - epoch.lost, time),
                     __ATOMIC_RELAXED);
    epoch.lost = lost;
    epoch.beyond = beyond;
    epoch.began = now;
    epoch.slots = slots;
    __atomic_store_n(&epoch.events, 0, __ATOMIC_RELAXED);
    count(threshold_epochs);
    __atomic_store_n(&record->counter[LISSOM_C_threshold_ns], epoch.apple.base, __ATOMIC_RELAXED);
}

static void batch_is_full(void)
{
    if (__atomic_add_fetch(&epoch.events, BATCH, __ATOMIC_RELAXED) < EVENTS ||
        !lock_try(&epoch.lock))
        return;
    uint64_t now = tsc();
    if (now - epoch.began > EPOCH_US * sched.tsc_per_us)
        end_epoch(now);
    lock_drop(&epoch.lock);
}

bool threshold_samples(const struct slot *s)
{
    return !epoch.fixed && s->lost_time.events % THRESHOLD_SAMPLE == 0;
}

bool threshold_event(struct slot *s)
{
    if (epoch.fixed)
        return false;
    if (++s->lost_time.events == BATCH) {
        s->lost_time.events = 0;
        batch_is_full();
    }
    return threshold_samples(s);
}

void threshold_lost(struct slot *s, uint64_t ticks, uint32_t times)
{
    uint64_t most = COUNTED_US * sched.tsc_per_us;
    if (epoch.fixed)
        return;
    if (ticks > most) {
        add(&s->lost_time.beyond, (ticks - most) * times);
        ticks = most;
    }
    add(&s->lost_time.lost, ticks * times);
}

void threshold_wait_begins(struct slot *s, uint64_t now, uint32_t weight)
{
    if (epoch.fixed)
        return;
    s->lost_time.weight = weight;
    __atomic_store_n(&s->lost_time.since, now, __ATOMIC_RELAXED);
}

void threshold_wait_ended(struct slot *s)
{
    uint64_t since = __atomic_load_n(&s->lost_time.since, __ATOMIC_RELAXED);
    if (!since)
        return;
    uint64_t now = tsc();
    __atomic_store_n(&s->lost_time.since, 0, __ATOMIC_RELAXED);
    if (now > since) /* another CPU's counter may be a little behind */
        threshold_lost(s, now - since, s->lost_time.weight);
}
