// Process-shared mutex, condition variable, barrier, semaphore, rwlock and spinlock in a shared
// mapping, between processes with threads: wake-ups must reach waiters in other processes.
#include "pthread_test.h"
#include <semaphore.h>

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_barrier_t barrier;
    pthread_rwlock_t rwlock;
    pthread_spinlock_t spin;
    sem_t sem, done;
    long counter, rw_counter, spin_counter, sem_counter, turn, serial;
};
static struct shared *s;
static int procs, rounds;
enum { PER_PROC = 2 };

static void *work(void *arg) {
    int me = (int)(intptr_t)arg, all = procs * PER_PROC;
    for (int i = 0; i < rounds; i++) {
        OK(pthread_mutex_lock(&s->mutex));
        while (s->turn != me) OK(pthread_cond_wait(&s->cond, &s->mutex));
        s->turn = (me + 1) % all;
        s->counter++;
        OK(pthread_cond_broadcast(&s->cond));
        OK(pthread_mutex_unlock(&s->mutex));
        SYS(sem_wait(&s->sem));
        s->sem_counter++;
        SYS(sem_post(&s->sem));
        OK(pthread_rwlock_wrlock(&s->rwlock));
        s->rw_counter++;
        OK(pthread_rwlock_unlock(&s->rwlock));
        OK(pthread_rwlock_rdlock(&s->rwlock));
        CHECK(s->rw_counter > 0, "rw");
        OK(pthread_rwlock_unlock(&s->rwlock));
        OK(pthread_spin_lock(&s->spin));
        s->spin_counter++;
        OK(pthread_spin_unlock(&s->spin));
        int r = pthread_barrier_wait(&s->barrier);
        if (r == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_add_fetch(&s->serial, 1, __ATOMIC_SEQ_CST);
        else
            OK(r);
    }
    SYS(sem_post(&s->done));
    return NULL;
}

int main(void) {
    t_watchdog();
    procs = t_threads() / PER_PROC;
    if (procs < 2) procs = 2;
    if (procs > 12) procs = 12;
    rounds = t_share(600, procs * PER_PROC);
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(s != MAP_FAILED, "mmap");
    pthread_mutexattr_t ma;
    pthread_condattr_t ca;
    pthread_barrierattr_t ba;
    pthread_rwlockattr_t ra;
    OK(pthread_mutexattr_init(&ma));
    OK(pthread_condattr_init(&ca));
    OK(pthread_barrierattr_init(&ba));
    OK(pthread_rwlockattr_init(&ra));
    OK(pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED));
    OK(pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED));
    OK(pthread_barrierattr_setpshared(&ba, PTHREAD_PROCESS_SHARED));
    OK(pthread_rwlockattr_setpshared(&ra, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutex_init(&s->mutex, &ma));
    OK(pthread_cond_init(&s->cond, &ca));
    OK(pthread_barrier_init(&s->barrier, &ba, (unsigned)(procs * PER_PROC)));
    OK(pthread_rwlock_init(&s->rwlock, &ra));
    OK(pthread_spin_init(&s->spin, PTHREAD_PROCESS_SHARED));
    SYS(sem_init(&s->sem, 1, 1));
    SYS(sem_init(&s->done, 1, 0));

    PHASE("processes with threads");
    for (int p = 0; p < procs; p++) {
        pid_t pid = fork();
        SYS(pid);
        if (!pid) {
            pthread_t t[PER_PROC];
            for (int i = 0; i < PER_PROC; i++)
                t[i] = t_spawn(work, (void *)(intptr_t)(p * PER_PROC + i));
            for (int i = 0; i < PER_PROC; i++) t_join(t[i]);
            _exit(0);
        }
    }
    long all = (long)procs * PER_PROC;
    for (long i = 0; i < all; i++)
        while (sem_wait(&s->done)) EQ(errno, EINTR);
    PHASE("waiting for processes");
    for (int p = 0; p < procs; p++) {
        int status;
        SYS(wait(&status));
        EQ(status, 0);
    }
    EQ(s->counter, all * rounds);
    EQ(s->sem_counter, all * rounds);
    EQ(s->rw_counter, all * rounds);
    EQ(s->spin_counter, all * rounds);
    EQ(s->serial, rounds);
    return t_ok("pthread_pshared");
}
