// Signals for threads that spin in loops of their own. Each signal arrives once and in order. Its
// handler sees the program's instructions, stack and registers, may jump away, and may spin itself.
// Calls of other threads return no EINTR. SIGTRAP and SIGURG belong to the program.
#include "spin_test.h"
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <ucontext.h>

// Arguments: (word, value, place to store rsp). All instructions are in a table; all registers hold
// a pattern.
void sig_pause(volatile uint32_t *word, uint32_t value, volatile uintptr_t *rsp);
void sig_jcc(volatile uint32_t *word, uint32_t value, volatile uintptr_t *rsp);
void sig_jmp(volatile uint32_t *word, uint32_t value, volatile uintptr_t *rsp);
void sig_count(volatile uint32_t *word, uint32_t value, volatile uintptr_t *rsp);
extern const uintptr_t sig_table[], sig_table_end[];
#define I ".pushsection .data.rel.ro.sig, \"aw\"\n .quad 9f\n .popsection\n9: "
// clang-format off: one instruction or loop a line
__asm__(
    ".pushsection .data.rel.ro.sig, \"aw\"\n.globl sig_table\nsig_table:\n.popsection\n"
    ".macro SIG_ENTER\n .cfi_startproc\n .irp r, rbx, r12, r13, r14, r15\n push %\\r\n"
        " .cfi_adjust_cfa_offset 8\n .endr\n"
    " mov $0x0c0c0c0c, %ecx\n mov $0x08080808, %r8d\n mov $0x09090909, %r9d\n"
        " mov $0x10101010, %r10d\n mov $0x11111111, %r11d\n mov $0, %eax\n"
    " mov $0x12121212, %r12d\n mov $0x13131313, %r13d\n mov $0x14141414, %r14d\n"
        " mov $0x15151515, %r15d\n mov %rsp, (%rdx)\n .endm\n"
    ".macro SIG_LEAVE\n" I "movq $0, (%rdx)\n .irp r, r15, r14, r13, r12, rbx\n pop %\\r\n"
        " .cfi_adjust_cfa_offset -8\n .endr\n ret\n .cfi_endproc\n .endm\n"
    ".text\n.globl sig_pause, sig_jcc, sig_jmp, sig_count\n"
    ".type sig_pause, @function\nsig_pause: SIG_ENTER\n1: " I "cmp %esi, (%rdi)\n" I "je 2f\n"
        I "pause\n" I "jmp 1b\n2: SIG_LEAVE\n.size sig_pause, .-sig_pause\n"
    ".type sig_jcc, @function\nsig_jcc: SIG_ENTER\n1: " I "mov (%rdi), %eax\n" I "cmp %esi, %eax\n"
        I "jne 1b\n SIG_LEAVE\n.size sig_jcc, .-sig_jcc\n"
    ".type sig_jmp, @function\nsig_jmp: SIG_ENTER\n1: " I "mov (%rdi), %eax\n" I "xor %esi, %eax\n"
        I "lea 1(%rax), %rbx\n" I "test %eax, %eax\n" I "je 2f\n"
        I "jmp 1b\n2: SIG_LEAVE\n.size sig_jmp, .-sig_jmp\n"
    ".type sig_count, @function\nsig_count: SIG_ENTER\n0: " I "mov $1000000, %ebx\n"
        "1: " I "cmp %esi, (%rdi)\n" I "je 2f\n" I "sub $1, %rbx\n" I "jne 1b\n"
        I "jmp 0b\n2: SIG_LEAVE\n.size sig_count, .-sig_count\n"
    ".pushsection .data.rel.ro.sig, \"aw\"\n.globl sig_table_end\nsig_table_end:\n.popsection\n"
);
// clang-format on
static void (*const waits[])(volatile uint32_t *, uint32_t,
                             volatile uintptr_t *) = {sig_pause, sig_jcc, sig_jmp, sig_count};

static struct spinner {
    pthread_t thread;
    char *stack_lo, *stack_hi, *alt;
    volatile uintptr_t rsp; // the stack pointer in the loop
    volatile uint32_t may_jump, round;
    sigjmp_buf back;
    uint64_t seed;
    volatile uint32_t sent, handled, in_loops, jumps, urgent;
    volatile uint32_t request;
    char pad[128];
    volatile uint32_t reply;
} spinners[256];
static __thread struct spinner *self;
static volatile int stop;
static volatile uint32_t traps, urgents, alarms;

static const char *where(uintptr_t ip) {
    static char line[256];
    unsigned long lo, hi, at;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %*s %lx", &lo, &hi, &at) == 3 && ip >= lo && ip < hi) break;
    sprintf(line + strlen(line), " + %lx", ip - lo + at);
    return line;
}
static void on_signal(int sig, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    const greg_t *g = uc->uc_mcontext.gregs;
    char here;
    struct spinner *s = self;
    CHECK(s, "signal %d in a thread that was sent none", sig);
    uintptr_t rip = (uintptr_t)g[REG_RIP], rsp = (uintptr_t)g[REG_RSP];
    CHECK((char *)rsp > s->stack_lo && (char *)rsp < s->stack_hi,
          "rsp %lx is not on the stack, rip %lx", rsp, rip);
    if (s->alt)
        CHECK(&here > s->alt && &here < s->alt + 65536, "not on the alternate stack");
    else
        CHECK(&here < (char *)rsp && &here > s->stack_lo, "not on the thread's stack");
    uintptr_t in = s->rsp;
    if (in) {
        const uintptr_t *p = sig_table;
        while (p < sig_table_end && *p != rip) p++;
        CHECK(p < sig_table_end, "rip %lx is no instruction of the loop (sig_pause %lx): %s", rip,
              (uintptr_t)sig_pause, where(rip));
        CHECK(rsp == in, "rsp %lx, expected %lx, at rip %lx", rsp, in, rip);
        CHECK(g[REG_R12] == 0x12121212 && g[REG_R13] == 0x13131313 && g[REG_R14] == 0x14141414 &&
                  g[REG_R15] == 0x15151515,
              "r12 to r15: %llx %llx %llx %llx at rip %lx", g[REG_R12], g[REG_R13], g[REG_R14],
              g[REG_R15], rip);
        CHECK(!(g[REG_EFL] & 0x400), "flags %llx", g[REG_EFL]);
        // Code that scans registers for pointers must find them.
        CHECK((uintptr_t)g[REG_RDX] == (uintptr_t)&s->rsp && (uint32_t)g[REG_RSI] == s->round &&
                  (uintptr_t)g[REG_RDI] == (uintptr_t)&spin_cell[s - spinners].word,
              "rdx %llx rsi %llx rdi %llx, expected %lx %x %lx, at rip %lx", g[REG_RDX], g[REG_RSI],
              g[REG_RDI], (uintptr_t)&s->rsp, s->round, (uintptr_t)&spin_cell[s - spinners].word,
              rip);
        CHECK(g[REG_R10] == 0x10101010 && g[REG_R11] == 0x11111111 && g[REG_RCX] == 0x0c0c0c0c &&
                  g[REG_R8] == 0x08080808 && g[REG_R9] == 0x09090909 && g[REG_RAX] >> 32 == 0,
              "r10 %llx r11 %llx rcx %llx r8 %llx r9 %llx rax %llx, at rip %lx", g[REG_R10],
              g[REG_R11], g[REG_RCX], g[REG_R8], g[REG_R9], g[REG_RAX], rip);
        s->in_loops++;
    }
    if (sig == SIGALRM) {
        __atomic_add_fetch(&alarms, 1, __ATOMIC_RELAXED);
        return;
    }
    EQ(info->si_code, SI_QUEUE);
    EQ(info->si_value.sival_int, s->handled + 1);
    s->handled++;
    unsigned what = t_rand(&s->seed) % 8;
    if (what < 2) { // ask a server, and spin for the answer
        uint32_t request = __atomic_add_fetch(&s->request, 1, __ATOMIC_SEQ_CST);
        uintptr_t mine = 0;
        if (what)
            while (__atomic_load_n(&s->reply, __ATOMIC_ACQUIRE) != request) __builtin_ia32_pause();
        else
            while (s->reply != request) waits[request % 4](&s->reply, request, &mine);
    } else if (what == 2 && s->may_jump && in) {
        s->jumps++;
        s->rsp = 0;
        siglongjmp(s->back, 1);
    }
}
static void on_trap(int sig, siginfo_t *info, void *context) {
    (void)info;
    (void)context;
    __atomic_add_fetch(sig == SIGTRAP ? &traps : &urgents, 1, __ATOMIC_SEQ_CST);
}

static void *server(void *arg) {
    while (!stop) {
        for (int i = 0; i < spin_threads; i++) {
            uint32_t request = __atomic_load_n(&spinners[i].request, __ATOMIC_ACQUIRE);
            if (request != spinners[i].reply)
                __atomic_store_n(&spinners[i].reply, request, __ATOMIC_RELEASE);
        }
        if (t_rand(&spinners[0].seed) & 1) sched_yield();
    }
    return arg;
}
static pthread_barrier_t started;
static void *spinner(void *arg) {
    int me = (int)(intptr_t)arg;
    struct spinner *s = self = &spinners[me];
    pthread_attr_t attr;
    void *base;
    size_t size;
    OK(pthread_getattr_np(pthread_self(), &attr));
    OK(pthread_attr_getstack(&attr, &base, &size));
    pthread_attr_destroy(&attr);
    s->stack_lo = base;
    s->stack_hi = s->stack_lo + size;
    s->seed = (uint64_t)t_env("SEED", 1) * 1000 + (uint64_t)me;
    if (me % 3 == 1) {
        stack_t ss = {.ss_sp = s->alt = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                      .ss_size = 65536};
        SYS(sigaltstack(&ss, NULL));
    }
    sigset_t all, none, handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGALRM);
    sigaddset(&handled, SIGRTMIN + 1);
    sigfillset(&all);
    sigemptyset(&none);
    if (me % 8 == 3) OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
    pthread_barrier_wait(&started);
    for (uint32_t round = 1;; round++) {
        volatile uint32_t *word = &spin_cell[me].word;
        s->round = round;
        // only now: after the jump, the thread is on its own stack
        if (sigsetjmp(s->back, 0)) OK(pthread_sigmask(SIG_UNBLOCK, &handled, NULL));
        s->may_jump = 1;
        while (*word != round) waits[((uint32_t)me / 4 + round / 32) % 4](word, round, &s->rsp);
        s->may_jump = 0;
        if (round % 16 == 0 && me % 8 == 3) { // all signals that have arrived
            OK(pthread_sigmask(SIG_SETMASK, &none, NULL));
            OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
        }
        int more = spin_more(me, round);
        spin_pass(me, round);
        if (!more) break;
    }
    pthread_barrier_wait(&started); // the senders have stopped
    OK(pthread_sigmask(SIG_SETMASK, &none, NULL));
    EQ(s->handled, s->sent);
    return NULL;
}
// This thread gets no signals: its calls are never interrupted.
static void *caller(void *arg) {
    int me = (int)(intptr_t)arg, pipes[2];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    SYS(pipe(pipes));
    int ep = epoll_create1(0);
    struct epoll_event ev;
    struct pollfd p = {pipes[0], POLLIN, 0};
    static uint32_t word;
    for (unsigned i = 0; !stop; i++) {
        struct timespec t = {0, (long)(i % 7) * 20000};
        switch (i % 6) {
        case 0: SYS(nanosleep(&t, NULL)); break;
        case 1: SYS(poll(&p, 1, 0 + (int)(i & 1))); break;
        case 2: SYS(epoll_wait(ep, &ev, 1, (int)(i & 1))); break;
        case 3: {
            long e = futex(me, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
            CHECK(e == -ETIMEDOUT, "futex wait: %ld", e);
            break;
        }
        case 4: {
            fd_set fds;
            FD_ZERO(&fds);
            FD_SET(pipes[0], &fds);
            struct timeval tv = {0, (long)(i % 5) * 30};
            SYS(select(pipes[0] + 1, &fds, NULL, NULL, &tv));
            break;
        }
        case 5: OK(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL)); break;
        }
        for (volatile unsigned n = i % 64 * 500; n; n--) {}
    }
    close(pipes[0]), close(pipes[1]), close(ep);
    return NULL;
}

static volatile uint32_t cancelled, never, ready_for_it;
static void on_cancel(void *arg) {
    (void)arg;
    __atomic_add_fetch(&cancelled, 1, __ATOMIC_SEQ_CST);
}
static void *spins_for_ever(void *arg) {
    uintptr_t rsp = 0;
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    pthread_cleanup_push(on_cancel, NULL);
    __atomic_add_fetch(&ready_for_it, 1, __ATOMIC_SEQ_CST);
    waits[(intptr_t)arg % 4](&never, 1, &rsp);
    pthread_cleanup_pop(0);
    return arg;
}

int main(void) {
    t_watchdog();
    spin_threads = t_threads();
    if (spin_threads > 64) spin_threads = 64;
    struct sigaction sa = {.sa_sigaction = on_signal,
                           .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaddset(&sa.sa_mask, SIGALRM);
    sigaddset(&sa.sa_mask, SIGRTMIN + 1);
    SYS(sigaction(SIGRTMIN + 1, &sa, NULL));
    SYS(sigaction(SIGALRM, &sa, NULL));
    sigemptyset(&sa.sa_mask);
    sa.sa_flags = SA_SIGINFO; // without SA_RESTART
    sa.sa_sigaction = on_trap;
    SYS(sigaction(SIGTRAP, &sa, NULL));
    SYS(sigaction(SIGURG, &sa, NULL));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    OK(pthread_barrier_init(&started, NULL, (unsigned)spin_threads + 1));
    spin_begin(800);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    pthread_t servers[2], callers[2];
    for (int i = 0; i < 2; i++)
        servers[i] = t_spawn(server, NULL), callers[i] = t_spawn(caller, (void *)(intptr_t)i);
    OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
    for (int i = 0; i < spin_threads; i++)
        spinners[i].thread = t_spawn(spinner, (void *)(intptr_t)i);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL)); // spinners only
    pthread_barrier_wait(&started);
    PHASE("storm");
    struct itimerval tick = {{0, 1000}, {0, 1000}}, off = {0};
    SYS(setitimer(ITIMER_REAL, &tick, NULL));
    spin_time_begins(800); // on a busy machine, reaching this point takes as long
    spin_start_token();
    uint64_t seed = (uint64_t)t_env("SEED", 1);
    while (spin_last == UINT32_MAX) {
        struct spinner *s = &spinners[t_rand(&seed) % (unsigned)spin_threads];
        // No more signals than the thread can handle.
        for (unsigned n = 1 + t_rand(&seed) % 3; n && s->sent - s->handled < 3; n--) {
            s->sent++;
            int r = pthread_sigqueue(s->thread, SIGRTMIN + 1,
                                     (union sigval){.sival_int = (int)s->sent});
            if (r == EAGAIN) {
                s->sent--;
                t_sleep_us(500);
            } else
                OK(r);
        }
        if (t_rand(&seed) % 4 == 0) t_sleep_us((int)(t_rand(&seed) % 300));
    }
    SYS(setitimer(ITIMER_REAL, &off, NULL));
    pthread_barrier_wait(&started);
    PHASE("ending");
    for (int i = 0; i < spin_threads; i++) t_join(spinners[i].thread);
    stop = 1;
    for (int i = 0; i < 2; i++) t_join(servers[i]), t_join(callers[i]);
    CHECK(alarms > 0, "no alarms");
    EQ(traps, 0);
    EQ(urgents, 0);
    SYS(raise(SIGTRAP));
    SYS(raise(SIGURG));
    EQ(traps, 1);
    EQ(urgents, 1);
    PHASE("cancellation");
    int n = spin_threads < 8 ? spin_threads : 8;
    for (int r = 0; r < 3; r++) {
        pthread_t t[8];
        for (int i = 0; i < n; i++) t[i] = t_spawn(spins_for_ever, (void *)(intptr_t)i);
        while (ready_for_it != (uint32_t)((r + 1) * n)) t_sleep_us(200);
        t_sleep_ms(r * 10);
        for (int i = 0; i < n; i++) OK(pthread_cancel(t[i]));
        for (int i = 0; i < n; i++) CHECK(t_join(t[i]) == PTHREAD_CANCELED, "not cancelled");
        EQ(cancelled, (r + 1) * n);
    }
    if (getenv("SHOW")) {
        uint32_t sent = 0, in = 0, jumps = 0, requests = 0;
        for (int i = 0; i < spin_threads; i++)
            sent += spinners[i].sent, in += spinners[i].in_loops, jumps += spinners[i].jumps,
                requests += spinners[i].request;
        printf("sent %u, in loops %u, jumps %u, requests %u, rounds %u, alarms %u\n", sent, in,
               jumps, requests, spin_last, alarms);
    }
    return t_ok("spin_signals");
}
