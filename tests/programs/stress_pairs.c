// Pairs pass a turn through a primitive, which a common seed chooses anew each round, with random
// delays. All threads also use shared locks, and a pest interrupts them with signals. A lost
// wake-up hangs its pair.
#include "pthread_futex.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>

struct pair {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    sem_t sem[2];
    uint32_t word;
    int turn, event[2], pipes[2][2];
    pthread_barrier_t barrier;
} __attribute__((aligned(64)));

static struct pair *pairs;
static int threads, rounds, stop, signals;
static uint64_t seed;
static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long common_count, rw_count;

static void handler(int sig) {
    (void)sig;
    __atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
}
static void delay(uint64_t *s) {
    switch (t_rand(s) % 16) {
    case 0: t_sleep_us((int)(t_rand(s) % 100)); break;
    case 1:
    case 2: sched_yield(); break;
    case 3:
    case 4:
        for (unsigned n = t_rand(s) % 2000; n; n--) __builtin_ia32_pause();
    }
}
static void sem_take(sem_t *s, uint64_t *r) {
    int e;
    do {
        if (t_rand(r) & 1)
            e = sem_wait(s);
        else {
            struct timespec t = t_ts(t_now(CLOCK_MONOTONIC) + t_rand(r) % 300000);
            e = sem_clockwait(s, CLOCK_MONOTONIC, &t);
        }
        CHECK(!e || errno == EINTR || errno == ETIMEDOUT, "sem: %s", strerror(errno));
    } while (e);
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg, side = me & 1;
    struct pair *p = &pairs[me / 2];
    uint64_t mine = seed * 7919 + (uint64_t)me, ours = seed * 104729 + (uint64_t)(me / 2);
    for (int r = 0; r < rounds; r++) {
        uint32_t choice = t_rand(&ours), kind = choice % 8, first = (choice >> 8) & 1;
        int active = side == (int)first; // passes the turn in this round; the other side waits
        uint64_t v = 1;
        delay(&mine);
        switch (kind) {
        case 0:
        case 1: // condition variable, signal or broadcast, timed or not
            OK(pthread_mutex_lock(&p->mutex));
            if (active) {
                p->turn = r + 1;
                if (t_rand(&mine) & 1)
                    OK(pthread_cond_signal(&p->cond));
                else
                    OK(pthread_cond_broadcast(&p->cond));
            } else
                while (p->turn < r + 1) {
                    if (kind)
                        OK(pthread_cond_wait(&p->cond, &p->mutex));
                    else {
                        struct timespec t = t_ts(t_now(CLOCK_MONOTONIC) + t_rand(&mine) % 300000);
                        int e = pthread_cond_clockwait(&p->cond, &p->mutex, CLOCK_MONOTONIC, &t);
                        CHECK(!e || e == ETIMEDOUT, "clockwait: %d", e);
                    }
                }
            OK(pthread_mutex_unlock(&p->mutex));
            break;
        case 2:
            if (active)
                SYS(sem_post(&p->sem[side]));
            else
                sem_take(&p->sem[!side], &mine);
            break;
        case 3:
        case 4: { // futex, inline or libc
            int how = (int)t_rand(&mine);
            if (active) {
                __atomic_store_n(&p->word, (uint32_t)r + 1, __ATOMIC_SEQ_CST);
                futex(how, &p->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
            } else
                for (uint32_t seen;
                     (seen = __atomic_load_n(&p->word, __ATOMIC_SEQ_CST)) < (uint32_t)r + 1;) {
                    long e = futex(how, &p->word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
                    CHECK(!e || e == -EAGAIN || e == -EINTR, "futex: %ld", e);
                }
            break;
        }
        case 5:
            if (active)
                EQ(write(p->event[side], &v, 8), 8);
            else
                while (read(p->event[!side], &v, 8) != 8) EQ(errno, EINTR);
            break;
        case 6:
            if (active)
                EQ(write(p->pipes[side][1], &v, 1), 1);
            else
                while (read(p->pipes[!side][0], &v, 1) != 1) EQ(errno, EINTR);
            break;
        case 7: pthread_barrier_wait(&p->barrier); break;
        }
        if (t_rand(&mine) % 2) {
            OK(pthread_mutex_lock(&common));
            long seen = common_count;
            delay(&mine);
            common_count = seen + 1;
            OK(pthread_mutex_unlock(&common));
            OK(pthread_rwlock_wrlock(&rwlock));
            rw_count++;
            OK(pthread_rwlock_unlock(&rwlock));
        } else {
            OK(pthread_rwlock_rdlock(&rwlock));
            OK(pthread_rwlock_unlock(&rwlock));
        }
    }
    return NULL;
}
static void *pest(void *arg) {
    pthread_t *t = arg;
    uint64_t s = seed + 17;
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        OK(pthread_kill(t[t_rand(&s) % (unsigned)threads], SIGUSR1));
        t_sleep_us(100 + (int)(t_rand(&s) % 400));
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    threads = t_threads() & ~1;
    if (threads > 512) threads = 512;
    seed = t_seed();
    rounds = (int)t_env("ROUNDS", t_share(40000, threads < 8 ? 8 : threads));
    struct sigaction sa = {.sa_handler = handler, .sa_flags = seed & 1 ? SA_RESTART : 0};
    SYS(sigaction(SIGUSR1, &sa, NULL));
    pairs = aligned_alloc(64, sizeof *pairs * (size_t)threads / 2);
    memset(pairs, 0, sizeof *pairs * (size_t)threads / 2);
    for (int i = 0; i < threads / 2; i++) {
        struct pair *p = &pairs[i];
        OK(pthread_mutex_init(&p->mutex, NULL));
        OK(pthread_cond_init(&p->cond, NULL));
        OK(pthread_barrier_init(&p->barrier, NULL, 2));
        for (int s = 0; s < 2; s++) {
            SYS(sem_init(&p->sem[s], 0, 0));
            SYS(p->event[s] = eventfd(0, EFD_SEMAPHORE));
            SYS(pipe(p->pipes[s]));
        }
    }
    PHASE("pairs");
    pthread_t *t = calloc(1024, sizeof *t), annoying;
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    annoying = t_spawn(pest, t);
    // The pest ends before the first join, which makes a handle invalid.
    t_sleep_ms(200);
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    t_join(annoying);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    CHECK(common_count == rw_count, "%ld %ld", common_count, rw_count);
    return t_ok("stress_pairs");
}
