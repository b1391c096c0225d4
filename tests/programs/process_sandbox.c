// A program that forbids itself and all its threads some calls that it does not make, under penalty
// of death. The runtime must not make them from then on, either.
#include "pthread_test.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

static pthread_barrier_t barrier;
static atomic_int flag, begun;
static int threads, never[64], always;

static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < 400; i++) {
        pthread_barrier_wait(&barrier);
        if (i % 40 == 0) {
            struct epoll_event e;
            uint64_t one;
            t_sleep_us(500);
            EQ(epoll_wait(never[me], &e, 1, 1), 0);
            EQ(read(always, &one, sizeof one), sizeof one);
        }
        // a loop with a spin site
        while (me < 4 && atomic_load(&flag) % (threads < 4 ? threads : 4) != me)
            __builtin_ia32_pause();
        if (me < 4) atomic_fetch_add(&flag, 1);
    }
    return NULL;
}

// Forbid all calls but those that the program makes from then on.
static void allow_only(void) {
    static const int made[] = {SYS_futex,   SYS_write,  SYS_exit,           SYS_exit_group,
                               SYS_madvise, SYS_munmap, SYS_rt_sigprocmask, SYS_sched_yield};
    struct sock_filter code[40] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned n = 1;
    for (unsigned i = 0; i < sizeof made / sizeof *made; i++) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)made[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {(unsigned short)n, code};
    SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    SYS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
}
static void *compute(void *arg) {
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 400; i++) {
        pthread_barrier_wait(&barrier);
        for (volatile int k = 0; k < 20000; k++) {}
        while ((long)(intptr_t)arg < 4 && atomic_load(&flag) % 4 != (int)(intptr_t)arg)
            sched_yield();
        if ((long)(intptr_t)arg < 4) atomic_fetch_add(&flag, 1);
    }
    return NULL;
}
static void allowed_round(void) {
    pthread_t t[64];
    threads = t_threads() > 32 ? 32 : t_threads() < 4 ? 4 : t_threads();
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (int i = 0; i < threads; i++) t[i] = t_spawn(compute, (void *)(intptr_t)i);
    while (atomic_load(&begun) < threads) t_sleep_ms(1); // starting threads makes other calls
    t_sleep_ms(20);
    allow_only();
    for (int i = 0; i < threads; i++) t_join(t[i]);
}

static void forbid(int how) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_ctl, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_create1, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_recvfrom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (how)
        SYS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
    else
        SYS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0,
                  0)); // later threads inherit it
}

static void round_of(int how) {
    pthread_t t[64];
    threads = t_threads() > 32 ? 32 : t_threads() + 1;
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    SYS(always = eventfd(1 << 30, EFD_SEMAPHORE));
    for (int i = 0; i < threads; i++) SYS(never[i] = epoll_create1(EPOLL_CLOEXEC));
    if (!how) forbid(0);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    t_sleep_ms(60); // the monitor has checked the CPUs by now
    if (how) forbid(1);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    t_sleep_ms(120);
}

int main(void) {
    t_watchdog();
    for (int how = 0; how < 3; how++) {
        pid_t child = fork();
        SYS(child);
        if (!child) {
            if (how == 2)
                allowed_round();
            else
                round_of(how);
            _exit(0);
        }
        int status;
        EQ(waitpid(child, &status, 0), child);
        EQ(status, 0);
    }
    round_of(1);
    return t_ok("process_sandbox");
}
