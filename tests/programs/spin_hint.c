// A pool whose workers search each other's queues in random order, count failures in memory and
// pause: no proof can show that they wait. Each item must be taken once, and the rounds must end.
#include "spin_test.h"

static struct queue {
    volatile uint32_t lock, items;
    char pad[56];
} queue[1024];
static uint32_t left_over, total, over;
static volatile uint64_t failures;

static int take(struct queue *q) {
    if (!q->items) return 0;
    while (__atomic_exchange_n(&q->lock, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
    int got = q->items > 0;
    q->items -= (uint32_t)got;
    __atomic_store_n(&q->lock, 0, __ATOMIC_RELEASE);
    return got;
}

static void put(struct queue *q) {
    while (__atomic_exchange_n(&q->lock, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
    q->items++;
    __atomic_store_n(&q->lock, 0, __ATOMIC_RELEASE);
}

static uint32_t is_over(void) { return __atomic_load_n(&over, __ATOMIC_ACQUIRE); }
static uint32_t unfinished(void) { return __atomic_load_n(&left_over, __ATOMIC_ACQUIRE); }

__attribute__((noinline)) static void work_while(uint64_t r, int is_worker) {
    while (is_worker ? !is_over() : unfinished() != 0) {
        r ^= r << 13, r ^= r >> 7, r ^= r << 17;
        if (take(&queue[r % (uint32_t)spin_threads])) {
            __atomic_add_fetch(&total, 1, __ATOMIC_RELAXED);
            __atomic_sub_fetch(&left_over, 1, __ATOMIC_RELEASE);
        } else {
            failures++;
            __builtin_ia32_pause();
        }
    }
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    if (me) {
        work_while((uint64_t)me * 0x9e3779b97f4a7c15u + 1, 1);
        return arg;
    }
    uint32_t rounds = 0;
    // Enough rounds to detect the pause, also on a busy machine.
    for (spin_time_begins(500); rounds < 1000 || !spin_time_over(); rounds++) {
        __atomic_store_n(&left_over, (uint32_t)spin_threads, __ATOMIC_RELEASE);
        for (int i = 0; i < spin_threads; i++) put(&queue[i]);
        work_while(rounds + 1, 0);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    EQ(total, rounds * (uint32_t)spin_threads);
    return arg;
}

int main(void) {
    t_watchdog();
    spin_threads = t_threads();
    t_run(spin_threads, work);
    return t_ok("spin_hint");
}
