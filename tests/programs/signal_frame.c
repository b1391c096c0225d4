// A handler's frame, and the effect of its changes to it: registers, the mask, the vector state,
// the alternate stack.
#include "pthread_test.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif
enum { SIZE = 65536, RESTORER = 0x04000000 };
static __thread char *stack;
static __thread int what, handled;
static __thread sigjmp_buf env;
static __thread void *interrupted_sp;

static int on(const void *p) { return (const char *)p >= stack && (const char *)p < stack + SIZE; }

enum { LOOK, REGISTER, MASK, DISABLED, JUMP, MEMORY };
static void handler(int sig, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    stack_t now, other = {.ss_sp = malloc(SIZE), .ss_size = SIZE};
    handled++;
    EQ(info->si_signo, sig);
    CHECK(info->si_code == SI_TKILL || what == MEMORY, "si_code %d", info->si_code);
    EQ(((uintptr_t)__builtin_frame_address(0) & 15), 0);
    CHECK(uc->uc_mcontext.fpregs && ((uintptr_t)uc->uc_mcontext.fpregs & 63) == 0,
          "vector state at %p", (void *)uc->uc_mcontext.fpregs);
    CHECK((char *)uc->uc_mcontext.fpregs - (char *)uc > 0 &&
              (char *)uc->uc_mcontext.fpregs - (char *)uc < 1024,
          "vector state away from the frame");
    EQ(uc->uc_mcontext.fpregs->mxcsr & 0x6000, 0x2000); // set by rounding(1)
    unsigned mxcsr;
    __asm__("stmxcsr %0" : "=m"(mxcsr));
    EQ(mxcsr, 0x1f80);
    if (interrupted_sp) EQ((uintptr_t)interrupted_sp, uc->uc_mcontext.gregs[REG_RSP]);
    SYS(sigaltstack(NULL, &now));
    if (what == DISABLED) {
        CHECK(now.ss_flags & SS_DISABLE, "not disarmed");
        SYS(sigaltstack(&other, NULL)); // undone at the end of the handler
    } else {
        EQ(now.ss_sp == stack, 1);
        EQ(now.ss_flags, SS_ONSTACK);
        ERR(sigaltstack(&other, NULL), EPERM);
        CHECK(on(&now), "not on the alternate stack");
    }
    CHECK(uc->uc_stack.ss_sp == stack && uc->uc_stack.ss_size == SIZE, "uc_stack: %p",
          uc->uc_stack.ss_sp);
    free(other.ss_sp);
    sigset_t mask;
    OK(pthread_sigmask(SIG_BLOCK, NULL, &mask));
    EQ(sigismember(&mask, sig), 1);
    EQ(sigismember(&mask, SIGUSR2), 1); // sa_mask
    EQ(sigismember(&uc->uc_sigmask, SIGUSR2), 0);
    if (what == REGISTER) uc->uc_mcontext.gregs[REG_RBX] = 4711;
    if (what == MASK) sigaddset(&uc->uc_sigmask, SIGTERM);
    if (what == JUMP) siglongjmp(env, 1);
    if (what == MEMORY) uc->uc_mcontext.gregs[REG_RIP] += 3;
}
static void rounding(unsigned up) {
    unsigned mxcsr = up ? 0x3f80 : 0x1f80;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
}
static long raise_here(int sig) { // tgkill with a known rbx and stack pointer
    long rbx = 1, pid = getpid(), tid = gettid();
    rounding(1);
    __asm__ volatile("mov %%rsp, %1\n\tmov %%r8, %%rbx\n\tsyscall"
                     : "=&b"(rbx), "=m"(interrupted_sp)
                     : "a"(SYS_tgkill), "D"(pid), "S"(tid), "d"((long)sig), "r"(rbx)
                     : "rcx", "r11", "r8", "memory");
    interrupted_sp = NULL;
    unsigned mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    EQ(mxcsr, 0x3f80);
    rounding(0);
    return rbx;
}
static long through_libc(int sig) {
    rounding(1);
    interrupted_sp = NULL;
    OK(pthread_kill(pthread_self(), sig));
    rounding(0);
    return 0;
}
static void is_blocked(int sig, int want) {
    sigset_t now;
    OK(pthread_sigmask(SIG_BLOCK, NULL, &now));
    EQ(sigismember(&now, sig), want);
}
static void errors(void) {
    stack_t s = {.ss_sp = stack, .ss_size = 2047}, old;
    ERR(sigaltstack(&s, NULL), ENOMEM);
    s.ss_size = SIZE;
    s.ss_flags = 16;
    ERR(sigaltstack(&s, NULL), EINVAL);
    ERR(syscall(SYS_sigaltstack, (void *)8, NULL), EFAULT);
    ERR(syscall(SYS_sigaltstack, NULL, (void *)8), EFAULT);
    SYS(sigaltstack(NULL, &old));
    EQ(old.ss_sp == stack, 1);
    EQ(old.ss_flags, 0);
}
static void *work(void *arg) {
    stack_t s = {.ss_sp = stack = malloc(SIZE), .ss_size = SIZE}, old;
    SYS(sigaltstack(NULL, &old));
    EQ(old.ss_flags, SS_DISABLE);
    SYS(sigaltstack(&s, NULL));
    for (int i = 0; i < t_share(600, t_threads()); i++) {
        int before = handled;
        what = LOOK;
        through_libc(SIGUSR1);
        raise_here(SIGUSR1);
        what = REGISTER;
        EQ(raise_here(SIGUSR1), 4711);
        what = MASK;
        through_libc(SIGUSR1);
        is_blocked(SIGTERM, 1);
        sigset_t term;
        sigemptyset(&term);
        sigaddset(&term, SIGTERM);
        OK(pthread_sigmask(SIG_UNBLOCK, &term, NULL));
        what = JUMP;
        if (!sigsetjmp(env, 1)) through_libc(SIGUSR1);
        rounding(0);
        is_blocked(SIGUSR1, 0);
        is_blocked(SIGUSR2, 0);
        what = MEMORY;
        rounding(1);
        // mov (%rax), %rax: three bytes
        __asm__ volatile("xor %%eax, %%eax\n\t.byte 0x48, 0x8b, 0x00" : : : "rax", "memory");
        rounding(0);
        EQ(handled - before, 6);
        errors();
        what = DISABLED;
        s.ss_flags = (int)SS_AUTODISARM;
        SYS(sigaltstack(&s, NULL));
        through_libc(SIGUSR1);
        SYS(sigaltstack(NULL, &old));
        EQ(old.ss_sp == stack, 1);
        EQ((unsigned)old.ss_flags, SS_AUTODISARM);
        s.ss_flags = 0;
        SYS(sigaltstack(&s, NULL));
        sched_yield();
    }
    s.ss_flags = SS_DISABLE;
    SYS(sigaltstack(&s, &old));
    EQ(old.ss_sp == stack, 1);
    SYS(sigaltstack(NULL, &old));
    EQ(old.ss_flags, SS_DISABLE);
    EQ(old.ss_size, 0);
    free(stack);
    return arg;
}

static void nothing(int sig) { (void)sig; }

int main(void) {
    t_watchdog();
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK}, b;
    sigaddset(&a.sa_mask, SIGUSR2);
    SYS(sigaction(SIGUSR1, &a, NULL));
    SYS(sigaction(SIGSEGV, &a, NULL));
    SYS(sigaction(SIGUSR1, NULL, &b));
    EQ(b.sa_flags & ~RESTORER, SA_SIGINFO | SA_ONSTACK);
    pthread_t t[1024];
    for (int i = 0; i < t_threads(); i++) t[i] = t_spawn(work, NULL);
    work(NULL);
    for (int i = 0; i < t_threads(); i++) t_join(t[i]);
    // SA_RESETHAND resets only the handler.
    struct sigaction once = {.sa_handler = nothing,
                             .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER};
    sigaddset(&once.sa_mask, SIGUSR2);
    SYS(sigaction(SIGURG, &once, NULL));
    raise(SIGURG);
    SYS(sigaction(SIGURG, NULL, &b));
    CHECK(b.sa_handler == SIG_DFL && (b.sa_flags & ~RESTORER) == once.sa_flags &&
              sigismember(&b.sa_mask, SIGUSR2),
          "flags %x", (unsigned)b.sa_flags);
    return t_ok("signal_frame");
}
