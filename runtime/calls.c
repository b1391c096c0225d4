/* SPDX-License-Identifier: MIT */
#include "calls.h"
#include "attributes.h"
#include "clone.h"
#include "futex/futex.h"
#include "lissom.h"
#include "monitor/monitor.h"
#include "sched/actions.h"
#include "sched/altstack.h"
#include "sched/identity.h"
#include "sched/mask.h"
#include "sched/release.h"
#include "sched/signals.h"
#include "sched/slices.h"
#include "sched/slots.h"
#include "sched/user.h"
#include "sched/waiting.h"
#include "sched/waitmask.h"
#include "spin/spin.h"
#include "fastpath.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>

uint8_t calls_kind[65536], calls_kind_rtld[65536];

long call_at_home(struct thread *t)
{
    thread_learn(t, true);
    carrier_migrate_home(t);
    return ACTION_DIRECT;
}

long call_natively(struct thread *t, struct user_registers *r, const char *reason,
                   uint32_t timeout_ms)
{
    lissom_give_up(reason);
    release_wait(t, timeout_ms);
    return release_call(t, r);
}

/* --- calls that depend on the calling thread for some arguments only -------------------------- */

static long clock_gettime_call(struct thread *t, struct user_registers *r)
{
    if (r->rdi == CLOCK_THREAD_CPUTIME_ID)
        carrier_migrate_home(t);
    return ACTION_DIRECT;
}

/* Migrate t home if the path may be /proc/thread-self, which is another link on each kernel thread.
 * Files below it are opened at home anyway. */
static long path_call(struct thread *t, uintptr_t path)
{
    char begins[7] = "";
    if (user_copy(t, begins, (const void *)path, sizeof begins) == 0 &&
        (__builtin_memcmp(begins, "/proc/t", sizeof begins) == 0 ||
         __builtin_memcmp(begins, "thread-", sizeof begins) == 0))
        carrier_migrate_home(t);
    return ACTION_DIRECT;
}

static long path_first(struct thread *t, struct user_registers *r)
{
    return path_call(t, (uintptr_t)r->rdi);
}

static long path_second(struct thread *t, struct user_registers *r)
{
    return path_call(t, (uintptr_t)r->rsi);
}

static long gettid_call(struct thread *t, struct user_registers *r)
{
    r->rax = t->tid;
    return ACTION_RETURN;
}

/* --- futexes and yields ----------------------------------------------------------------------- */

static long yield_call(struct thread *t, struct user_registers *r)
{
    uint64_t now = tsc();
    if (!t->has_slot)
        return ACTION_DIRECT;
    bool wanted = slot_ready_count(t->slot) || waiting_any_over(t->slot, now, true);
    if (!sched.detect_spinning || !spin_yields(t, r, wanted, now)) {
        uint64_t began = 0;
        if (wanted) {
            slices_begin_anew(t, t->slot);
            slot_yield(t);
        } else {
            began = tsc();
            prim_syscall3(SYS_sched_yield, 0, 0, 0);
        }
        spin_yielded(t, began);
    }
    r->rax = 0;
    return ACTION_RETURN;
}

static long exit_call(struct thread *t, struct user_registers *r)
{
    (void)r;
    thread_exit(t);
    return ACTION_DIRECT;
}

/* futex_waitv(2), futex_wait(2): wait in the kernel, in ways that the queues do not know. */
static long foreign_wait(struct thread *t, struct user_registers *r)
{
    (void)r;
    __atomic_fetch_add(&futex_foreign_waiters, 1, __ATOMIC_SEQ_CST);
    t->foreign_wait = true;
    slot_release(t);
    return ACTION_CALL;
}

/* futex_wake(2) of Linux 6.7: FUTEX_WAKE_BITSET, if it is of a kind that the queues have. */
static long futex2_wake(struct thread *t, struct user_registers *r)
{
    if (r->r10 != (0x02 | 128 /* FUTEX2_SIZE_U32 | FUTEX2_PRIVATE */))
        return ACTION_DIRECT;
    struct user_registers as = {
        .rdi = r->rdi, .rsi = FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, .rdx = r->rdx, .r9 = r->rsi};
    long action = futex_call(t, &as);
    r->rax = as.rax;
    return action;
}

/* --- signals ---------------------------------------------------------------------------------- */

static long rt_sigaction_call(struct thread *t, struct user_registers *r)
{
    (void)t;
    return actions_call(r);
}

/* Keep the signalfd from reading the runtime's preemption signals. */
static long signalfd_call(struct thread *t, struct user_registers *r)
{
    uint64_t mask;
    fastpath_at_home_only();
    if (r->rdx != sizeof mask || user_copy(t, &mask, (const void *)r->rsi, sizeof mask))
        return ACTION_DIRECT;
    if (mask & signal_bit(PREEMPT_QUIET))
        preempt_leave_quiet();
    mask_take_back(t); /* from now on the kernel may block SIGURG */
    mask &= ~signal_bit(PREEMPT_COUNTED);
    r->rax = prim_syscall4(r->rax, r->rdi, &mask, r->rdx, r->r10);
    return ACTION_RETURN;
}

static long mq_notify_call(struct thread *t, struct user_registers *r)
{
    (void)t, (void)r;
    monitor_before_mq_notify();
    return ACTION_DIRECT;
}

/* --- calls that make the process native ------------------------------------------------------- */

/* Make the process native for good: a filter might kill it for calls of the runtime. */
static long sandbox_call(struct thread *t, struct user_registers *r)
{
    enum { OTHERS_MS = 2000 };
    lissom_give_up(REASON_RESTRICTS);
    release_wait(t, OTHERS_MS);
    t->restricts = true;
    monitor_end();
    return release_call(t, r);
}

static long seccomp_call(struct thread *t, struct user_registers *r)
{
    bool restricts = r->rdi == SECCOMP_SET_MODE_STRICT || r->rdi == SECCOMP_SET_MODE_FILTER;
    return restricts ? sandbox_call(t, r) : call_at_home(t);
}

static long prctl_call(struct thread *t, struct user_registers *r)
{
    return r->rdi == PR_SET_SECCOMP ? sandbox_call(t, r) : identity_call(t, r);
}

static long ioctl_call(struct thread *t, struct user_registers *r)
{
    if ((uint32_t)r->rsi == (uint32_t)UFFDIO_API) {
        /* A page fault may then last until another thread of the program resolves it. Meanwhile it
         * occupies its kernel thread, which may be that other thread's. */
        enum { OTHERS_MS = 2000 };
        return call_natively(t, r, REASON_USERFAULTFD, OTHERS_MS);
    }
    if (r->rsi == FIONBIO)
        fastpath_forget((uint32_t)r->rdi);
    return call_at_home(t);
}

static long fcntl_call(struct thread *t, struct user_registers *r)
{
    (void)t;
    if (r->rsi == F_SETFL)
        fastpath_forget((uint32_t)r->rdi);
    return ACTION_DIRECT;
}

static long arch_prctl_call(struct thread *t, struct user_registers *r)
{
    enum { GET_XCOMP_SUPP = 0x1021, REQ_XCOMP_GUEST_PERM = 0x1025 };
    /* The permission belongs to the process, so any kernel thread may make the call. llama.cpp
     * makes it in each thread for each matrix multiplication. */
    if (r->rdi >= GET_XCOMP_SUPP && r->rdi <= REQ_XCOMP_GUEST_PERM)
        return ACTION_DIRECT;
    return identity_call(t, r);
}

/* --- the table -------------------------------------------------------------------------------- */

/* Numbers that older headers lack. */
enum {
    CLONE3 = 435,
    LANDLOCK_RESTRICT_SELF = 446,
    FUTEX_WAITV = 449,
    FUTEX_WAKE2 = 454,
    FUTEX_WAIT2,
};

/* clang-format off */
static const uint16_t anywhere[] = {
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk,
    SYS_mincore, SYS_msync, SYS_gettimeofday, SYS_time, SYS_clock_getres, SYS_getpid,
    SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_uname,
    SYS_sysinfo, SYS_getcpu, SYS_fstat, SYS_lseek, SYS_pread64,
    SYS_close, SYS_getcwd, SYS_getdents64, SYS_dup, SYS_dup2, SYS_dup3, SYS_pipe,
    SYS_pipe2, SYS_eventfd2, SYS_epoll_create1, SYS_epoll_ctl, SYS_socket,
    SYS_socketpair, SYS_getsockname, SYS_getsockopt, SYS_setsockopt, SYS_membarrier,
    SYS_get_mempolicy, SYS_mbind, SYS_rt_sigreturn, /* its stack pointer is its argument */
};

static const uint16_t blocking[] = {
    SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_wait, SYS_epoll_pwait,
    EPOLL_PWAIT2, SYS_nanosleep, SYS_clock_nanosleep, SYS_pause, SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait, SYS_wait4, SYS_waitid, SYS_accept, SYS_accept4, SYS_connect, SYS_recvfrom,
    SYS_recvmsg, SYS_recvmmsg, SYS_read, SYS_readv, SYS_write, SYS_writev, SYS_sendto, SYS_sendmsg,
    SYS_sendmmsg, SYS_flock, SYS_msgrcv, SYS_semop, SYS_semtimedop, SYS_io_getevents,
    IO_PGETEVENTS, IO_URING_ENTER, SYS_mq_timedreceive, SYS_fsync, SYS_fdatasync,
    SYS_restart_syscall, SYS_sendfile,
    /* from here on a signal cuts the transfer short: */ SYS_splice, SYS_tee, SYS_vmsplice,
    SYS_copy_file_range, SYS_preadv2, SYS_pwritev2, SYS_getrandom, SYS_fallocate,
    SYS_mq_timedsend,
};

/* clang-format on */

/* Calls of the other kinds. A call in no list is CALL_HOME, without a function. */
static const struct row {
    uint16_t nr;
    uint8_t kind;
    call_function *function;
} rows[] = {
    {SYS_clock_gettime, CALL_HERE, clock_gettime_call},
    {SYS_readlink, CALL_HERE, path_first},
    {SYS_stat, CALL_HERE, path_first},
    {SYS_lstat, CALL_HERE, path_first},
    {SYS_access, CALL_HERE, path_first},
    {SYS_readlinkat, CALL_HERE, path_second},
    {SYS_newfstatat, CALL_HERE, path_second},
    {SYS_faccessat, CALL_HERE, path_second},
    {SYS_gettid, CALL_HERE, gettid_call},

    {SYS_futex, CALL_HERE, futex_call},
    {FUTEX_WAITV, CALL_HOME, foreign_wait},
    {FUTEX_WAKE2, CALL_HERE, futex2_wake},
    {FUTEX_WAIT2, CALL_HOME, foreign_wait},
    {SYS_sched_yield, CALL_HERE, yield_call},

    {SYS_clone, CALL_HERE, clone_call},
    {CLONE3, CALL_HERE, clone_call},
    {SYS_fork, CALL_HERE, clone_call},
    {SYS_vfork, CALL_HERE, clone_call},
    {SYS_execve, CALL_HOME, exec_call},
    {SYS_execveat, CALL_HOME, exec_call},
    {SYS_exit, CALL_HERE, exit_call},

    {SYS_rt_sigaction, CALL_HERE, rt_sigaction_call},
    {SYS_rt_sigprocmask, CALL_HERE, signals_sigprocmask},
    {SYS_rt_sigpending, CALL_HERE, mask_pending},
    {SYS_rt_sigqueueinfo, CALL_HOME, mask_sigqueue},
    {SYS_sigaltstack, CALL_HERE, altstack_call},
    {SYS_signalfd, CALL_HOME, signalfd_call},
    {SYS_signalfd4, CALL_HOME, signalfd_call},
    {SYS_mq_notify, CALL_HOME, mq_notify_call},

    {SYS_sched_setscheduler, CALL_HOME, attributes_set_class},
    {SYS_sched_setparam, CALL_HOME, attributes_set_class},
    {SYS_sched_setattr, CALL_HOME, attributes_set_class},
    {SYS_sched_setaffinity, CALL_HOME, attributes_set_affinity},
    {SYS_sched_getaffinity, CALL_HERE, attributes_get_affinity},
    {SYS_setpriority, CALL_HOME, attributes_set_priority},
    {SYS_ioprio_set, CALL_HOME, attributes_set_io_priority},
    {SYS_rseq, CALL_HOME, attributes_set_rseq},
    {SYS_timer_create, CALL_HOME, attributes_make_timer},
    {SYS_perf_event_open, CALL_HOME, attributes_count_events},
    {SYS_unshare, CALL_HOME, attributes_leave_namespace},
    {SYS_setns, CALL_HOME, attributes_leave_namespace},

    {SYS_setuid, CALL_HOME, identity_credentials},
    {SYS_setgid, CALL_HOME, identity_credentials},
    {SYS_setreuid, CALL_HOME, identity_credentials},
    {SYS_setregid, CALL_HOME, identity_credentials},
    {SYS_setresuid, CALL_HOME, identity_credentials},
    {SYS_setresgid, CALL_HOME, identity_credentials},
    {SYS_setfsuid, CALL_HOME, identity_credentials},
    {SYS_setfsgid, CALL_HOME, identity_credentials},
    {SYS_setgroups, CALL_HOME, identity_credentials},
    {SYS_capset, CALL_HOME, identity_credentials},
    {SYS_set_mempolicy, CALL_HOME, identity_call},
    {LANDLOCK_RESTRICT_SELF, CALL_HOME, identity_call},
    {SYS_iopl, CALL_HOME, identity_call},
    {SYS_ioperm, CALL_HOME, identity_call},
    {SYS_personality, CALL_HOME, identity_call},
    {SYS_keyctl, CALL_HOME, identity_call},
    {SYS_prctl, CALL_HERE, prctl_call},
    {SYS_arch_prctl, CALL_HERE, arch_prctl_call},

    {SYS_seccomp, CALL_HERE, seccomp_call},
    {SYS_ioctl, CALL_HERE, ioctl_call},
    {SYS_fcntl, CALL_HOME, fcntl_call},
};

enum { NUMBERS = 512 };
static call_function *functions[NUMBERS];

void calls_init(void)
{
    __builtin_memset(calls_kind, CALL_HOME, sizeof calls_kind);
    for (unsigned i = 0; i < sizeof anywhere / sizeof *anywhere; i++)
        calls_kind[anywhere[i]] = CALL_ANYWHERE;
    for (unsigned i = 0; i < sizeof blocking / sizeof *blocking; i++)
        calls_kind[blocking[i]] = CALL_BLOCKS;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        calls_kind[rows[i].nr] = rows[i].kind;
        functions[rows[i].nr] = rows[i].function;
    }
    __builtin_memcpy(calls_kind_rtld, calls_kind, sizeof calls_kind);
    calls_kind_rtld[SYS_mmap] = calls_kind_rtld[SYS_close] = calls_kind_rtld[SYS_munmap] =
        CALL_HERE;
}

void calls_handle(uint16_t nr, call_function *function) { functions[nr] = function; }

void calls_watch_descriptors(void)
{
    if (__atomic_load_n(&calls_kind[SYS_close_range], __ATOMIC_RELAXED) == CALL_DESCRIPTORS)
        return;
    static const uint16_t numbers[] = {SYS_close, SYS_dup2, SYS_dup3, SYS_close_range};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        calls_kind[numbers[i]] = calls_kind_rtld[numbers[i]] = CALL_DESCRIPTORS;
}

enum call_kind call_kind_of(long nr)
{
    return nr >= 0 && nr < (long)sizeof calls_kind ? (enum call_kind)calls_kind[nr] : CALL_HOME;
}

call_function *call_function_of(long nr) { return nr >= 0 && nr < NUMBERS ? functions[nr] : NULL; }
