// Producers and consumers with a small bounded queue: every item arrives once, in order per
// producer.
#include "pthread_test.h"

enum { SIZE = 4 };
static struct {
    int producer, seq;
} queue[SIZE];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int head, used, producers, per_producer, consumed, *last;

static void *produce(int me) {
    for (int i = 1; i <= per_producer; i++) {
        OK(pthread_mutex_lock(&mutex));
        while (used == SIZE) OK(pthread_cond_wait(&not_full, &mutex));
        int at = (head + used++) % SIZE;
        queue[at].producer = me;
        queue[at].seq = i;
        OK(pthread_cond_signal(&not_empty));
        OK(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}
static void *consume(void) {
    for (;;) {
        OK(pthread_mutex_lock(&mutex));
        while (!used && consumed < producers * per_producer)
            OK(pthread_cond_wait(&not_empty, &mutex));
        if (!used) {
            OK(pthread_mutex_unlock(&mutex));
            return NULL;
        }
        int p = queue[head].producer, seq = queue[head].seq;
        head = (head + 1) % SIZE;
        used--;
        EQ(seq, last[p] + 1);
        last[p] = seq;
        if (++consumed == producers * per_producer) OK(pthread_cond_broadcast(&not_empty));
        OK(pthread_cond_signal(&not_full));
        OK(pthread_mutex_unlock(&mutex));
    }
}
static void *role(void *arg) {
    int i = (int)(intptr_t)arg;
    return i < producers ? produce(i) : consume();
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    producers = threads / 2;
    per_producer = t_share(20000, producers);
    last = calloc((size_t)producers, sizeof *last);
    PHASE("queue");
    t_run(threads, role);
    EQ(consumed, producers * per_producer);
    EQ(used, 0);
    return t_ok("pthread_cond_queue");
}
