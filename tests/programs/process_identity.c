// Properties of its kernel thread stay with each thread across blocking: gettid (read in three
// ways), its entry in /proc/self/task, name, affinity, CPU-time clock, errno, nice value and
// scheduling policy.
#include "pthread_test.h"
#include <sys/prctl.h>
#include <sys/resource.h>

static pthread_barrier_t barrier;
static int threads, rounds;
static pid_t tids[1024];

static pid_t inline_gettid(void) { return (pid_t)t_raw(SYS_gettid, 0, 0, 0, 0, 0); }

static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    pid_t tid = gettid();
    tids[me] = tid;
    char name[16], path[64], got[32];
    snprintf(name, sizeof name, "worker-%d", me);
    OK(pthread_setname_np(pthread_self(), name));
    cpu_set_t all, one, now;
    OK(pthread_getaffinity_np(pthread_self(), sizeof all, &all));
    int cpu = -1;
    if (me % 3 == 1) { // a third of the threads bind themselves
        int k = me % CPU_COUNT(&all);
        for (cpu = 0; !CPU_ISSET(cpu, &all) || k-- > 0;) cpu++;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        SYS(sched_setaffinity(0, sizeof one, &one));
    }
    if (me % 5 == 2) SYS(setpriority(PRIO_PROCESS, (id_t)tid, 3));
    clockid_t clock;
    OK(pthread_getcpuclockid(pthread_self(), &clock));
    int64_t cpu_time = t_now(CLOCK_THREAD_CPUTIME_ID);
    volatile unsigned x = 0;
    for (int i = 0; i < rounds; i++) {
        errno = me + 1;
        pthread_barrier_wait(&barrier);
        EQ(errno, me + 1);
        EQ(gettid(), tid);
        EQ(syscall(SYS_gettid), tid);
        EQ(inline_gettid(), tid);
        OK(pthread_getname_np(pthread_self(), got, sizeof got));
        CHECK(!strcmp(got, name), "name '%s', expected '%s'", got, name);
        SYS(prctl(PR_GET_NAME, got));
        CHECK(!strcmp(got, name), "prctl name '%s', expected '%s'", got, name);
        if (cpu >= 0) {
            SYS(sched_getaffinity(0, sizeof now, &now));
            CHECK(CPU_EQUAL(&now, &one), "affinity lost");
            EQ(sched_getcpu(), cpu);
        } else {
            OK(pthread_getaffinity_np(pthread_self(), sizeof now, &now));
            CHECK(CPU_EQUAL(&now, &all), "affinity changed by somebody");
        }
        EQ(getpriority(PRIO_PROCESS, 0), me % 5 == 2 ? 3 : 0);
        EQ(sched_getscheduler(0), SCHED_OTHER);
        for (int k = 0; k < 1000; k++) x = x * 3 + 1;
        int64_t later = t_now(CLOCK_THREAD_CPUTIME_ID);
        CHECK(later >= cpu_time, "thread's CPU time went from %lld back to %lld",
              (long long)cpu_time, (long long)later);
        int64_t other = t_now(clock);
        CHECK(other >= later, "the thread's two CPU clocks differ");
        cpu_time = other;
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
        CHECK(access(path, R_OK) == 0, "%s: %s", path, strerror(errno));
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    rounds = t_share(1500, threads);
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1));
    pthread_t *t = calloc(1024, sizeof *t);
    PHASE("threads");
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    for (int i = 0; i < rounds; i++) pthread_barrier_wait(&barrier);
    // All threads are listed and have different ids.
    for (int i = 0; i < threads; i++) {
        CHECK(t_state(tids[i]), "thread %d is not in /proc", tids[i]);
        CHECK(tids[i] != getpid(), "thread with the id of main");
        for (int k = 0; k < i; k++) CHECK(tids[i] != tids[k], "two threads with id %d", tids[i]);
    }
    char name[32];
    OK(pthread_getname_np(t[0], name, sizeof name));
    CHECK(!strcmp(name, "worker-0"), "name of thread 0: '%s'", name);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    EQ(gettid(), getpid());
    return t_ok("process_identity");
}
