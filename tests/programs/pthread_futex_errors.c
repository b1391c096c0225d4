// Results of futex calls that do not sleep, and timeouts: as in the Linux manual.
#include "pthread_futex.h"

static __thread uint32_t pair[2];
#define word pair[0]

static void timeouts(int how, int private) {
    struct timespec rel = {0, 12000000}, zero = {0, 0}, negative = {-1, 0}, wrong = {0, 1000000000};
    int64_t start = t_now(CLOCK_MONOTONIC);
    EQ(futex(how, &word, FUTEX_WAIT | private, 0, &rel, NULL, 0), -ETIMEDOUT);
    CHECK(t_now(CLOCK_MONOTONIC) - start >= 12000000, "relative timeout early");
    EQ(futex(how, &word, FUTEX_WAIT | private, 0, &zero, NULL, 0), -ETIMEDOUT);
    EQ(futex(how, &word, FUTEX_WAIT | private, 0, &negative, NULL, 0), -EINVAL);
    EQ(futex(how, &word, FUTEX_WAIT | private, 0, &wrong, NULL, 0), -EINVAL);
    for (int c = 0; c < 2; c++) {
        clockid_t clock = c ? CLOCK_REALTIME : CLOCK_MONOTONIC;
        int op = FUTEX_WAIT_BITSET | private | (c ? FUTEX_CLOCK_REALTIME : 0);
        struct timespec until = t_after_ms(clock, 12), past = {1, 0};
        EQ(futex(how, &word, op, 0, &until, NULL, FUTEX_BITSET_MATCH_ANY), -ETIMEDOUT);
        CHECK(t_now(clock) >= (int64_t)until.tv_sec * 1000000000 + until.tv_nsec,
              "absolute timeout early on clock %d", (int)clock);
        EQ(futex(how, &word, op, 0, &past, NULL, FUTEX_BITSET_MATCH_ANY), -ETIMEDOUT);
        EQ(futex(how, &word, op, 0, &wrong, NULL, FUTEX_BITSET_MATCH_ANY), -EINVAL);
        // the value is compared before the timeout expires
        EQ(futex(how, &word, op, 1, &past, NULL, FUTEX_BITSET_MATCH_ANY), -EAGAIN);
    }
}

static void *all(void *arg) {
    for (int how = 0; how < 2; how++) {
        for (int private = 0; private <= FUTEX_PRIVATE_FLAG; private += FUTEX_PRIVATE_FLAG) {
            EQ(futex(how, &word, FUTEX_WAIT | private, 1, NULL, NULL, 0), -EAGAIN);
            EQ(futex(how, &word, FUTEX_WAIT_BITSET | private, 1, NULL, NULL, 3), -EAGAIN);
            // an empty bitset
            EQ(futex(how, &word, FUTEX_WAIT_BITSET | private, 0, NULL, NULL, 0), -EINVAL);
            EQ(futex(how, &word, FUTEX_WAKE_BITSET | private, 1, NULL, NULL, 0), -EINVAL);
            EQ(futex(how, (char *)&word + 1, FUTEX_WAIT | private, 0, NULL, NULL, 0), -EINVAL);
            EQ(futex(how, (char *)&word + 2, FUTEX_WAKE | private, 1, NULL, NULL, 0), -EINVAL);
            EQ(futex(how, (void *)0x10, FUTEX_WAIT | private, 0, NULL, NULL, 0), -EFAULT);
            EQ(futex(how, (void *)0x8000000000000000, FUTEX_WAIT | private, 0, NULL, NULL, 0),
               -EFAULT);
            // an invalid address of the timeout
            EQ(futex(how, &word, FUTEX_WAIT | private, 0, (void *)0x10, NULL, 0), -EFAULT);
            EQ(futex(how, &word, FUTEX_CMP_REQUEUE | private, 0, NULL, (void *)0x12, 0), -EINVAL);
            EQ(futex(how, &word, FUTEX_CMP_REQUEUE | private, 1, (void *)1L, &pair[1], 1), -EAGAIN);
            EQ(futex(how, &word, 0x60 | private, 0, NULL, NULL, 0), -ENOSYS);
            EQ(futex(how, &word, FUTEX_FD | private, 0, NULL, NULL, 0), -ENOSYS);
            EQ(futex(how, &word, FUTEX_WAKE | private | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, 0),
               -ENOSYS);
            EQ(futex(how, &word, FUTEX_WAKE | private, 1, NULL, NULL, 0), 0);
            EQ(futex(how, &word, FUTEX_WAKE | private, INT_MAX, NULL, NULL, 0), 0);
            EQ(futex(how, &word, FUTEX_WAKE_BITSET | private, 1, NULL, NULL, 1), 0);
            EQ(futex(how, &word, FUTEX_REQUEUE | private, 1, (void *)1L, &pair[1], 0), 0);
            EQ(futex(how, &word, FUTEX_CMP_REQUEUE | private, 1, (void *)1L, &pair[1], 0), 0);
            // The word of a waiter may be in read-only memory. A private wake of an unmapped
            // address is no error.
            static const uint32_t readonly = 5;
            EQ(futex(how, (void *)&readonly, FUTEX_WAIT | private, 4, NULL, NULL, 0), -EAGAIN);
            timeouts(how, private);
        }
        EQ(futex(how, (void *)0x10000, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0), 0);
    }
    // libc's syscall() sets errno only on failure.
    errno = 77;
    EQ(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);
    EQ(errno, 77);
    ERR(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 9, NULL, NULL, 0), EAGAIN);
    return arg;
}

int main(void) {
    t_watchdog();
    PHASE("main");
    all(NULL);
    PHASE("threads");
    t_run(t_threads(), all);
    return t_ok("pthread_futex_errors");
}
