// pthread_exit in main while other threads continue. The process ends with status 0 when the last
// thread ends; the atexit handlers run in that thread.
#include "pthread_test.h"

static pthread_barrier_t barrier;
static pthread_t main_thread;
static int threads, left;

static void at_exit(void) {
    CHECK(!pthread_equal(pthread_self(), main_thread), "atexit ran in main");
    EQ(__atomic_load_n(&left, __ATOMIC_SEQ_CST), 0);
    t_ok("pthread_exit_main");
}
static void *work(void *arg) {
    if (arg == 0) t_join(main_thread); // main can be joined although it does not return
    for (int i = 0; i < 50; i++) pthread_barrier_wait(&barrier);
    __atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

int main(void) {
    t_watchdog();
    left = threads = t_threads();
    main_thread = pthread_self();
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    if (atexit(at_exit)) FAIL("atexit");
    PHASE("main has left");
    for (int i = 0; i < threads; i++) t_spawn(work, (void *)(intptr_t)i);
    pthread_exit(NULL);
}
