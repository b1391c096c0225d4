// fork in a program with threads, from main and from others. Only the caller exists in the child;
// pthread_atfork handlers run in order; the child may lock, wait and create threads.
#include "pthread_test.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int threads, counter;
static __thread char order[16]; // other threads may fork at the same time

static void prepare1(void) {
    OK(pthread_mutex_lock(&lock));
    strcat(order, "1");
}
static void parent1(void) {
    order[0] = 0;
    OK(pthread_mutex_unlock(&lock));
}
static void child1(void) {
    strcat(order, "c");
    OK(pthread_mutex_unlock(&lock));
}
static void prepare2(void) { strcat(order, "2"); }
static void child2(void) { strcat(order, "C"); }

struct child {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int turn, sum;
};
static struct child c = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
static void *child_thread(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < 20; i++) {
        OK(pthread_mutex_lock(&c.mutex));
        while (c.turn != me) OK(pthread_cond_wait(&c.cond, &c.mutex));
        c.turn = (me + 1) % 4;
        c.sum++;
        OK(pthread_cond_broadcast(&c.cond));
        OK(pthread_mutex_unlock(&c.mutex));
    }
    return NULL;
}
static void in_child(pthread_t self) {
    CHECK(pthread_equal(self, pthread_self()), "pthread_self changed");
    EQ(getpid(), syscall(SYS_gettid));
    // Prepare handlers run last to first, child handlers first to last.
    CHECK(!strcmp(order, "21cC"), "atfork order %s", order);
    OK(pthread_mutex_trylock(&lock));
    OK(pthread_mutex_unlock(&lock));
    t_run(4, child_thread);
    EQ(c.sum, 80);
    char *p = malloc(100000); // the heap is usable
    memset(p, 1, 100000);
    free(p);
    pid_t again = fork(); // the child may fork, too
    SYS(again);
    if (!again) {
        c.sum = c.turn = 0;
        t_run(4, child_thread);
        _exit(c.sum == 80 ? 9 : 1);
    }
    int status;
    SYS(waitpid(again, &status, 0));
    EQ(WEXITSTATUS(status), 9);
    EQ(waitpid(-1, &status, 0), -1); // the child has no other children
    _exit(17);
}
static void forks(void) {
    pthread_t self = pthread_self();
    // Keep stdio out of the child: its buffers would not be flushed.
    pid_t pid = fork();
    SYS(pid);
    if (!pid) in_child(self);
    int status;
    while (waitpid(pid, &status, 0) == -1) EQ(errno, EINTR);
    CHECK(WIFEXITED(status), "child's status %x", (unsigned)status);
    EQ(WEXITSTATUS(status), 17);
}
static void *busy(void *arg) { // holds locks and waits while others fork
    for (int i = 0; i < 400 / threads + 20; i++) {
        pthread_barrier_wait(&barrier);
        OK(pthread_mutex_lock(&lock));
        counter++;
        OK(pthread_mutex_unlock(&lock));
    }
    return arg;
}
static void *forker(void *arg) {
    for (int i = 0; i < 3; i++) forks();
    return arg;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    OK(pthread_atfork(prepare1, parent1, child1));
    OK(pthread_atfork(prepare2, NULL, child2));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    PHASE("without threads");
    forks();
    PHASE("with threads");
    pthread_t *t = calloc(1024, sizeof *t), f[3];
    for (int i = 0; i < threads; i++) t[i] = t_spawn(busy, NULL);
    for (int i = 0; i < 3; i++) f[i] = t_spawn(forker, NULL);
    for (int i = 0; i < 3; i++) forks();
    for (int i = 0; i < 3; i++) t_join(f[i]);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    EQ(counter, threads * (400 / threads + 20));
    PHASE("threads have ended");
    forks();
    return t_ok("process_fork");
}
