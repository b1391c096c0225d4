// Counts and selection: WAKE and WAKE_BITSET, REQUEUE and CMP_REQUEUE, WAKE_OP with every operation
// and comparison. A waiter counts itself before it waits, so wakers repeat until the sum is right.
#include "pthread_futex.h"

static uint32_t word, other;
static int threads, private, woken, entered;
static struct waiter {
    uint32_t bits;
    int how;
    int awake;
} *waiters;

static void *waiter(void *arg) {
    struct waiter *w = &waiters[(intptr_t)arg];
    __atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
    long r;
    // The word never changes: only a wake-up ends the wait.
    while ((r = futex(w->how, &word, FUTEX_WAIT_BITSET | private, 0, NULL, NULL, w->bits)) ==
           -EINTR) {}
    EQ(r, 0);
    w->awake = 1;
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
static pthread_t *start(uint32_t (*bits)(int)) {
    pthread_t *t = calloc(1024, sizeof *t);
    waiters = calloc(1024, sizeof *waiters);
    woken = entered = 0;
    for (int i = 0; i < threads; i++) {
        waiters[i].bits = bits(i);
        waiters[i].how = i;
        t[i] = t_spawn(waiter, (void *)(intptr_t)i);
    }
    while (__atomic_load_n(&entered, __ATOMIC_SEQ_CST) < threads) t_sleep_us(100);
    return t;
}
static void finish(pthread_t *t) {
    for (int i = 0; i < threads; i++) t_join(t[i]);
    EQ(woken, threads);
    free(t);
    free(waiters);
}
static uint32_t any(int i) {
    (void)i;
    return FUTEX_BITSET_MATCH_ANY;
}
static uint32_t by_parity(int i) { return i & 1 ? 0xf0 : 0x0f; }

// Wake exactly n threads, at most `portion` per call.
static void wake(int n, int portion, int op, uint32_t bits) {
    for (int how = 0; n > 0; how++) {
        int ask = n < portion ? n : portion;
        long r = futex(how, &word, op | private, (uint32_t)ask, NULL, NULL, bits);
        CHECK(r >= 0 && r <= ask, "woke %ld, asked for %d", r, ask);
        n -= (int)r;
        if (!r) t_sleep_us(100);
    }
}
static void settle(int n) {
    while (__atomic_load_n(&woken, __ATOMIC_SEQ_CST) < n) t_sleep_us(100);
    t_sleep_ms(2);
    EQ(__atomic_load_n(&woken, __ATOMIC_SEQ_CST), n); // no more than those
}

static void wakes(void) {
    pthread_t *t = start(any);
    wake(1, 1, FUTEX_WAKE, 0);
    settle(1);
    wake(threads / 2 - 1, 3, FUTEX_WAKE, 0);
    settle(threads / 2);
    wake(threads - threads / 2, INT_MAX, FUTEX_WAKE_BITSET, 0x100);
    finish(t);

    t = start(by_parity);
    // matches no waiter
    EQ(futex(0, &word, FUTEX_WAKE_BITSET | private, INT_MAX, NULL, NULL, 0xff00), 0);
    wake(threads / 2, INT_MAX, FUTEX_WAKE_BITSET, 0x80);
    settle(threads / 2);
    for (int i = 0; i < threads; i++) EQ(waiters[i].awake, i & 1);
    wake(threads - threads / 2, INT_MAX, FUTEX_WAKE_BITSET, 0x01);
    finish(t);
}

static void requeues(void) {
    for (int cmp = 0; cmp < 2; cmp++) {
        pthread_t *t = start(any);
        int op = (cmp ? FUTEX_CMP_REQUEUE : FUTEX_REQUEUE) | private, moved = 0;
        if (cmp) EQ(futex(0, &word, op, 1, (void *)1L, &other, 1), -EAGAIN);
        for (int how = 0; moved < threads; how++) { // wake none, move all
            long r = futex(how, &word, op, 0, (void *)(long)INT_MAX, &other, 0);
            CHECK(r >= 0 && r <= threads - moved, "moved %ld", r);
            moved += (int)r;
            if (!r) t_sleep_us(100);
        }
        EQ(futex(0, &word, FUTEX_WAKE | private, INT_MAX, NULL, NULL, 0), 0); // none left here
        // none left here
        if (threads >= 2) EQ(futex(1, &other, op, 1, (void *)1L, &word, 0), 2);
        settle(1);
        EQ(futex(0, &word, FUTEX_WAKE | private, INT_MAX, NULL, NULL, 0), 1);
        EQ(futex(1, &other, FUTEX_WAKE | private, INT_MAX, NULL, NULL, 0), threads - 2);
        finish(t);
    }
}

static void wake_op_arithmetic(void) {
    static const struct {
        int op, arg;
        uint32_t old, want;
    } ops[] = {
        // 12 bits, signed
        {FUTEX_OP_SET, 7, 3, 7},
        {FUTEX_OP_ADD, 5, 3, 8},
        {FUTEX_OP_ADD, 0xfff, 3, 2},
        {FUTEX_OP_OR, 4, 3, 7},
        {FUTEX_OP_ANDN, 1, 3, 2},
        {FUTEX_OP_XOR, 1, 3, 2},
        {FUTEX_OP_SET | FUTEX_OP_OPARG_SHIFT, 4, 3, 16},
        {FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT, 31, 1, 0x80000001},
    };
    for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++) {
        other = ops[i].old;
        EQ(futex((int)i, &word, FUTEX_WAKE_OP | private, 1, (void *)1L, &other,
                 FUTEX_OP(ops[i].op, ops[i].arg, FUTEX_OP_CMP_EQ, 0)),
           0);
        EQ(other, ops[i].want);
    }
    other = 0;
    EQ(futex(0, &word, FUTEX_WAKE_OP | private, 1, (void *)1L, (void *)0x10, 0), -EFAULT);
    EQ(futex(1, &word, FUTEX_WAKE_OP | private, 1, (void *)1L, (char *)&other + 1, 0), -EINVAL);
    EQ(futex(0, &word, FUTEX_WAKE_OP | private, 1, (void *)1L, &other,
             (uint32_t)FUTEX_OP(0, 0, 7, 0)),
       -ENOSYS);
}

static void *pair_waiter(void *arg) { // waits on `word` or `other`
    uint32_t *w = (intptr_t)arg ? &other : &word;
    __atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
    long r =
        futex((int)(intptr_t)arg, w, FUTEX_WAIT | private, (intptr_t)arg ? 5 : 0, NULL, NULL, 0);
    CHECK(r == 0, "wait: %ld", r);
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
// WAKE_OP wakes the second word only if the comparison with its old value holds.
static void wake_op_compare(void) {
    static const struct {
        int cmp, arg, holds;
    } cmps[] = {
        {FUTEX_OP_CMP_EQ, 5, 1},     {FUTEX_OP_CMP_EQ, 4, 0}, {FUTEX_OP_CMP_NE, 4, 1},
        {FUTEX_OP_CMP_NE, 5, 0},     {FUTEX_OP_CMP_LT, 6, 1}, {FUTEX_OP_CMP_LT, 5, 0},
        {FUTEX_OP_CMP_LE, 5, 1},     {FUTEX_OP_CMP_LE, 4, 0}, {FUTEX_OP_CMP_GT, 4, 1},
        {FUTEX_OP_CMP_GT, 5, 0},     {FUTEX_OP_CMP_GE, 5, 1}, {FUTEX_OP_CMP_GE, 6, 0},
        {FUTEX_OP_CMP_GT, 0xfff, 1}, // -1
    };
    for (unsigned i = 0; i < sizeof cmps / sizeof *cmps; i++) {
        woken = entered = 0;
        other = 5;
        pthread_t a = t_spawn(pair_waiter, (void *)0L), b = t_spawn(pair_waiter, (void *)1L);
        while (__atomic_load_n(&entered, __ATOMIC_SEQ_CST) < 2) t_sleep_us(50);
        long sum = 0, want = 1 + cmps[i].holds;
        // ADD 0 keeps the value, so that the call can be repeated until both threads wait.
        for (int how = 0; sum < want; how++) {
            long r = futex(how, &word, FUTEX_WAKE_OP | private, 1, (void *)1L, &other,
                           FUTEX_OP(FUTEX_OP_ADD, 0, cmps[i].cmp, cmps[i].arg));
            CHECK(r >= 0, "wake_op: %ld", r);
            sum += r;
            CHECK(sum <= want, "case %u: %ld woken", i, sum);
            if (!r) t_sleep_us(100);
        }
        t_join(a);
        if (!cmps[i].holds) {
            t_sleep_us(500);
            EQ(__atomic_load_n(&woken, __ATOMIC_SEQ_CST), 1);
            while (futex(1, &other, FUTEX_WAKE | private, 1, NULL, NULL, 0) != 1) t_sleep_us(100);
        }
        t_join(b);
        EQ(other, 5);
    }
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    for (private = 0; private <= FUTEX_PRIVATE_FLAG; private += FUTEX_PRIVATE_FLAG) {
        word = other = 0;
        PHASE("wake");
        wakes();
        PHASE("requeue");
        requeues();
        PHASE("wake_op arithmetic");
        wake_op_arithmetic();
        PHASE("wake_op comparisons");
        wake_op_compare();
    }
    return t_ok("pthread_futex_wake");
}
