// ITIMER_PROF and ITIMER_VIRTUAL signal threads that use the CPU, not those that wait for each
// other. SIGPIPE is pending for the thread that wrote, which receives it.
#include "pthread_test.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

static pthread_barrier_t barrier;
static volatile int stop;
static __thread int computes;
static int of_computing, of_others;

static void handler(int sig) {
    (void)sig;
    __atomic_fetch_add(computes ? &of_computing : &of_others, 1, __ATOMIC_SEQ_CST);
}
static void *compute(void *arg) {
    computes = 1;
    for (int i = 0; !stop; i++) {
        for (volatile int k = 0; k < 3000000; k++) {}
        if (i % 4 == 0) sched_yield();
    }
    return arg;
}
static void *meet(void *arg) {
    static volatile int ends;
    do {
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ends = stop;
        pthread_barrier_wait(&barrier);
        t_sleep_ms(5);
    } while (!ends);
    return arg;
}
static void *writer(void *arg) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    struct timespec none = {0, 0};
    for (int i = 0; i < 200; i++) {
        int s[2];
        SYS(socketpair(AF_UNIX, SOCK_STREAM | (i % 2 ? SOCK_NONBLOCK : 0), 0, s));
        close(s[1]);
        sched_yield();
        ERR(write(s[0], "x", 1), EPIPE);
        EQ(sigtimedwait(&pipe, NULL, &none), SIGPIPE);
        ERR(sigtimedwait(&pipe, NULL, &none), EAGAIN);
        close(s[0]);
    }
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads() > 64 ? 64 : t_threads();
    pthread_t t[64];
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    OK(pthread_sigmask(SIG_BLOCK, &pipe, NULL)); // in all threads
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGPROF, &a, NULL));
    SYS(sigaction(SIGVTALRM, &a, NULL));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads / 2));
    for (int i = 0; i < threads; i++) t[i] = t_spawn(i < threads / 2 ? meet : compute, NULL);
    struct itimerval every = {{0, 4000}, {0, 4000}}, never = {{0, 0}, {0, 0}};
    PHASE("profile");
    for (int which = 0; which < 2; which++) {
        SYS(setitimer(which ? ITIMER_PROF : ITIMER_VIRTUAL, &every, NULL));
        while (of_computing < 100 * (which + 1)) t_sleep_ms(1);
        SYS(setitimer(which ? ITIMER_PROF : ITIMER_VIRTUAL, &never, NULL));
    }
    stop = 1;
    for (int i = 0; i < threads; i++) t_join(t[i]);
    CHECK(of_computing > 4 * of_others, "%d signals in threads that compute, %d in others",
          of_computing, of_others);
    PHASE("pipes");
    for (int i = 0; i < threads; i++) t[i] = t_spawn(writer, NULL);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("signal_profile");
}
