/* SPDX-License-Identifier: MIT */
// Other locks in place of glibc's mutexes, in unmodified programs, as LiTL does it (H. Guiroux, R.
// Lachaize, V. Quema, "Multicore Locks: The Case Is Not Closed Yet", USENIX ATC 2016):
//
//     LOCK=mutexee|mcs-tp|shfllock|adaptive LD_PRELOAD=./preload.so PROGRAM
//
// Only normal and adaptive mutexes are replaced. Recursive, error-checking, robust,
// priority-inheriting and process-shared ones stay glibc's. `adaptive` is glibc's own
// PTHREAD_MUTEX_ADAPTIVE_NP for all normal ones. Condition variables are replaced too, except with
// `adaptive`, because glibc's know only glibc's mutexes. They are a counter that waiters sleep on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mcs_tp.h"
#include "mutexee.h"
#include "shfllock.h"

static const struct kind {
    const char *name;
    void (*lock)(struct preload_lock *);
    int (*trylock)(struct preload_lock *);
    void (*unlock)(struct preload_lock *);
} kinds[] = {
    {"mutexee", mutexee_lock, mutexee_trylock, mutexee_unlock},
    {"mcs-tp", mcs_tp_lock, mcs_tp_trylock, mcs_tp_unlock},
    {"shfllock", shfl_lock, shfl_trylock, shfl_unlock},
};

static struct {
    int (*lock)(pthread_mutex_t *);
    int (*trylock)(pthread_mutex_t *);
    int (*unlock)(pthread_mutex_t *);
    int (*clocklock)(pthread_mutex_t *, clockid_t, const struct timespec *);
    int (*cond_init)(pthread_cond_t *, const pthread_condattr_t *);
    int (*cond_destroy)(pthread_cond_t *);
    int (*cond_signal)(pthread_cond_t *);
    int (*cond_broadcast)(pthread_cond_t *);
    int (*cond_wait)(pthread_cond_t *, pthread_mutex_t *);
    int (*cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int (*cond_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
} glibc;
static const struct kind *chosen; // NULL: glibc's mutexes
static int adaptive;
static int is_ready;

// Find glibc's functions and read LOCK, once. Constructors of other libraries may lock a mutex
// before begin() has run; the process has one thread then.
static void get_ready(void) {
    if (is_ready)
        return;
    is_ready = 1;
#define FIND(field, name) *(void **)&glibc.field = dlsym(RTLD_NEXT, name)
    FIND(lock, "pthread_mutex_lock");
    FIND(trylock, "pthread_mutex_trylock");
    FIND(unlock, "pthread_mutex_unlock");
    FIND(clocklock, "pthread_mutex_clocklock");
    FIND(cond_init, "pthread_cond_init");
    FIND(cond_destroy, "pthread_cond_destroy");
    FIND(cond_signal, "pthread_cond_signal");
    FIND(cond_broadcast, "pthread_cond_broadcast");
    FIND(cond_wait, "pthread_cond_wait");
    FIND(cond_timedwait, "pthread_cond_timedwait");
    FIND(cond_clockwait, "pthread_cond_clockwait");
#undef FIND
    const char *name = getenv("LOCK");
    adaptive = name && !strcmp(name, "adaptive");
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(name, kinds[i].name))
            chosen = &kinds[i];
    if (!chosen && !adaptive) {
        static const char text[] =
            "preload.so: LOCK has to be mutexee, mcs-tp, shfllock or adaptive\n";
        ssize_t ignored = write(2, text, sizeof text - 1);
        (void)ignored;
        _exit(2);
    }
}

__attribute__((constructor)) static void begin(void) { get_ready(); }

// Return the mutex as a lock of the chosen kind; NULL if it stays glibc's.
static struct preload_lock *ours(pthread_mutex_t *mutex) {
    get_ready();
    int kind = mutex->__data.__kind;
    if (adaptive && kind == PTHREAD_MUTEX_TIMED_NP)
        // Other threads may see this late: only the time that they spin depends on it.
        __atomic_store_n(&mutex->__data.__kind, PTHREAD_MUTEX_ADAPTIVE_NP, __ATOMIC_RELAXED);
    if (!chosen || (kind != PTHREAD_MUTEX_TIMED_NP && kind != PTHREAD_MUTEX_ADAPTIVE_NP))
        return NULL;
    return (struct preload_lock *)mutex;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    struct preload_lock *lock = ours(mutex);
    if (!lock)
        return glibc.lock(mutex);
    chosen->lock(lock);
    return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    struct preload_lock *lock = ours(mutex);
    if (!lock)
        return glibc.trylock(mutex);
    return chosen->trylock(lock) ? 0 : EBUSY;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    struct preload_lock *lock = ours(mutex);
    if (!lock)
        return glibc.unlock(mutex);
    chosen->unlock(lock);
    return 0;
}

// The papers' locks have no timeout: this retries, less and less often.
int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
    struct preload_lock *lock = ours(mutex);
    if (!lock)
        return glibc.clocklock(mutex, clock, until);
    if (until->tv_nsec < 0 || until->tv_nsec >= 1000000000)
        return chosen->trylock(lock) ? 0 : EINVAL;
    for (long pause = 1000; !chosen->trylock(lock); pause = pause < 1000000 ? pause * 2 : pause) {
        struct timespec t;
        clock_gettime(clock, &t);
        if (t.tv_sec > until->tv_sec || (t.tv_sec == until->tv_sec && t.tv_nsec >= until->tv_nsec))
            return ETIMEDOUT;
        nanosleep(&(struct timespec){0, pause}, NULL);
    }
    return 0;
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until) {
    return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, until);
}

// --- condition variables -------------------------------------------------------------------------

// A waiter reads `turn` while it holds the mutex, and sleeps while `turn` has not changed. A signal
// changes it and wakes the thread that has slept longest. A thread that has read the old value and
// does not sleep yet will not sleep. A later one reads the new value and queues behind the others
// in the kernel. `waiters` is incremented under the mutex, so a thread that has changed the
// condition under the mutex sees it.
struct cond {
    _Atomic uint32_t turn, waiters;
    uint32_t monotonic, shared;
};
_Static_assert(sizeof(struct cond) <= sizeof(pthread_cond_t), "it has to fit");

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes) {
    get_ready();
    if (!chosen)
        return glibc.cond_init(cond, attributes);
    memset(cond, 0, sizeof *cond);
    struct cond *c = (struct cond *)cond;
    clockid_t clock = CLOCK_REALTIME;
    int shared = PTHREAD_PROCESS_PRIVATE;
    if (attributes) {
        pthread_condattr_getclock(attributes, &clock);
        pthread_condattr_getpshared(attributes, &shared);
    }
    c->monotonic = clock == CLOCK_MONOTONIC;
    c->shared = shared == PTHREAD_PROCESS_SHARED;
    return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond) {
    get_ready();
    if (!chosen)
        return glibc.cond_destroy(cond);
    // Woken threads may not have decremented it yet.
    while (atomic_load(&((struct cond *)cond)->waiters) != 0)
        sched_yield();
    return 0;
}

static long cond_futex(struct cond *c, int operation, uint32_t value,
                       const struct timespec *until) {
    if (!c->shared)
        operation |= FUTEX_PRIVATE_FLAG;
    return syscall(SYS_futex, &c->turn, operation, value, until, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void cond_wake(struct cond *c, uint32_t most) {
    if (atomic_load(&c->waiters) == 0)
        return;
    atomic_fetch_add(&c->turn, 1);
    cond_futex(c, FUTEX_WAKE, most, NULL);
}

int pthread_cond_signal(pthread_cond_t *cond) {
    get_ready();
    if (!chosen)
        return glibc.cond_signal(cond);
    cond_wake((struct cond *)cond, 1);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond) {
    get_ready();
    if (!chosen)
        return glibc.cond_broadcast(cond);
    cond_wake((struct cond *)cond, INT_MAX);
    return 0;
}

struct cancelled {
    struct cond *cond;
    pthread_mutex_t *mutex;
};

// Cleanup handler of a cancelled wait: a cancelled thread holds the mutex when its handlers run.
static void when_cancelled(void *argument) {
    struct cancelled *c = argument;
    atomic_fetch_sub(&c->cond->waiters, 1);
    pthread_mutex_lock(c->mutex);
}

// Wait. until: absolute time, NULL: for ever. monotonic: it is by CLOCK_MONOTONIC. Returns 0,
// EINVAL or ETIMEDOUT.
static int cond_wait(struct cond *c, pthread_mutex_t *mutex, int monotonic,
                     const struct timespec *until) {
    if (until && (until->tv_nsec < 0 || until->tv_nsec >= 1000000000))
        return EINVAL;
    uint32_t turn = atomic_load(&c->turn);
    atomic_fetch_add(&c->waiters, 1);
    pthread_mutex_unlock(mutex);
    struct cancelled argument = {c, mutex};
    int type, error = 0;
    pthread_cleanup_push(when_cancelled, &argument);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    int operation = FUTEX_WAIT_BITSET | (monotonic ? 0 : FUTEX_CLOCK_REALTIME);
    if (cond_futex(c, operation, turn, until) != 0 && errno == ETIMEDOUT)
        error = ETIMEDOUT;
    pthread_setcanceltype(type, NULL);
    pthread_cleanup_pop(0);
    atomic_fetch_sub(&c->waiters, 1);
    pthread_mutex_lock(mutex);
    return error;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
    get_ready();
    if (!chosen)
        return glibc.cond_wait(cond, mutex);
    return cond_wait((struct cond *)cond, mutex, 0, NULL);
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                           const struct timespec *until) {
    get_ready();
    if (!chosen)
        return glibc.cond_timedwait(cond, mutex, until);
    struct cond *c = (struct cond *)cond;
    return cond_wait(c, mutex, (int)c->monotonic, until);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *until) {
    get_ready();
    if (!chosen)
        return glibc.cond_clockwait(cond, mutex, clock, until);
    return cond_wait((struct cond *)cond, mutex, clock == CLOCK_MONOTONIC, until);
}
