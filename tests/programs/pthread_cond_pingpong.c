// Detects lost wake-ups: pairs pass a ball with exactly one signal per pass. A lost signal hangs
// the pair.
#include "pthread_test.h"

struct pair {
    pthread_mutex_t mutex;
    pthread_cond_t cond[2];
    int ball, passes;
};
static struct pair *pairs;
static int rounds;

static void *player(void *arg) {
    int i = (int)(intptr_t)arg, side = i & 1;
    struct pair *p = &pairs[i / 2];
    for (int r = 0; r < rounds; r++) {
        OK(pthread_mutex_lock(&p->mutex));
        while (p->ball != side) OK(pthread_cond_wait(&p->cond[side], &p->mutex));
        p->ball = !side;
        p->passes++;
        OK(pthread_cond_signal(&p->cond[!side]));
        OK(pthread_mutex_unlock(&p->mutex));
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads() & ~1;
    rounds = t_share(30000, threads);
    pairs = calloc((size_t)threads / 2, sizeof *pairs);
    for (int i = 0; i < threads / 2; i++) {
        OK(pthread_mutex_init(&pairs[i].mutex, NULL));
        for (int s = 0; s < 2; s++) OK(pthread_cond_init(&pairs[i].cond[s], NULL));
    }
    PHASE("ping-pong");
    t_run(threads, player);
    for (int i = 0; i < threads / 2; i++) {
        EQ(pairs[i].passes, 2 * rounds);
        OK(pthread_mutex_destroy(&pairs[i].mutex));
        for (int s = 0; s < 2; s++) OK(pthread_cond_destroy(&pairs[i].cond[s]));
    }
    return t_ok("pthread_cond_pingpong");
}
