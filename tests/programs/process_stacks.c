// Threads with the smallest possible stack, with a stack of their own, and with a guard. A thread's
// stack is the given one before and after it has waited.
#include "pthread_test.h"

static pthread_barrier_t barrier;
static int rounds;

static void on_own_stack(void) {
    pthread_attr_t a;
    void *base;
    size_t size;
    char here;
    OK(pthread_getattr_np(pthread_self(), &a));
    OK(pthread_attr_getstack(&a, &base, &size));
    CHECK(&here >= (char *)base && &here < (char *)base + size, "%p is not in the stack %p+%zx",
          (void *)&here, base, size);
    OK(pthread_attr_destroy(&a));
}
static void *work(void *arg) {
    volatile char pattern[1500];
    for (int i = 0; i < 1500; i++) pattern[i] = (char)(i + (intptr_t)arg);
    for (int i = 0; i < rounds; i++) {
        on_own_stack();
        pthread_barrier_wait(&barrier);
        on_own_stack();
        for (int k = 0; k < 1500; k += 7)
            CHECK(pattern[k] == (char)(k + (intptr_t)arg), "stack overwritten at %d", k);
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    rounds = t_share(1500, threads);
    long min = sysconf(_SC_THREAD_STACK_MIN);
    if (min < PTHREAD_STACK_MIN) min = PTHREAD_STACK_MIN;
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    pthread_t *t = calloc(1024, sizeof *t);
    for (int kind = 0; kind < 3; kind++) {
        PHASE("threads with a small or an own stack");
        // In some rounds every thread has the minimum stack: all code on it has little room.
        for (int i = 0; i < threads; i++) {
            pthread_attr_t a;
            OK(pthread_attr_init(&a));
            if (kind == 0) OK(pthread_attr_setstacksize(&a, (size_t)min));
            if (kind == 1) {
                size_t size = 128 * 1024;
                void *p =
                    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                CHECK(p != MAP_FAILED, "mmap");
                OK(pthread_attr_setstack(&a, p, size));
            }
            if (kind == 2) {
                OK(pthread_attr_setstacksize(&a, 256 * 1024));
                OK(pthread_attr_setguardsize(&a, 65536));
            }
            OK(pthread_create(&t[i], &a, work, (void *)(intptr_t)i));
            OK(pthread_attr_destroy(&a));
        }
        for (int i = 0; i < threads; i++) t_join(t[i]);
    }
    pthread_attr_t a;
    OK(pthread_attr_init(&a));
    EQ(pthread_attr_setstacksize(&a, 100), EINVAL);
    return t_ok("process_stacks");
}
