// glibc's spinlocks and custom ones (test-and-set, ticket with sched_yield): counters stay exact
// with more threads than CPUs.
#include "pthread_test.h"

static pthread_spinlock_t spin;
static int rounds, tas;
static unsigned next_ticket, serving;
static long counter;

static void *with_spin(void *arg) {
    for (int i = 0; i < rounds; i++) {
        OK(pthread_spin_lock(&spin));
        counter++;
        OK(pthread_spin_unlock(&spin));
    }
    return arg;
}
static void *with_try(void *arg) {
    for (int i = 0; i < rounds; i++) {
        int r;
        while ((r = pthread_spin_trylock(&spin)) == EBUSY) sched_yield();
        OK(r);
        counter++;
        OK(pthread_spin_unlock(&spin));
    }
    return arg;
}
static void *with_tas(void *arg) {
    for (int i = 0; i < rounds; i++) {
        while (__atomic_exchange_n(&tas, 1, __ATOMIC_ACQUIRE))
            while (__atomic_load_n(&tas, __ATOMIC_RELAXED)) __builtin_ia32_pause();
        counter++;
        __atomic_store_n(&tas, 0, __ATOMIC_RELEASE);
    }
    return arg;
}
static void *with_ticket(void *arg) {
    for (int i = 0; i < rounds; i++) {
        unsigned mine = __atomic_fetch_add(&next_ticket, 1, __ATOMIC_RELAXED);
        while (__atomic_load_n(&serving, __ATOMIC_ACQUIRE) != mine) sched_yield();
        counter++;
        __atomic_store_n(&serving, mine + 1, __ATOMIC_RELEASE);
    }
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    void *(*const kinds[])(void *) = {with_spin, with_try, with_tas, with_ticket};
    const int totals[] = {100000, 20000, 100000, 600};
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    for (int k = 0; k < 4; k++) {
        PHASE("counter");
        counter = 0;
        rounds = t_share(totals[k], threads);
        t_run(threads, kinds[k]);
        EQ(counter, (long)threads * rounds);
    }
    OK(pthread_spin_lock(&spin));
    EQ(pthread_spin_trylock(&spin), EBUSY);
    OK(pthread_spin_unlock(&spin));
    return t_ok("pthread_spin");
}
