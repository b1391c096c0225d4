/* SPDX-License-Identifier: MIT */
#include "alone.h"
#include "notice.h"
#include "patch/internal.h"
#include "prim/clock.h"
#include "prim/prim.h"
#include "prim/task.h"
#include "sched/actions.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <time.h>
#include <ucontext.h>

void lissom_sigaction_restorer(void); /* sched/switch.S */

enum {
    SIGNAL = 33,       /* glibc: SIGSETXID */
    FIRST_US = 20000,  /* CPU time until the first check */
    MOST_US = 1600000, /* maximum CPU time between checks, which doubles */
    AGAIN_US = 4000,   /* CPU time until the next attempt, if the thread was in libc */
    DELAY_SHARE = 8,   /* contended: it has waited for 1/DELAY_SHARE of the time */
    TRIES = 50,        /* attempts to find the thread elsewhere */
    ROOM = 65536,      /* bytes needed on the stack, for a frame and what follows */
    DEEPEST = 64 << 20,
    SLEEPS_US = 10000,     /* minimum CPU time per sleep */
    RESTORER = 0x04000000, /* the kernel's SA_RESTORER */
};

extern char *__libc_stack_end __attribute__((weak));
extern struct r_debug _r_debug __attribute__((weak)); /* the dynamic loader's */
/* glibc's pthread_atfork calls this. Weak, because musl lacks it, and loads this library into
 * programs that one under lissom starts. */
int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

struct range {
    uintptr_t lo, hi;
};

static struct {
    void (*begin)(void);
    bool forks;
    uint32_t tries;   /* attempts left to begin; 0: it was not waiting at the last check */
    int32_t armed_by; /* pid; 0: no timer */
    int32_t timer;
    uint32_t period_us;
    struct range libc, loader;
    uint64_t ran, delay, sleeps; /* at the last check; ns, ns, number */
} own;

static bool is_in(struct range r, uintptr_t address) { return address - r.lo < r.hi - r.lo; }

static struct range loader_range(void)
{
    uintptr_t base = &_r_debug ? _r_debug.r_ldbase : 0, size = 0;
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)base;
    if (!base)
        return (struct range){0, 0};
    const Elf64_Phdr *p = (const Elf64_Phdr *)(base + e->e_phoff);
    for (uint32_t i = 0; i < e->e_phnum; i++)
        if (p[i].p_type == PT_LOAD && p[i].p_vaddr + p[i].p_memsz > size)
            size = p[i].p_vaddr + p[i].p_memsz;
    return (struct range){base, base + size};
}

static void set_timer(uint32_t us)
{
    const struct itimerspec after = {
        .it_value = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000l}};
    prim_syscall4(SYS_timer_settime, own.timer, 0, &after, 0);
}

/* Return whether the thread has waited for its CPU, and has hardly slept, since the last check. */
static bool waits(void)
{
    struct rusage usage;
    uint64_t ran, delay;
    if (!task_times(prim_pid(), &ran, &delay) ||
        prim_syscall3(SYS_getrusage, RUSAGE_SELF, &usage, 0))
        return false;
    uint64_t sleeps = (uint64_t)usage.ru_nvcsw, r = ran - own.ran, d = delay - own.delay;
    bool is = d * DELAY_SHARE >= r + d && (sleeps - own.sleeps) * SLEEPS_US * 1000 <= r;
    own.ran = ran;
    own.delay = delay;
    own.sleeps = sleeps;
    return is;
}

/* Return whether sp is on the main thread's first stack, and has room. */
static bool is_on_main_stack(uintptr_t sp)
{
    struct rlimit most;
    uintptr_t end = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
    return sp < end && !prim_syscall3(SYS_getrlimit, RLIMIT_STACK, &most, 0) &&
           end - sp + ROOM < most.rlim_cur && end - sp < DEEPEST;
}

/* Return whether the runtime can begin: as far as is known, no lock of libc or the loader is held,
 * and a handler may use the program's stack. */
static bool may_begin(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    return !is_in(own.libc, (uintptr_t)g[REG_RIP]) && !is_in(own.loader, (uintptr_t)g[REG_RIP]) &&
           is_on_main_stack((uintptr_t)g[REG_RSP]);
}

static long action(const struct kernel_sigaction *set, struct kernel_sigaction *before)
{
    return prim_syscall4(SYS_rt_sigaction, SIGNAL, set, before, 8);
}

/* Begin the runtime, in a signal handler that blocks only the program's signals. It does not run on
 * the alternate stack, which is the runtime's from now on. */
static void begins(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    (void)sig, (void)info;
    if (own.begin)
        own.begin();
    /* rt_sigreturn(2) sets the alternate stack from there */
    prim_syscall3(SYS_sigaltstack, 0, &uc->uc_stack, 0);
}

static void expired(int sig, siginfo_t *info, void *context)
{
    static const struct kernel_sigaction next = {.handler = begins,
                                                 .flags = SA_SIGINFO | SA_NODEFER | SA_RESTART |
                                                          RESTORER,
                                                 .restorer = lissom_sigaction_restorer};
    int32_t pid = prim_pid();
    if (info->si_code != SI_TIMER || own.armed_by != pid)
        return;
    if (!own.tries && waits())
        own.tries = TRIES;
    if (!own.tries) {
        own.period_us = own.period_us * 2 < MOST_US ? own.period_us * 2 : MOST_US;
        set_timer(own.period_us);
    } else if (!may_begin(context)) {
        own.tries--;
        set_timer(AGAIN_US);
    } else {
        action(&next, 0);
        prim_syscall3(SYS_tgkill, pid, pid, sig); /* delivered when this handler has returned */
    }
}

static bool is_own(const struct kernel_sigaction *a)
{
    return a->handler == expired || a->handler == begins;
}

/* Set the timer. Returns false if that is impossible, or the program uses the signal. Takes 2 us.
 * The first check counts all that the thread has done before. */
static bool arm(void)
{
    static const struct kernel_sigaction a = {.handler = expired,
                                              .flags =
                                                  SA_SIGINFO | SA_ONSTACK | SA_RESTART | RESTORER,
                                              .restorer = lissom_sigaction_restorer};
    struct kernel_sigaction before;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL};
    if (action(0, &before) || (action_has_handler(&before) && !is_own(&before)) ||
        prim_syscall3(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &event, &own.timer))
        return false;
    action(&a, 0);
    own.armed_by = prim_pid();
    own.period_us = FIRST_US;
    own.tries = 0;
    own.ran = own.delay = own.sleeps = 0;
    set_timer(own.period_us);
    return true;
}

/* Set a timer in a fork's child, which inherits none. */
static void forked(void)
{
    if (!own.armed_by)
        return;
    own.armed_by = 0;
    notice_forked();
    arm();
}

static void maps_shared(void)
{
    if (!own.begin || sched.active || own.armed_by == prim_pid())
        return;
    if (!own.forks)
        own.forks = __register_atfork && !__register_atfork(NULL, NULL, forked, &__dso_handle);
    own.loader = loader_range();
    if (task_is_traced(prim_pid()) || (!own.libc.hi && !libc_code(&own.libc.lo, &own.libc.hi)) ||
        !arm())
        own.begin = NULL;
}

void alone_end(void)
{
    const struct kernel_sigaction ignore = {.handler = (void *)SIG_IGN}, none = {0};
    struct kernel_sigaction now;
    if (own.armed_by && own.armed_by != prim_pid())
        return;
    own.begin = NULL;
    if (!own.armed_by)
        return;
    own.armed_by = 0;
    prim_syscall3(SYS_timer_delete, own.timer, 0, 0);
    if (action(0, &now) || !is_own(&now))
        return;
    action(&ignore, 0); /* drops the signal if it is pending */
    action(&none, 0);
}

/* --- libc's functions that map memory --------------------------------------------------------- */

typedef void *mmap_function(void *, size_t, int, int, int, off_t);
typedef void *shmat_function(int, const void *, int);
static mmap_function *real_mmap;
static shmat_function *real_shmat;

void alone_init(uintptr_t (*find)(const char *))
{
    real_mmap = (mmap_function *)find("mmap");
    real_shmat = (shmat_function *)find("shmat");
}

void alone_look(void (*begin)(void)) { own.begin = begin; }

static void *answer(long r)
{
    if (r < 0 && r >= -4095) {
        errno = (int)-r;
        return MAP_FAILED;
    }
    return (void *)r;
}

__attribute__((visibility("default"))) void *mmap(void *at, size_t size, int protection, int flags,
                                                  int fd, off_t offset)
{
    bool shared = flags & MAP_SHARED; /* also set in MAP_SHARED_VALIDATE */
    void *p =
        real_mmap
            ? real_mmap(at, size, protection, flags, fd, offset)
            : answer(prim_syscall6(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset));
    if (shared && (protection & PROT_WRITE) && p != MAP_FAILED)
        maps_shared();
    return p;
}

__attribute__((visibility("default"), alias("mmap"))) void *mmap64(void *, size_t, int, int, int,
                                                                   off_t);

__attribute__((visibility("default"))) void *shmat(int id, const void *at, int flags)
{
    void *p =
        real_shmat ? real_shmat(id, at, flags) : answer(prim_syscall3(SYS_shmat, id, at, flags));
    if (!(flags & SHM_RDONLY) && p != MAP_FAILED)
        maps_shared();
    return p;
}
