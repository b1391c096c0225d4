// O_NONBLOCK belongs to the open file. It is cleared through another descriptor, or by another
// process, after threads have read the descriptor without waiting. They must then wait, be woken by
// written data and interrupted by signals, and no other thread may stall.
#include "pthread_test.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum { ROUNDS = 30 };
static atomic_int reading, handled, stop;
static int in[2];
static pthread_barrier_t barrier;

static void handler(int sig) {
    (void)sig;
    atomic_fetch_add(&handled, 1);
}
static void *busy(void *arg) {
    static volatile int ends;
    do {
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ends = stop;
        pthread_barrier_wait(&barrier);
    } while (!ends);
    return arg;
}
static void nonblocking(int fd, int on) {
    int flags = fcntl(fd, F_GETFL);
    SYS(flags);
    SYS(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}
static void *reader(void *arg) {
    char c;
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 20; k++) {
            ERR(read(in[0], &c, 1), EAGAIN);
            sched_yield();
        }
        atomic_store(&reading, 1);
        while (atomic_load(&reading) != 2) sched_yield();
        EQ(read(in[0], &c, 1), 1);
        EQ(c, i);
        atomic_store(&reading, 3);
        while (atomic_load(&reading) != 4) sched_yield();
    }
    return arg;
}
static void round_trips(int by_child) {
    int other = dup(in[0]);
    SYS(other);
    nonblocking(other, 1);
    pthread_t r = t_spawn(reader, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_load(&reading) != 1) sched_yield();
        if (by_child) {
            pid_t child = fork();
            SYS(child);
            if (!child) {
                nonblocking(other, 0);
                _exit(0);
            }
            EQ(waitpid(child, NULL, 0), child);
        } else
            nonblocking(other, 0);
        atomic_store(&reading, 2);
        t_sleep_ms(2);
        int before = handled;
        OK(pthread_kill(r, SIGUSR1));
        for (int k = 0; k < 5000 && handled == before; k++) t_sleep_us(200);
        EQ(handled, before + 1);
        char c = (char)i;
        EQ(write(in[1], &c, 1), 1);
        while (atomic_load(&reading) != 3) sched_yield();
        nonblocking(other, 1);
        atomic_store(&reading, 4);
    }
    t_join(r);
    reading = 0;
    close(other);
}

int main(void) {
    t_watchdog();
    int threads = t_threads() > 64 ? 64 : t_threads();
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &a, NULL));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    pthread_t t[64];
    for (int i = 0; i < threads; i++) t[i] = t_spawn(busy, NULL);
    for (int kind = 0; kind < 2; kind++) {
        if (kind)
            SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in));
        else
            SYS(pipe2(in, O_CLOEXEC));
        PHASE("by another descriptor");
        round_trips(0);
        PHASE("by another process");
        round_trips(1);
        close(in[0]);
        close(in[1]);
    }
    stop = 1;
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("process_nonblock");
}
