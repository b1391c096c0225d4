// Teams of random size start, meet in barriers, broadcasts and requeueing futexes with random
// delays, and exit; three teams at a time. Sums are checked at every meeting.
#include "pthread_futex.h"

struct team {
    pthread_barrier_t barrier;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int size, phases, arrived, generation, sum;
    uint32_t gate, queue, inside;
    uint64_t seed;
};
struct member {
    struct team *team;
    int me;
};

static void delay(uint64_t *s) {
    switch (t_rand(s) % 12) {
    case 0: t_sleep_us((int)(t_rand(s) % 60)); break;
    case 1: sched_yield(); break;
    case 2:
        for (unsigned n = t_rand(s) % 3000; n; n--) __builtin_ia32_pause();
    }
}
static void cond_barrier(struct team *t) {
    OK(pthread_mutex_lock(&t->mutex));
    int g = t->generation;
    if (++t->arrived == t->size) {
        t->arrived = 0;
        t->generation++;
        OK(pthread_cond_broadcast(&t->cond));
    } else
        while (t->generation == g) OK(pthread_cond_wait(&t->cond, &t->mutex));
    OK(pthread_mutex_unlock(&t->mutex));
}
// The last thread to arrive wakes one, requeues the others to a second word, and wakes them there,
// as old condition variables did.
static void futex_barrier(struct team *t, uint64_t *s) {
    int how = (int)t_rand(s);
    uint32_t g = __atomic_load_n(&t->gate, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&t->inside, 1, __ATOMIC_SEQ_CST) == (uint32_t)t->size) {
        __atomic_store_n(&t->inside, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&t->gate, g + 1, __ATOMIC_SEQ_CST);
        long r = futex(how, &t->gate, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)(long)INT_MAX,
                       &t->queue, g + 1);
        CHECK(r >= 0 && r < t->size, "requeue: %ld", r);
        futex(how + 1, &t->queue, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    } else
        while (__atomic_load_n(&t->gate, __ATOMIC_SEQ_CST) == g) {
            long r = futex(how, &t->gate, FUTEX_WAIT_PRIVATE, g, NULL, NULL, 0);
            CHECK(!r || r == -EAGAIN || r == -EINTR, "wait: %ld", r);
        }
}
static void meet(struct team *t, unsigned kind, uint64_t *s) {
    if (kind == 0)
        pthread_barrier_wait(&t->barrier);
    else if (kind == 1)
        cond_barrier(t);
    else
        futex_barrier(t, s);
}
static void *member(void *arg) {
    struct member *m = arg;
    struct team *t = m->team;
    uint64_t ours = t->seed, mine = t->seed * 131 + (uint64_t)m->me;
    for (int p = 1; p <= t->phases; p++) {
        delay(&mine);
        __atomic_add_fetch(&t->sum, 1, __ATOMIC_SEQ_CST);
        meet(t, t_rand(&ours) % 3, &mine);
        EQ(__atomic_load_n(&t->sum, __ATOMIC_SEQ_CST), p * t->size);
        meet(t, t_rand(&ours) % 3, &mine);
    }
    free(m);
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    uint64_t s = t_seed();
    int rounds = (int)t_env("ROUNDS", 40), phases = t_share(1500, threads);
    PHASE("teams");
    for (int r = 0; r < rounds; r++) {
        struct team teams[3];
        pthread_t *t = calloc(1024, sizeof *t);
        int n = 0;
        for (int k = 0; k < 3; k++) {
            teams[k] = (struct team){.size = 1 + (int)(t_rand(&s) % (unsigned)((threads + 2) / 3)),
                                     .phases = phases,
                                     .seed = t_rand(&s)};
            OK(pthread_barrier_init(&teams[k].barrier, NULL, (unsigned)teams[k].size));
            OK(pthread_mutex_init(&teams[k].mutex, NULL));
            OK(pthread_cond_init(&teams[k].cond, NULL));
        }
        for (int i = 0; i < threads; i++)
            for (int k = 0; k < 3; k++)
                if (i < teams[k].size) {
                    struct member *m = malloc(sizeof *m);
                    *m = (struct member){&teams[k], i};
                    t[n++] = t_spawn(member, m);
                }
        for (int i = 0; i < n; i++) t_join(t[i]);
        for (int k = 0; k < 3; k++) {
            EQ(teams[k].sum, teams[k].size * phases);
            OK(pthread_barrier_destroy(&teams[k].barrier));
            OK(pthread_cond_destroy(&teams[k].cond));
        }
        free(t);
    }
    return t_ok("stress_teams");
}
