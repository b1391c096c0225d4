/* SPDX-License-Identifier: MIT
 *
 * What happens at an intercepted system call.  Four kinds:
 *
 * anywhere the kernel does the same whoever calls, and it does not wait for another thread: not
 * intercepted. home depends on the kernel thread (identity, masks, attributes) or is unknown: made
 * at home. blocking waits for something: made at home, with the slot given up around it.
 * handled    futex, gettid, sched_yield, rt_sigaction, thread exit, clone and its like: below.
 *
 * A context that is away from home never makes a call of the last three kinds there, which is what
 * keeps its carrier available to the thread whose home it is (docs/slots.md, go_home).
 */
#include "syscalls.h"
#include "attributes.h"
#include "cpus/cpus.h"
#include "events/events.h"
#include "futex/futex.h"
#include "lissom.h"
#include "omp/loops.h"
#include "sched/actions.h"
#include "sched/release.h"
#include "sched/altstack.h"
#include "sched/identity.h"
#include "sched/inbox.h"
#include "sched/mask.h"
#include "sched/signals.h"
#include "sched/slices.h"
#include "sched/slots.h"
#include "sched/user.h"
#include "sched/waiting.h"
#include "sched/waitmask.h"
#include "waits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

enum { KIND_ANYWHERE, KIND_HOME, KIND_BLOCKING, KIND_HANDLED, KIND_DESCRIPTORS };

uint8_t syscalls_class[65536], syscalls_class_rtld[65536];

/* clang-format off */
static const uint16_t anywhere[] = {
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk,
    SYS_mincore, SYS_msync, SYS_gettimeofday, SYS_time, SYS_clock_getres, SYS_getpid,
    SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_uname,
    SYS_sysinfo, SYS_getrandom, SYS_getcpu, SYS_fstat, SYS_lseek, SYS_pread64,
    SYS_close, SYS_getcwd, SYS_getdents64, SYS_dup, SYS_dup2, SYS_dup3, SYS_pipe,
    SYS_pipe2, SYS_eventfd2, SYS_epoll_create1, SYS_epoll_ctl, SYS_socket,
    SYS_socketpair, SYS_getsockname, SYS_getsockopt, SYS_setsockopt, SYS_membarrier,
    SYS_get_mempolicy, SYS_mbind, SYS_rt_sigreturn, /* its stack pointer is its argument */
};

static const uint16_t blocking[] = {
    SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_wait, SYS_epoll_pwait,
    441 /* epoll_pwait2 */, SYS_nanosleep, SYS_clock_nanosleep, SYS_pause, SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait, SYS_wait4, SYS_waitid, SYS_accept, SYS_accept4, SYS_connect, SYS_recvfrom,
    SYS_recvmsg, SYS_recvmmsg, SYS_read, SYS_readv, SYS_write, SYS_writev, SYS_sendto, SYS_sendmsg,
    SYS_sendmmsg, SYS_flock, SYS_msgrcv, SYS_semop, SYS_semtimedop, SYS_io_getevents,
    426 /* io_uring_enter */, SYS_mq_timedreceive, SYS_fsync, SYS_fdatasync, SYS_restart_syscall,
    SYS_sendfile, /* from here on a signal cuts short what is transferred: */ SYS_splice, SYS_tee,
    SYS_vmsplice, SYS_copy_file_range, SYS_preadv2, SYS_pwritev2, SYS_getrandom, SYS_fallocate,
    SYS_mq_timedsend,
};

static const uint16_t handled[] = {
    SYS_clock_gettime, SYS_readlink, SYS_readlinkat, SYS_stat, SYS_lstat, SYS_newfstatat,
    SYS_access, SYS_faccessat, SYS_futex, SYS_gettid, SYS_sched_yield, SYS_rt_sigaction, SYS_exit,
    SYS_exit_group, SYS_clone, 435 /* clone3 */, SYS_fork, SYS_vfork, 449 /* futex_waitv */,
    454 /* futex_wake */, 455 /* futex_wait */, 456 /* futex_requeue */, SYS_rt_sigprocmask,
    SYS_sigaltstack, SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam,
    SYS_sched_setattr, SYS_sched_getaffinity, SYS_execve, SYS_execveat, SYS_setpriority,
    SYS_ioprio_set, SYS_set_mempolicy, SYS_personality, SYS_keyctl, SYS_iopl, SYS_ioperm,
    SYS_perf_event_open, 446 /* landlock_restrict_self */, SYS_timer_create, SYS_unshare, SYS_setns,
    SYS_prctl, SYS_arch_prctl, SYS_rseq, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid,
    SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid, SYS_setgroups, SYS_capset,
    SYS_mq_notify, SYS_seccomp, SYS_signalfd, SYS_signalfd4, SYS_fcntl, SYS_ioctl,
    SYS_set_robust_list, SYS_tgkill, SYS_tkill, SYS_rt_tgsigqueueinfo, SYS_rt_sigpending,
    SYS_rt_sigqueueinfo,
};
/* clang-format on */

void syscalls_init(void)
{
    __builtin_memset(syscalls_class, KIND_HOME, sizeof syscalls_class);
    for (unsigned i = 0; i < sizeof anywhere / sizeof *anywhere; i++)
        syscalls_class[anywhere[i]] = KIND_ANYWHERE;
    for (unsigned i = 0; i < sizeof blocking / sizeof *blocking; i++)
        syscalls_class[blocking[i]] = KIND_BLOCKING;
    for (unsigned i = 0; i < sizeof handled / sizeof *handled; i++)
        syscalls_class[handled[i]] = KIND_HANDLED;
    __builtin_memcpy(syscalls_class_rtld, syscalls_class, sizeof syscalls_class);
    syscalls_class_rtld[SYS_mmap] = syscalls_class_rtld[SYS_close] =
        syscalls_class_rtld[SYS_munmap] = KIND_HANDLED;
}

/* From here on, calls that could close events' descriptor are seen. */
void syscalls_watch_descriptors(void)
{
    if (__atomic_load_n(&syscalls_class[SYS_close_range], __ATOMIC_RELAXED) == KIND_DESCRIPTORS)
        return;
    static const uint16_t numbers[] = {SYS_close, SYS_dup2, SYS_dup3, SYS_close_range};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        syscalls_class[numbers[i]] = syscalls_class_rtld[numbers[i]] = KIND_DESCRIPTORS;
}

/* --- fork, vfork, clone ----------------------------------------------------------------------- */

/* A child that shares nothing with us: the usual fork. It comes back here, on its copy of this
 * stack. */
static long fork_here(struct thread *t, struct user_registers *r)
{
    /* Block signals to the child until lissom_forked has emptied the inbox, which holds the
     * parent's. */
    uint64_t mask = signals_block_all();
    long pid = prim_syscall6(r->rax, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9);
    t->clone_state = CLONE_NONE;
    if (pid == 0) {
        if (t->home->closed)
            mask = t->home->mask;
        lissom_forked(t);
    }
    signals_set_mask(mask);
    r->rax = pid;
    return ACTION_RETURN;
}

/* Which of the two returns of a clone this is: the flag is set before, and looked at in whatever
 * call comes next.
 * Post: true: we are a child that shares memory with its parent, whose thread t is: touch
 * nothing. */
static bool is_shared_child(struct thread *t)
{
    if (t->clone_state == CLONE_NONE)
        return false;
    bool child = (int32_t)prim_syscall3(SYS_getpid, 0, 0, 0) != sched.pid;
    if (child && t->clone_state == CLONE_SHARED)
        return true;
    t->clone_state = CLONE_NONE;
    if (child)
        lissom_forked(t);
    return false;
}

/* Makes the process native as a whole, waits for its other threads to leave the runtime,
 * `timeout_ms` at most, and makes t's call natively. `reason` is for the user. */
static long native_call(struct thread *t, struct user_registers *r, const char *reason,
                        uint32_t timeout_ms)
{
    lissom_give_up(reason);
    release_wait(t, timeout_ms);
    return release_call(t, r);
}

static long clone_call(struct thread *t, struct user_registers *r)
{
    uint64_t flags, stack, tls = 0;
    if (r->rax == SYS_fork || r->rax == SYS_vfork) {
        flags = r->rax == SYS_vfork ? CLONE_VM | CLONE_VFORK : 0;
        stack = 0;
    } else if (r->rax == SYS_clone) {
        flags = (uint64_t)r->rdi;
        stack = (uint64_t)r->rsi;
        tls = (uint64_t)r->r8;
    } else {
        enum { LEAST = 64, MOST = 4096 };
        struct clone_args a;
        if (r->rsi < LEAST || r->rsi > MOST)
            return ACTION_DIRECT; /* the kernel refuses it */
        size_t size = (size_t)r->rsi < sizeof a ? (size_t)r->rsi : sizeof a;
        __builtin_memset(&a, 0, sizeof a);
        if (user_copy(t, &a, (const void *)r->rdi, size)) {
            r->rax = -EFAULT;
            return ACTION_RETURN;
        }
        flags = a.flags;
        stack = a.stack;
        tls = a.tls;
    }
    /* those that it has made before are to run, too, or they pile up */
    if ((flags & CLONE_THREAD) && slot_over_slice(t))
        slot_yield(t);
    carrier_go_home(t);
    if (flags & CLONE_THREAD) {
        cpu_unbind(t);
        identity_inherit(t, tls);
        if (t->own_affinity)
            cpu_will_be_own(tls);
        if (!(flags & CLONE_SETTLS)) {
            /* Two kernel threads with one TLS, and so one struct thread: cannot be told apart. */
            lissom_give_up("a thread was created without thread-local storage of its own");
            return release_call(t, r);
        }
        sched.has_made_threads = true;
        mask_give_kernel(t, false);
        return ACTION_DIRECT;
    }
    if ((flags & CLONE_VM) && !(flags & CLONE_VFORK)) {
        /* It runs beside us, waits and wakes as natively on the same words, and may have our
         * TLS. */
        enum { OTHERS_MS = 200 };
        return native_call(t, r, "a process was created that shares the memory", OTHERS_MS);
    }
    t->clone_state = flags & CLONE_VM ? CLONE_SHARED : CLONE_COPIED;
    cpu_set_free(t);
    if (flags & CLONE_VM)
        mask_give_kernel(t, false);
    return (flags & CLONE_VM) || stack ? ACTION_DIRECT : fork_here(t, r);
}

/* The new program inherits the mask, and pending signals: leave it none of the runtime's. */
static long exec_call(struct thread *t)
{
    slot_release(t);
    mask_give_kernel(t, true);
    preempt_discard_pending(t->home, t->tid);
    actions_before_exec();
    return ACTION_CALL;
}

/* --- objects that appear ---------------------------------------------------------------------- */

/* ld.so maps an object's segments and then closes its file, all before any of its code runs. The
 * first mapping has the length of the whole object; where segments want more than pages as
 * alignment, it is made inside a larger anonymous reservation whose ends are then unmapped. */
static struct {
    uintptr_t reserved, reserved_end;
    uintptr_t base, end;
    bool executable;
} mapping;

static void note_mapping(uintptr_t at, const struct user_registers *r)
{
    uintptr_t end = at + (((uintptr_t)r->rsi + 4095) & ~4095ul);
    bool fixed = r->r10 & MAP_FIXED, file = (int)r->r8 >= 0;
    if (!fixed && !file) {
        mapping.reserved = at;
        mapping.reserved_end = end;
        return;
    }
    if (!file)
        return;
    if (!fixed || (at >= mapping.reserved && end <= mapping.reserved_end)) {
        mapping.base = at;
        mapping.end = end;
        mapping.executable = false;
        mapping.reserved = mapping.reserved_end = 0;
    }
    if (at >= mapping.base && at < mapping.end && (r->rdx & PROT_EXEC))
        mapping.executable = true;
}

static long rtld_call(struct thread *t, struct user_registers *r)
{
    switch (r->rax) {
    case SYS_mmap: {
        long p = prim_syscall6(SYS_mmap, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9);
        if (p >= 0 || p < -4095)
            note_mapping((uintptr_t)p, r);
        r->rax = p;
        return ACTION_RETURN;
    }
    case SYS_munmap:
        r->rax = lissom_object_munmap((uintptr_t)r->rdi, (size_t)r->rsi);
        return ACTION_RETURN;
    default: /* close */
        if (mapping.executable) {
            mapping.executable = false;
            lissom_object_mapped(mapping.base, mapping.end - mapping.base, (int)r->rdi);
        }
        /* before any code of the object runs */
        return giving_up() ? release_call(t, r) : ACTION_DIRECT;
    }
}

/* --- calls that need more than to be made at home --------------------------------------------- */

/* Calls of ours that the filter does not know might be the end of the process. */
static long sandbox_call(struct thread *t, struct user_registers *r)
{
    enum { OTHERS_MS = 2000 };
    lissom_give_up(REASON_RESTRICTS);
    release_wait(t, OTHERS_MS);
    t->restricts = true;
    monitor_end();
    return release_call(t, r);
}

/* A descriptor for all signals would read our doorbells. */
static long signalfd_call(struct thread *t, struct user_registers *r)
{
    uint64_t mask;
    if (r->rdx != sizeof mask || user_copy(t, &mask, (const void *)r->rsi, sizeof mask))
        return ACTION_DIRECT;
    if (mask & signal_bit(QUIET_DOORBELL))
        doorbell_leave_quiet();
    mask_take_back(t); /* the kernel blocks SIGURG from now on */
    mask &= ~signal_bit(COUNTED_DOORBELL);
    r->rax = prim_syscall4(r->rax, r->rdi, &mask, r->rdx, r->r10);
    return ACTION_RETURN;
}

/* Foreign waits: in the kernel, in ways our queues do not know. */
static long foreign_wait(struct thread *t)
{
    __atomic_fetch_add(&futex_foreign_waiters, 1, __ATOMIC_SEQ_CST);
    t->foreign_wait = true;
    slot_release(t);
    return ACTION_CALL;
}

/* futex_wake(2), of Linux 6.7: as FUTEX_WAKE_BITSET if it is one of ours. */
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

/* --- the entry -------------------------------------------------------------------------------- */

/* /proc/thread-self is another link on each kernel thread. What is below it is opened at home
 * anyway. */
static bool is_of_kernel_thread(const struct thread *t, uintptr_t path)
{
    char begins[7] = "";
    return user_copy(t, begins, (const void *)path, sizeof begins) == 0 &&
           (__builtin_memcmp(begins, "/proc/t", sizeof begins) == 0 ||
            __builtin_memcmp(begins, "thread-", sizeof begins) == 0);
}

/* A call that the kernel answers by the calling thread only for some arguments: those are
 * `here`. */
static long at_home_if(struct thread *t, bool here)
{
    if (here)
        carrier_go_home(t);
    return ACTION_DIRECT;
}

static long handle(struct thread *t, struct user_registers *r, long nr)
{
    switch (nr) {
    case SYS_clock_gettime: return at_home_if(t, r->rdi == CLOCK_THREAD_CPUTIME_ID);
    case SYS_readlink:
    case SYS_stat:
    case SYS_lstat:
    case SYS_access: return at_home_if(t, is_of_kernel_thread(t, (uintptr_t)r->rdi));
    case SYS_readlinkat:
    case SYS_newfstatat:
    case SYS_faccessat: return at_home_if(t, is_of_kernel_thread(t, (uintptr_t)r->rsi));
    case SYS_futex: return futex_call(t, r);
    case SYS_gettid: r->rax = t->tid; return ACTION_RETURN;
    case SYS_sched_yield:
        if (!t->has_slot || (!slot_ready_count(t->slot) && !waiting_any_over(t->slot, tsc(), true)))
            return ACTION_DIRECT;
        slices_begin_anew(t, t->slot);
        slot_yield(t);
        r->rax = 0;
        return ACTION_RETURN;
    case SYS_rt_sigaction: return actions_call(r);
    case SYS_exit: thread_exit(t); return ACTION_DIRECT;
    case SYS_clone:
    case 435:
    case SYS_fork:
    case SYS_vfork: return clone_call(t, r);
    case 449: /* futex_waitv */
    case 455: /* futex_wait */ carrier_go_home(t); return foreign_wait(t);
    case 454: return futex2_wake(t, r);
    case SYS_rt_sigpending: return mask_pending(t, r);
    case SYS_rt_sigprocmask: return signals_sigprocmask(t, r);
    case SYS_rt_sigqueueinfo: carrier_go_home(t); return mask_sigqueue(t, r);
    case SYS_sched_setscheduler:
    case SYS_sched_setparam:
    case SYS_sched_setattr: return attributes_set_class(t, r);
    case SYS_sigaltstack: return altstack_call(t, r);
    case SYS_seccomp:
        if (r->rdi == SECCOMP_SET_MODE_STRICT || r->rdi == SECCOMP_SET_MODE_FILTER)
            return sandbox_call(t, r);
        break;
    case SYS_prctl:
        if (r->rdi == PR_SET_SECCOMP)
            return sandbox_call(t, r);
        break;
    case SYS_ioctl:
        if ((uint32_t)r->rsi == (uint32_t)UFFDIO_API) {
            /* A page fault may then last until another thread of the program ends it, and meanwhile
             * keeps the kernel thread that it is taken on, which may be the other one's. */
            enum { OTHERS_MS = 2000 };
            return native_call(t, r, REASON_USERFAULTFD, OTHERS_MS);
        }
        break;
    case SYS_arch_prctl: {
        enum { GET_XCOMP_SUPP = 0x1021, REQ_XCOMP_GUEST_PERM = 0x1025 };
        /* The permission belongs to the process, so any kernel thread may make the call. llama.cpp
         * makes it in each thread for each matrix multiplication. */
        if (r->rdi >= GET_XCOMP_SUPP && r->rdi <= REQ_XCOMP_GUEST_PERM)
            return ACTION_DIRECT;
        break;
    }
    case SYS_mq_notify: monitor_before_mq_notify(); break;
    case SYS_signalfd:
    case SYS_signalfd4:
        thread_learn(t, true);
        waits_belong_to_threads();
        carrier_go_home(t);
        return signalfd_call(t, r);
    case SYS_sched_setaffinity:
        thread_learn(t, true);
        carrier_go_home(t);
        return attributes_set_affinity(t, r);
    case SYS_sched_getaffinity: return attributes_get_affinity(t, r);
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setfsuid:
    case SYS_setfsgid:
    case SYS_setgroups:
    case SYS_capset: return identity_credentials(t, r);
    }
    thread_learn(t, true);
    attributes_note(t, nr, r);
    carrier_go_home(t);
    return nr == SYS_execve || nr == SYS_execveat ? exec_call(t) : ACTION_DIRECT;
}

static long descriptor_call(struct thread *t, struct user_registers *r)
{
    if (r->rax == SYS_close_range)
        waits_forget_range((uint32_t)r->rdi, (uint32_t)r->rsi);
    else
        waits_forget((uint32_t)(r->rax == SYS_close ? r->rdi : r->rsi));
    if (events_guard_descriptor(r))
        return ACTION_RETURN;
    return r->rax == SYS_close && t->site->loader ? rtld_call(t, r) : ACTION_DIRECT;
}

/* t waits in the kernel, without a slot. */
static long kernel_waits(struct thread *t, struct user_registers *r)
{
    mask_before_wait(t, r, true);
    if (r->rax == SYS_rt_sigtimedwait && !r->rsi)
        r->rsi = (long)&t->taken; /* so that a doorbell can be told from a signal of the program */
    return ACTION_CALL;
}

static long blocking_call(struct thread *t, struct user_registers *r)
{
    if (!sched.has_made_threads) {
        /* nobody wants its slot, and only t could make somebody who does */
        mask_before_wait(t, r, true);
        return ACTION_DIRECT;
    }
    if (waits_not(t, r)) {
        if (slot_ready_count(t->slot) && slot_over_slice(t))
            slot_yield(t);
        return ACTION_RETURN;
    }
    if (waits_never_likely(r)) {
        if (slot_ready_count(t->slot) && slot_over_slice(t))
            slot_yield(t);
        if (t->carrier != t->home)
            thread_learn(t, true);
        carrier_go_home(t);
        mask_before_wait(t, r, false);
        return ACTION_DIRECT;
    }
    if (waits_for_events(r) && r->r10 && threads_exceed_slots()) {
        long action = events_wait(t, r);
        if (action != EVENTS_NOT)
            return action;
    }
    thread_learn(t, true);
    carrier_go_home(t);
    if (!waits_may_block(r)) {
        mask_before_wait(t, r, false);
        return ACTION_DIRECT;
    }
    slot_release(t);
    return kernel_waits(t, r);
}

__attribute__((noinline)) static long call(struct user_registers *r, struct thread *t, long nr)
{
    long action;
    if (t->ended) { /* thread_exit has been called, and a signal has made it begin exit(2) again */
        t->attention = 0;
        return ACTION_DIRECT;
    }
    if (t->kernel_has_mask)
        mask_take_back(t);
    futex_call_done(t, r); /* of a wait that a handler has jumped out of */
    if (t->attention && signals_settle(t))
        return signals_leave(t, r, ACTION_RESTART);
    if (t->site == &lissom_return_site)
        return signals_return(t, r);
    if (giving_up())
        return t->site == &lissom_omp_site ? ACTION_RETURN : release_call(t, r);
    uint8_t kind = nr >= 0 && nr < 65536 ? syscalls_class[nr] : KIND_HOME;
    if (kind == KIND_BLOCKING)
        waitmask_begins(t, nr);
    /* Interrupted between giving up its slot and the call. Were it to queue for a slot first,
     * signals that keep coming would interrupt it there each time, and it would never make the
     * call. */
    if (!t->has_slot && kind == KIND_BLOCKING)
        return kernel_waits(t, r);
    if (!t->has_slot && nr != SYS_exit)
        slot_acquire(t);
    if (__atomic_load_n(&t->to_be_pinned, __ATOMIC_RELAXED)) {
        t->to_be_pinned = false;
        attributes_were_set(t);
        thread_look_at_class(t);
    }
    if (carrier_is_reserved(t))
        slot_yield(t);
    if (t->site == &lissom_omp_site) {
        action = loops_call(t, r);
    } else if (kind == KIND_ANYWHERE) {
        action = rtld_call(t, r);
    } else if (kind == KIND_DESCRIPTORS) {
        action = descriptor_call(t, r);
    } else if (kind == KIND_BLOCKING) {
        action = blocking_call(t, r);
    } else if (kind == KIND_HANDLED) {
        action = handle(t, r, nr);
    } else {
        thread_learn(t, true);
        carrier_go_home(t);
        action = ACTION_DIRECT;
    }
    if (t->attention && action == ACTION_RETURN)
        action = signals_leave(t, r, action);
    return action;
}

/* Nothing is to be done before t's call, or in its place. */
static bool is_plain(const struct thread *t)
{
    return t->has_slot && !t->attention && !t->kernel_has_mask && !t->kernel_wait &&
           !t->foreign_wait && !__atomic_load_n(&t->to_be_pinned, __ATOMIC_RELAXED) &&
           t->site != &lissom_omp_site && !giving_up() && !carrier_is_reserved(t);
}

/* From switch.S, on t's runtime stack. */
long lissom_syscall(struct user_registers *r, struct thread *t)
{
    long nr = r->rax;
    if (is_shared_child(t)) {
        if (nr == SYS_execve || nr == SYS_execveat)
            actions_before_exec();
        return nr == SYS_rt_sigaction ? actions_of_child(r) : ACTION_DIRECT;
    }
    t->nr = nr;
    if (nr == SYS_futex && is_plain(t)) {
        long action = futex_call(t, r);
        return t->attention && action == ACTION_RETURN ? signals_leave(t, r, action) : action;
    }
    return call(r, t, nr);
}

/* From switch.S, after an ACTION_CALL. */
long lissom_syscall_done(struct user_registers *r, struct thread *t)
{
    futex_call_done(t, r);
    if (t->nr == SYS_execve || t->nr == SYS_execveat)
        actions_after_exec();
    if (t->nr == SYS_rt_sigtimedwait && signals_took_doorbell(t, r)) {
        r->rax = t->nr;
        return ACTION_CALL;
    }
    mask_after_wait(t, r);
    if (t->kernel_has_mask)
        mask_take_back(t);
    if (r->rsi == (long)&t->taken)
        r->rsi = 0;
    if (!t->has_slot && !giving_up())
        slot_acquire(t);
    return t->attention ? signals_leave(t, r, ACTION_RETURN) : ACTION_RETURN;
}
