/* SPDX-License-Identifier: MIT
 *
 * Servers often ask for data that is not there: they read a descriptor with O_NONBLOCK until
 * EAGAIN. The runtime issues such a call at once, as well as a call whose data is there. The call
 * itself takes the data, without waiting for more. A poll before the call could lose events that
 * are reported once (EPOLLET), and another thread may take the data in between.
 */
#include "fastpath.h"
#include "sched/actions.h"
#include "sched/slots.h"
#include "sched/threshold.h"
#include "sched/waiting.h"
#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

static bool belong_to_threads;

void fastpath_at_home_only(void) { __atomic_store_n(&belong_to_threads, true, __ATOMIC_SEQ_CST); }

/* Return whether t has to make the call at home. Away from home the kernel takes it for the call of
 * another thread, and a write may raise a signal for its caller. */
static bool needs_home(const struct thread *t, long nr)
{
    struct kernel_sigaction pipe, size;
    if (__atomic_load_n(&belong_to_threads, __ATOMIC_RELAXED))
        return true;
    if (nr != SYS_write && nr != SYS_writev && nr != SYS_sendto && nr != SYS_sendmsg &&
        nr != SYS_sendmmsg)
        return false;
    pipe = action_of(SIGPIPE);
    size = action_of(SIGXFSZ);
    /* A signal that t blocks stays pending for t, which may fetch it by sigtimedwait(2). A signal
     * that only the carrier's home thread blocks would not end the process. */
    bool blocked = (t->home->mask | t->carrier->mask) & (signal_bit(SIGPIPE) | signal_bit(SIGXFSZ));
    return blocked || action_has_handler(&pipe) || action_has_handler(&size);
}

/* How each descriptor was last seen: a guess. O_NONBLOCK belongs to the open file, so it may be
 * changed through another descriptor or by another process. A call that the runtime does not see
 * may close the descriptor. So a call on one that never waits is made at home, on the program's
 * stack. There it may block and be interrupted as natively, and the monitor finds its slot. */
enum { DESCRIPTORS = 4096 };
enum seen_as {
    NEVER_WAITS, /* O_NONBLOCK, or a regular file: no signal cuts its calls short */
    MAY_WAIT,
    IS_DEVICE, /* a character device: a signal cuts its reads short */
    SEEN_AS
};
static uint64_t seen[SEEN_AS][DESCRIPTORS / 64];

static bool is_seen(enum seen_as how, uint32_t fd)
{
    return fd < DESCRIPTORS &&
           __atomic_load_n(&seen[how][fd / 64], __ATOMIC_RELAXED) >> (fd % 64) & 1;
}

void fastpath_forget(uint32_t fd)
{
    for (enum seen_as how = 0; how < SEEN_AS; how++)
        if (is_seen(how, fd))
            __atomic_fetch_and(&seen[how][fd / 64], ~(1ull << (fd % 64)), __ATOMIC_RELAXED);
}

void fastpath_forget_range(uint32_t first, uint32_t last)
{
    for (uint32_t fd = first; fd <= last && fd < DESCRIPTORS; fd++)
        fastpath_forget(fd);
}

static enum seen_as look_at(long descriptor)
{
    uint32_t fd = (uint32_t)descriptor;
    for (enum seen_as how = 0; how < SEEN_AS; how++)
        if (is_seen(how, fd))
            return how;
    struct stat about;
    long flags = prim_syscall3(SYS_fcntl, fd, F_GETFL, 0);
    if (flags < 0 || prim_syscall3(SYS_fstat, fd, &about, 0))
        return MAY_WAIT;
    enum seen_as how = S_ISCHR(about.st_mode)                         ? IS_DEVICE
                       : flags & O_NONBLOCK || S_ISREG(about.st_mode) ? NEVER_WAITS
                                                                      : MAY_WAIT;
    if (fd < DESCRIPTORS) {
        calls_watch_descriptors();
        __atomic_fetch_or(&seen[how][fd / 64], 1ull << (fd % 64), __ATOMIC_RELAXED);
    }
    return how;
}

static bool descriptor_never_waits(long descriptor) { return look_at(descriptor) == NEVER_WAITS; }

static bool is_poll(long nr)
{
    return nr == SYS_poll || nr == SYS_epoll_wait || nr == SYS_epoll_pwait;
}

/* Return whether the call never waits, by its arguments. */
static bool never(const struct user_registers *r)
{
    switch (r->rax) {
    case SYS_poll: return r->rdx == 0;
    case SYS_epoll_wait:
    case SYS_epoll_pwait: return fastpath_for_events(r) && r->r10 == 0;
    case SYS_recvfrom:
    case SYS_sendto:
    case SYS_recvmmsg:
    case SYS_sendmmsg: return r->r10 & MSG_DONTWAIT;
    case SYS_recvmsg:
    case SYS_sendmsg: return r->rdx & MSG_DONTWAIT;
    }
    return false;
}

bool fastpath_likely(const struct user_registers *r)
{
    switch (r->rax) {
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg: return descriptor_never_waits(r->rdi);
    }
    return false;
}

static bool is_nonblocking_now(long descriptor)
{
    long flags = prim_syscall3(SYS_fcntl, descriptor, F_GETFL, 0);
    return flags >= 0 && (flags & O_NONBLOCK);
}

enum { SAME_WAIT_US = 5 }; /* between two polls of one wait, at most */

enum { NOT_MADE = -4096 }; /* not an error of the kernel */

/* Make the call without waiting. Returns its result, or NOT_MADE if the call is still to be
 * made. */
static long made_at_once(const struct user_registers *r)
{
    switch (r->rax) {
    case SYS_poll:
    case SYS_epoll_wait:
    case SYS_epoll_pwait: {
        if (r->rax != SYS_poll && !fastpath_for_events(r))
            return NOT_MADE;
        long n = r->rax == SYS_poll ? prim_syscall3(SYS_poll, r->rdi, r->rsi, 0)
                                    : prim_syscall4(SYS_epoll_wait, r->rdi, r->rsi, r->rdx, 0);
        return n ? n : NOT_MADE;
    }
    case SYS_read: { /* of a socket; a read of 0 bytes never waits */
        long n = r->rdx ? prim_syscall6(SYS_recvfrom, r->rdi, r->rsi, r->rdx, MSG_DONTWAIT, 0, 0)
                        : NOT_MADE;
        return n == -ENOTSOCK ? NOT_MADE : n;
    }
    case SYS_recvfrom:
        return r->r10 & MSG_WAITALL ? NOT_MADE
                                    : prim_syscall6(SYS_recvfrom, r->rdi, r->rsi, r->rdx,
                                                    r->r10 | MSG_DONTWAIT, r->r8, r->r9);
    /* A write may be cut short on descriptors with O_NONBLOCK only. */
    case SYS_write: {
        long n = r->rdx && is_nonblocking_now(r->rdi)
                     ? prim_syscall6(SYS_sendto, r->rdi, r->rsi, r->rdx, MSG_DONTWAIT, 0, 0)
                     : NOT_MADE;
        return n == -ENOTSOCK ? NOT_MADE : n;
    }
    case SYS_sendto:
        return is_nonblocking_now(r->rdi) ? prim_syscall6(SYS_sendto, r->rdi, r->rsi, r->rdx,
                                                          r->r10 | MSG_DONTWAIT, r->r8, r->r9)
                                          : NOT_MADE;
    case SYS_sendmsg:
        return is_nonblocking_now(r->rdi)
                   ? prim_syscall3(SYS_sendmsg, r->rdi, r->rsi, r->rdx | MSG_DONTWAIT)
                   : NOT_MADE;
    case SYS_recvmsg:
        return r->rdx & MSG_WAITALL
                   ? NOT_MADE
                   : prim_syscall3(SYS_recvmsg, r->rdi, r->rsi, r->rdx | MSG_DONTWAIT);
    }
    return NOT_MADE;
}

/* t has polled with a zero timeout and found nothing. If it polls again at once, it counts as
 * waiting, and yields as at a hint site (docs/design/busy-waiting.md). */
static void found_nothing(struct thread *t)
{
    uint64_t now = tsc(), us = sched.tsc_per_us;
    uint64_t turns = (now - t->polled_at) / (us / 10 + 1); /* 0.1 us each */
    if (now - t->polled_at > SAME_WAIT_US * us) {
        t->polls_since = now;
        t->counts_on = 0;
    }
    if ((now - t->polls_since) * 1000 > threshold_ns() * us) {
        if (t->counts_on)
            t->counts_on -= turns < t->counts_on ? (uint32_t)turns : t->counts_on;
        else if (thread_stays(t) && now - t->mounted_at < SAME_WAIT_US * us)
            ; /* a switch to another kernel thread would take as long */
        else if (slot_ready_count(t->slot) || waiting_any_over(t->slot, now, true))
            slot_yield_spinning(t, now);
        now = tsc();
    }
    t->polled_at = now;
}

bool fastpath_call(struct thread *t, struct user_registers *r)
{
    long n;
    if (t->carrier != t->home && needs_home(t, r->rax))
        return false;
    if (never(r)) {
        /* The preemption signal interrupts poll, too, but the program must not see that. */
        do {
            n = prim_syscall6(r->rax, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9);
        } while (n == -EINTR && !t->pending_work);
        if (n == 0 && sched.detect_spinning && is_poll(r->rax))
            found_nothing(t);
    } else {
        /* Not at the end of a slice, since other threads are to run, nor if the call can be made as
         * it is. */
        if (!threads_exceed_slots() || slot_over_slice(t) ||
            (t->carrier == t->home && fastpath_likely(r)))
            return false;
        n = made_at_once(r);
        /* EINTR may come from the preemption signal; if it is the program's, the call itself sees
         * it */
        if (n == NOT_MADE || n == -EINTR)
            return false;
        if (n == -EAGAIN && !is_nonblocking_now(r->rdi))
            return false;
    }
    r->rax = n;
    return true;
}

/* Return whether the call transfers in parts: a preemption signal in between would end it with a
 * partial result, where natively it would continue. Such a call is made without a slot, since no
 * preemption signal comes then. */
static bool may_be_cut_short(const struct user_registers *r)
{
    enum { WHOLE = 1024, RANDOM_WHOLE = 256 }; /* bytes that are not divided if there is room */
    switch (r->rax) {
    case SYS_read: return r->rdx > WHOLE && look_at(r->rdi) == IS_DEVICE;
    case SYS_readv: return look_at(r->rdi) == IS_DEVICE;
    case SYS_recvfrom: return r->r10 & MSG_WAITALL;
    case SYS_recvmsg: return r->rdx & MSG_WAITALL;
    case SYS_recvmmsg: return r->rdx > 1 && !(r->r10 & MSG_WAITFORONE);
    case SYS_write:
    case SYS_sendto: return r->rdx > WHOLE && !descriptor_never_waits(r->rdi);
    case SYS_writev:
    case SYS_sendmsg:
    case SYS_sendmmsg: return !descriptor_never_waits(r->rdi);
    case SYS_getrandom: return r->rsi > RANDOM_WHOLE;
    }
    return false;
}

bool fastpath_may_block(const struct user_registers *r)
{
    struct pollfd p = {.fd = (int)r->rdi, .events = POLLIN | POLLRDHUP};
    if (may_be_cut_short(r))
        return true;
    switch (r->rax) {
    case SYS_getrandom: return false;
    case SYS_poll: return r->rdx != 0;
    case SYS_epoll_wait:
    case SYS_epoll_pwait: return r->r10 != 0;
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
        return !threads_exceed_slots() /* no thread takes the slot */ ||
               prim_syscall3(SYS_poll, &p, 1, 0) == 0;
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
        /* room for a little at least; if the call still blocks, the monitor finds it */
        p.events = POLLOUT;
        return (threads_exceed_slots() || sched.lone_contended || sched.neighbours) &&
               prim_syscall3(SYS_poll, &p, 1, 0) == 0;
    default: return true;
    }
}
