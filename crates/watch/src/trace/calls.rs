//! System calls, by number.

use libc::c_long;
use syscalls::Sysno;

/// Since Linux 6.7; not in the libc crate.
const FUTEX_WAKE: c_long = 454;

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
    let known = Sysno::new(call as usize);
    known.map_or_else(|| format!("system call {call}"), |call| call.name().to_string())
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
