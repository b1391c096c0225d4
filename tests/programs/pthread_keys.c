// Thread-specific data: values stay with their thread across blocking. Destructors run, and run
// again if they set the key.
#include "pthread_test.h"

static pthread_key_t key, again, plain[64];
static pthread_barrier_t barrier;
static int threads, rounds, destroyed, reruns;
static __thread int tls;
static __thread char big[5000];

static void destroy(void *v) {
    CHECK(v, "destructor called with NULL");
    CHECK(!pthread_getspecific(key), "value still set in its destructor");
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
    free(v);
}
static void set_again(void *v) {
    __atomic_add_fetch(&reruns, 1, __ATOMIC_SEQ_CST);
    // each time: the library stops after PTHREAD_DESTRUCTOR_ITERATIONS
    OK(pthread_setspecific(again, v));
}
static void *work(void *arg) {
    int me = (int)(intptr_t)arg + 1;
    int *mine = malloc(sizeof *mine), *at = &tls;
    *mine = tls = me;
    memset(big, me, sizeof big);
    OK(pthread_setspecific(key, mine));
    OK(pthread_setspecific(again, mine));
    for (int k = 0; k < 64; k++)
        OK(pthread_setspecific(plain[k], (void *)(intptr_t)(me * 100 + k)));
    for (int i = 0; i < rounds; i++) {
        pthread_barrier_wait(&barrier);
        EQ(tls, me);
        CHECK(at == &tls, "thread-local variable moved");
        CHECK(big[0] == (char)me && big[4999] == (char)me, "thread-local array");
        CHECK(pthread_getspecific(key) == mine, "value of another thread");
        EQ((intptr_t)pthread_getspecific(plain[i % 64]), me * 100 + i % 64);
        errno = me;
        pthread_barrier_wait(&barrier);
        EQ(errno, me);
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    rounds = t_share(3000, threads);
    OK(pthread_key_create(&key, destroy));
    OK(pthread_key_create(&again, set_again));
    for (int k = 0; k < 64; k++) OK(pthread_key_create(&plain[k], NULL));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    PHASE("rounds");
    t_run(threads, work);
    EQ(destroyed, threads);
    EQ(reruns, threads * PTHREAD_DESTRUCTOR_ITERATIONS);
    OK(pthread_key_delete(key));
    EQ(pthread_setspecific(key, &key), EINVAL);
    return t_ok("pthread_keys");
}
