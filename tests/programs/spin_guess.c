// Loops that look like waits but are none, or that end in an unusual way. All must end with the
// right result.
#include "spin_test.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <x86intrin.h>

static int rounds;
// --- repeated calls of a pure function with the same arguments
__attribute__((noinline)) static uint64_t collatz(uint64_t n) {
    uint64_t steps = 0;
    for (; n != 1; steps++) n = n & 1 ? 3 * n + 1 : n / 2;
    return steps;
}
static void *pure(void *arg) {
    uint64_t sum = 0;
    for (int i = 0; i < 3000; i++) {
        uint64_t n = 837799;
        __asm__ volatile("" : "+r"(n));
        sum += collatz(n);
    }
    EQ(sum, 3000 * 524);
    return arg;
}
// Repeated work without a result: every iteration is the same.
static void *idle_work(void *arg) {
    for (volatile int i = 0; i < 40000; i++)
        for (int j = 0; j < 40; j++) __asm__ volatile("");
    return arg;
}
// --- delays
static void *delay(void *arg) {
    for (int k = 0; k < 30; k++)
        for (int i = 0; i < 20000; i++) __builtin_ia32_pause();
    uint64_t n = 20000000;
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(n));
    EQ(n, 0);
    return arg;
}
// --- clocks
static void *clocks(void *arg) {
    uint64_t until = __rdtsc() + 40000000;
    while (__rdtsc() < until) __builtin_ia32_pause();
    CHECK(__rdtsc() >= until, "rdtsc");
    int64_t end = t_now(CLOCK_MONOTONIC) + 15000000;
    while (t_now(CLOCK_MONOTONIC) < end) __builtin_ia32_pause();
    end = t_now(CLOCK_REALTIME) + 5000000;
    volatile int never = 0;
    while (!never && t_now(CLOCK_REALTIME) < end) {}
    return arg;
}
// --- waits ended by a handler of the same thread, or by a jump out of it
static __thread volatile sig_atomic_t flag;
static __thread sigjmp_buf back;
static void on_signal(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)context;
    if (info->si_value.sival_int == 1)
        flag = 1;
    else
        siglongjmp(back, 1);
}
static void *handled(void *arg) {
    timer_t timer;
    for (int i = 0; i < 4; i++) {
        struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID,
                              .sigev_signo = SIGUSR1,
                              .sigev_value.sival_int = 1 + (i & 1)};
        ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        SYS(timer_create(CLOCK_MONOTONIC, &ev, &timer));
        flag = 0;
        struct itimerspec t = {.it_value.tv_nsec = 4000000};
        if (i & 1) {
            if (!sigsetjmp(back, 1)) {
                SYS(timer_settime(timer, 0, &t, NULL));
                for (;;) __asm__ volatile("");
            }
        } else {
            SYS(timer_settime(timer, 0, &t, NULL));
            while (!flag) {}
        }
        SYS(timer_delete(timer));
    }
    return arg;
}
// --- memory that another process writes
static struct shared {
    volatile uint32_t ask, answer, stop;
} *shared;
static void *process(void *arg) {
    struct shared *s = &shared[(intptr_t)arg];
    for (uint32_t i = 1; i <= 15; i++) {
        s->ask = i;
        while (s->answer != i) __builtin_ia32_pause();
    }
    return arg;
}
// --- memory that the kernel writes
static void *reader(void *arg) {
    volatile char *buffer = ((volatile char **)arg)[0];
    SYS(read((int)(intptr_t)((void **)arg)[1], (void *)buffer, 1));
    return NULL;
}
static void *by_kernel(void *arg) {
    int pipes[2];
    SYS(pipe(pipes));
    for (int i = 0; i < 5; i++) {
        volatile char buffer[1] = {0};
        void *args[2] = {(void *)buffer, (void *)(intptr_t)pipes[0]};
        pthread_t t = t_spawn(reader, args);
        char c = 'x';
        SYS(write(pipes[1], &c, 1));
        while (!buffer[0]) __builtin_ia32_pause();
        EQ(buffer[0], 'x');
        t_join(t);
    }
    close(pipes[0]), close(pipes[1]);
    return arg;
}
// --- a flag on the waiter's own stack, beside another one that never changes
static void *sets(void *arg) {
    t_sleep_us(300);
    *(volatile int *)arg = 1;
    return NULL;
}
static volatile int never;
static void *own_stack(void *arg) {
    for (int i = 0; i < 5; i++) {
        volatile int done = 0;
        pthread_t t = t_spawn(sets, (void *)&done);
        while (!done && !never) __builtin_ia32_pause();
        EQ(done, 1);
        t_join(t);
    }
    return arg;
}
// --- a page whose access is revoked to stop the thread: its handler sees the fault at the loop's
// own load
static volatile uint32_t *gate[1024];
static __thread volatile uint32_t *my_gate;
static __thread sigjmp_buf fault_back;
static void on_fault(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)context;
    CHECK(my_gate && info->si_addr == (void *)my_gate, "fault at %p", info->si_addr);
    siglongjmp(fault_back, 1);
}
static void *closes(void *arg) {
    t_sleep_us(2000);
    SYS(mprotect((void *)arg, 4096, PROT_NONE));
    return NULL;
}
static void *gated(void *arg) {
    volatile uint32_t *g = my_gate = gate[(intptr_t)arg];
    for (int i = 0; i < 4; i++) {
        SYS(mprotect((void *)g, 4096, PROT_READ));
        pthread_t t = t_spawn(closes, (void *)g);
        if (!sigsetjmp(fault_back, 1)) {
            while (!*g && !never) __builtin_ia32_pause();
            FAIL("the gate opened");
        }
        t_join(t);
    }
    my_gate = NULL;
    return arg;
}
// --- two waits that differ only in memory: the address is on the stack
__attribute__((noinline, optimize("O0"))) static void wait_at(volatile uint32_t *w,
                                                              uint32_t value) {
    while (*w != value) __builtin_ia32_pause();
}
static void *ring(void *arg) {
    int me = (int)(intptr_t)arg;
    static struct spin_cell two[2][64];
    for (uint32_t r = 1; r <= (uint32_t)rounds; r++)
        for (int k = 0; k < 2; k++) {
            if (me) wait_at(&two[k][me].word, r);
            two[k][(me + 1) % spin_threads].word = r;
            if (!me) wait_at(&two[k][0].word, r);
        }
    return arg;
}
// --- a barrier that counts down; the last thread sets a flag that is read in the same loop
static volatile uint32_t left, sense;
static void *barrier(void *arg) {
    for (uint32_t r = 1; r <= (uint32_t)rounds; r++) {
        if (__atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL) == 0) {
            left = (uint32_t)spin_threads;
            __atomic_store_n(&sense, r, __ATOMIC_RELEASE);
        } else
            while (__atomic_load_n(&sense, __ATOMIC_ACQUIRE) != r) {}
    }
    return arg;
}
// --- descriptors: spinning threads open none, so a closed descriptor is the lowest free one again
static void *descriptors(void *arg) {
    int mine = open("/dev/null", O_RDONLY);
    SYS(mine);
    for (int i = 0; i < 2000; i++) {
        int d = dup(mine);
        SYS(d);
        close(d);
        int e = dup(mine);
        EQ(e, d);
        close(e);
    }
    close(mine);
    return arg;
}
static volatile int spinning;
static volatile uint32_t stop_spinning;
static void *spins(void *arg) {
    __atomic_add_fetch(&spinning, 1, __ATOMIC_SEQ_CST);
    while (!stop_spinning) __builtin_ia32_pause();
    return arg;
}

int main(int argc, char **argv) {
    t_watchdog();
    int threads = t_threads() > 64 ? 64 : t_threads(), only = argc > 1 ? atoi(argv[1]) : -1;
    struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    SYS(sigaction(SIGUSR1, &sa, NULL));
    sa.sa_sigaction = on_fault;
    SYS(sigaction(SIGSEGV, &sa, NULL));
    shared = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t answers = fork();
    SYS(answers);
    if (!answers) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        while (!shared[1000].stop) {
            for (int i = 0; i < threads; i++) shared[i].answer = shared[i].ask;
            t_sleep_us(200);
        }
        _exit(0);
    }
    for (int i = 0; i < threads; i++)
        gate[i] = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rounds = threads > 16 ? 2 : 6;
    spin_threads = threads;
    left = (uint32_t)threads;
    static const struct {
        const char *name;
        void *(*f)(void *);
        int divide;
    } kinds[] = {
        {"pure", pure, 4},           {"idle_work", idle_work, 1}, {"delay", delay, 4},
        {"clocks", clocks, 1},       {"handled", handled, 2},     {"process", process, 4},
        {"by_kernel", by_kernel, 4}, {"own_stack", own_stack, 4}, {"gated", gated, 4},
        {"ring", ring, 1},           {"barrier", barrier, 1},
    };
    for (int k = 0; k < 11; k++) {
        if (only >= 0 && only != k) continue;
        if (t_phase_word) *t_phase_word = kinds[k].name;
        int n = kinds[k].divide > 1 ? threads / kinds[k].divide : threads;
        // Run threads that really wait beside them.
        stop_spinning = 0;
        pthread_t t[4];
        for (int i = 0; i < 4 && kinds[k].divide > 1; i++) t[i] = t_spawn(spins, NULL);
        t_run(n ? n : 1, kinds[k].f);
        stop_spinning = 1;
        for (int i = 0; i < 4 && kinds[k].divide > 1; i++) t_join(t[i]);
    }
    if (only == 11) {
        PHASE("descriptors");
        pthread_t t[8];
        for (int i = 0; i < 8; i++) t[i] = t_spawn(spins, NULL);
        descriptors(NULL);
        stop_spinning = 1;
        for (int i = 0; i < 8; i++) t_join(t[i]);
    }
    shared[1000].stop = 1;
    int status;
    while (waitpid(answers, &status, 0) == -1) EQ(errno, EINTR);
    return t_ok("spin_guess");
}
