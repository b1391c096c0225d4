/* SPDX-License-Identifier: MIT */
// The second thread of the process is created in each possible way:
//     start_by thrd | timer | raw | forks | spawns | handler | altstack | coroutine
#include "start_test.h"
#include <sched.h>
#include <spawn.h>
#include <threads.h>
#include <ucontext.h>

extern char **environ;
static volatile int happened;
static pthread_t made;

static int answer(void *arg) {
    thrd_yield();
    return (int)(intptr_t)arg;
}

// C11 threads: libc creates them without pthread_create.
static void by_thrd(void) {
    thrd_t t[8];
    for (int i = 0; i < 8; i++) EQ(thrd_create(&t[i], answer, (void *)(intptr_t)i), thrd_success);
    for (int i = 0; i < 8; i++) {
        int got;
        EQ(thrd_join(t[i], &got), thrd_success);
        EQ(got, i);
    }
}

static void on_timer(union sigval v) { happened = v.sival_int; }

// A thread created by libc itself.
static void by_timer(void) {
    struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer};
    e.sigev_value.sival_int = 7;
    timer_t timer;
    SYS(timer_create(CLOCK_MONOTONIC, &e, &timer));
    struct itimerspec s = {{0, 0}, {0, 1000000}};
    SYS(timer_settime(timer, 0, &s, NULL));
    while (happened != 7) t_sleep_us(100);
}

static int raw_thread(void *arg) {
    while (!happened) sched_yield();
    (void)arg;
    syscall(SYS_exit, 0);
    return 0;
}

// A thread created by a system call of the program's own, which no library sees.
static void by_raw_clone(void) {
    static char stack[65536] __attribute__((aligned(16)));
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    void **top = (void **)(stack + sizeof stack) - 2;
    long tid;
    __asm__ volatile("syscall\n"
                     "test %%rax, %%rax\n"
                     "jnz 1f\n"
                     "xor %%edi, %%edi\n"
                     "call *%[thread]\n"
                     "1:"
                     : "=a"(tid)
                     : "a"(SYS_clone), "D"(flags), "S"(top), "d"(0), [thread] "b"(raw_thread)
                     : "rcx", "r8", "r9", "r10", "r11", "memory");
    CHECK(tid > 0);
}

// Children with one thread, each of which creates its second one.
static void by_forks(void) {
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        SYS(child);
        if (!child) {
            s_threads_work();
            exit(3);
        }
        int status;
        EQ(waitpid(child, &status, 0), child);
        EQ(WEXITSTATUS(status), 3);
    }
}

// Children that share the memory until exec: no threads.
static void after_spawns(void) {
    for (int i = 0; i < 20; i++) {
        char *arguments[] = {(char *)"sh", (char *)"-c", (char *)"exit 5", NULL};
        pid_t child;
        int status;
        OK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ));
        EQ(waitpid(child, &status, 0), child);
        EQ(WEXITSTATUS(status), 5);
        EQ(WEXITSTATUS(system("exit 6")), 6);
        child = vfork();
        if (!child) _exit(7);
        EQ(waitpid(child, &status, 0), child);
        EQ(WEXITSTATUS(status), 7);
    }
}

static void on_alarm(int sig) {
    if (!happened) made = t_spawn(s_work, NULL);
    happened = sig;
}

// A handler creates the thread, while the first thread is in a call that then continues.
static void by_handler(int flags) {
    struct sigaction a = {.sa_handler = on_alarm, .sa_flags = flags};
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    if (flags & SA_ONSTACK) SYS(sigaltstack(&alternate, NULL));
    SYS(sigaction(SIGALRM, &a, NULL));
    s_threads = 1;
    OK(pthread_barrier_init(&s_barrier, NULL, 1));
    atomic_store(&s_flag, 0);
    alarm(1);
    // the new thread is number 0 of four that pass a flag around; this thread plays the other three
    while (!happened) pause();
    for (int i = 0; i < 5; i++) {
        while (atomic_load(&s_flag) % 4 != 1) sched_yield();
        atomic_fetch_add(&s_flag, 3);
    }
    t_join(made);
}

static ucontext_t there, back;
static void on_other_stack(void) {
    s_threads_work();
    happened = 1;
}
static void by_coroutine(void) {
    static char stack[256 * 1024];
    SYS(getcontext(&there));
    there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = sizeof stack};
    there.uc_link = &back;
    makecontext(&there, on_other_stack, 0);
    SYS(swapcontext(&back, &there));
    EQ(happened, 1);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    t_watchdog();
    if (!strcmp(way, "thrd")) by_thrd();
    if (!strcmp(way, "timer")) by_timer();
    if (!strcmp(way, "raw")) by_raw_clone();
    if (!strcmp(way, "forks")) by_forks();
    if (!strcmp(way, "spawns")) after_spawns();
    if (!strcmp(way, "handler")) by_handler(0);
    if (!strcmp(way, "altstack")) by_handler(SA_ONSTACK);
    if (!strcmp(way, "coroutine")) by_coroutine();
    s_threads_work();
    happened = 1;
    s_threads_work();
    return t_ok("start_by");
}
