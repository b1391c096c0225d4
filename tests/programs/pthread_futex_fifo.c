// A wake of one wakes waiters of equal priority in order of arrival. CMP_REQUEUE shows that a
// waiter has arrived: it moves it from a word of its own to the end of the common queue, which also
// keeps order.
#include "pthread_futex.h"

static uint32_t queue, *own;
static int order[1024], n_woken, private;

static void *waiter(void *arg) {
    int i = (int)(intptr_t)arg;
    long r;
    while ((r = futex(i, &own[i], FUTEX_WAIT | private, 0, NULL, NULL, 0)) == -EINTR) {}
    EQ(r, 0);
    order[__atomic_fetch_add(&n_woken, 1, __ATOMIC_SEQ_CST)] = i;
    return NULL;
}
// Return the number of waiters, all of which wait on `queue` from the start: requeue them from that
// word to itself, which changes nothing.
static int waiting(void) {
    return (int)futex(0, &queue, FUTEX_CMP_REQUEUE | private, 0, (void *)1024L, &queue, 0);
}
static void *direct_waiter(void *arg) {
    int i = (int)(intptr_t)arg;
    EQ(futex(i, &queue, FUTEX_WAIT | private, 0, NULL, NULL, 0), 0);
    order[__atomic_fetch_add(&n_woken, 1, __ATOMIC_SEQ_CST)] = i;
    return NULL;
}

static void wake_one_by_one(int threads) {
    for (int i = 0; i < threads; i++) {
        EQ(futex(i, &queue, FUTEX_WAKE | private, 1, NULL, NULL, 0), 1);
        while (__atomic_load_n(&n_woken, __ATOMIC_SEQ_CST) <= i) t_sleep_us(50);
        // with shared futexes the kernel itself sometimes swaps two: in 1 of 300 native runs, under
        // load
        if (private) EQ(order[i], i);
    }
    EQ(futex(0, &queue, FUTEX_WAKE | private, 1, NULL, NULL, 0), 0);
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    pthread_t *t = calloc(1024, sizeof *t);
    own = calloc(1024, sizeof *own);
    for (private = 0; private <= FUTEX_PRIVATE_FLAG; private += FUTEX_PRIVATE_FLAG) {
        PHASE("requeued one after another");
        n_woken = 0;
        for (int i = 0; i < threads; i++) {
            t[i] = t_spawn(waiter, (void *)(intptr_t)i);
            while (futex(i, &own[i], FUTEX_CMP_REQUEUE | private, 0, (void *)1L, &queue, 0) != 1)
                t_sleep_us(50);
        }
        wake_one_by_one(threads);
        for (int i = 0; i < threads; i++) t_join(t[i]);
        PHASE("waiting one after another");
        n_woken = 0;
        for (int i = 0; i < threads; i++) {
            t[i] = t_spawn(direct_waiter, (void *)(intptr_t)i);
            while (waiting() != i + 1) t_sleep_us(50);
        }
        wake_one_by_one(threads);
        for (int i = 0; i < threads; i++) t_join(t[i]);
    }
    return t_ok("pthread_futex_fifo");
}
