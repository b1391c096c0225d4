//! System calls, by number.

use libc::c_long;

/// Calls that often block, or wake others. The names of all are in no library that we use.
const NAMES: &[(c_long, &str)] = &[
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_clone, "clone"),
    (libc::SYS_clone3, "clone3"),
    (libc::SYS_close, "close"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_epoll_pwait2, "epoll_pwait2"),
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_execve, "execve"),
    (libc::SYS_exit, "exit"),
    (libc::SYS_exit_group, "exit_group"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fork, "fork"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_futex, "futex"),
    (FUTEX_WAIT, "futex_wait"),
    (FUTEX_WAKE, "futex_wake"),
    (libc::SYS_futex_waitv, "futex_waitv"),
    (libc::SYS_io_getevents, "io_getevents"),
    (libc::SYS_io_uring_enter, "io_uring_enter"),
    (libc::SYS_kill, "kill"),
    (libc::SYS_madvise, "madvise"),
    (libc::SYS_membarrier, "membarrier"),
    (libc::SYS_mmap, "mmap"),
    (libc::SYS_mprotect, "mprotect"),
    (libc::SYS_msgrcv, "msgrcv"),
    (libc::SYS_msgsnd, "msgsnd"),
    (libc::SYS_munmap, "munmap"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_open, "open"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_pause, "pause"),
    (libc::SYS_poll, "poll"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_read, "read"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmmsg, "recvmmsg"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_restart_syscall, "restart_syscall"),
    (libc::SYS_rt_sigsuspend, "rt_sigsuspend"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    (libc::SYS_sched_yield, "sched_yield"),
    (libc::SYS_select, "select"),
    (libc::SYS_semop, "semop"),
    (libc::SYS_semtimedop, "semtimedop"),
    (libc::SYS_sendmmsg, "sendmmsg"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_shutdown, "shutdown"),
    (libc::SYS_splice, "splice"),
    (libc::SYS_tgkill, "tgkill"),
    (libc::SYS_tkill, "tkill"),
    (libc::SYS_vfork, "vfork"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
];

/// Since Linux 6.7; not in the libc crate.
const FUTEX_WAKE: c_long = 454;
const FUTEX_WAIT: c_long = 455;

/// Calls that wake a thread which waits for a futex: also the end of a thread wakes those that
/// join it.
const WAKE_FUTEXES: &[c_long] =
    &[libc::SYS_futex, FUTEX_WAKE, libc::SYS_exit, libc::SYS_exit_group];

/// Calls that wake threads which wait in other calls. In any other call, the waker was more likely
/// interrupted by a device or a timer, which woke the thread.
const WAKE_OTHERS: &[c_long] = &[
    libc::SYS_close,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_kill,
    libc::SYS_msgsnd,
    libc::SYS_semop,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_shutdown,
    libc::SYS_splice,
    libc::SYS_tgkill,
    libc::SYS_tkill,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Return the name of a system call: "read", or "system call 999".
pub fn name(call: u32) -> String {
    let found = NAMES.iter().find(|(number, _)| *number == c_long::from(call));
    found.map_or_else(|| format!("system call {call}"), |(_, name)| (*name).to_string())
}

/// Return whether a thread in `call` wakes others that wait for a futex, or in other calls.
pub fn wakes(call: u32, for_a_futex: bool) -> bool {
    let calls = if for_a_futex { WAKE_FUTEXES } else { WAKE_OTHERS };
    calls.contains(&c_long::from(call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(
            (name(0), name(202), name(9999)),
            ("read".into(), "futex".into(), "system call 9999".into())
        );
        assert!(wakes(202, true) && wakes(60, true) && !wakes(1, true));
        assert!(wakes(1, false) && !wakes(0, false) && !wakes(202, false));
    }
}
