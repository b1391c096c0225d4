//! Events of one process's threads: they run, wait, and wake each other. Traced by BPF, which needs
//! privileges and is exact, or sampled from /proc.

mod bpf;
pub mod calls;
mod sample;

pub use bpf::{Shared, Tracing};
pub use sample::{Scan, call};

/// Name of a thread: bytes up to the first NUL.
pub type Name = [u8; 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// In ns of CLOCK_MONOTONIC.
    pub time: u64,
    pub thread: u32,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It got a CPU, and has this name.
    Runs {
        cpu: u32,
        name: Name,
    },
    /// It runs, or waits for a CPU: samples do not tell.
    Active,
    /// It was preempted, and waits for a CPU.
    Ready,
    Waits(Wait),
    /// A thread woke it, or created it.
    Woken(Waker),
    Ends,
    /// Events before this one are lost, of any threads.
    Lost,
}

/// The kernel's reason for which a thread is blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Number of the system call. None: it waits in an interrupt or a page fault.
    pub call: Option<u32>,
    /// Address of the futex, if it waits for one.
    pub futex: Option<u64>,
    /// Thread that holds the futex's lock, by the lock's own memory.
    pub holder: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    pub thread: u32,
    pub pid: u32,
    pub name: Name,
    /// The waker's system call, if it is a thread of the process. None: perhaps it only ran when an
    /// interrupt woke the thread.
    pub call: Option<u32>,
}

/// A futex call that waits, and the words at its futex.
pub struct Futex {
    address: u64,
    operation: u32,
    value: u32,
    word: u32,
    /// The word 8 bytes behind it.
    owner: u32,
}

impl Futex {
    /// Return whether the call waits, and does not wake.
    pub fn waits(operation: u32) -> bool {
        let waits = [
            libc::FUTEX_WAIT,
            libc::FUTEX_WAIT_BITSET,
            libc::FUTEX_LOCK_PI,
            libc::FUTEX_LOCK_PI2,
            libc::FUTEX_WAIT_REQUEUE_PI,
        ];
        waits.contains(&command(operation))
    }

    /// Return the thread that holds the lock, if the futex is one. By the kernel's rule for locks
    /// with priority inheritance, and by the layout of glibc's pthread_mutex_t for others: the word
    /// is 2 while threads wait, and the owner is 8 bytes behind it. The caller checks that such a
    /// thread exists.
    fn holder(&self) -> Option<u32> {
        const TID_MASK: u32 = 0x3fff_ffff;
        let is_mutex = self.value == 2 && self.word == 2;
        match command(self.operation) {
            libc::FUTEX_LOCK_PI | libc::FUTEX_LOCK_PI2 => Some(self.word & TID_MASK),
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET if is_mutex => Some(self.owner),
            _ => None,
        }
        .filter(|&thread| thread != 0)
    }

    fn wait(&self) -> Wait {
        let call = Some(libc::SYS_futex as u32);
        Wait { call, futex: Some(self.address), holder: self.holder() }
    }
}

fn command(operation: u32) -> i32 {
    operation as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders() {
        let mut futex = Futex { address: 64, operation: 0x80, value: 2, word: 2, owner: 7 };
        assert_eq!(futex.wait().holder, Some(7));
        // A condition variable or a barrier.
        futex.value = 0;
        assert_eq!(futex.wait(), Wait { call: Some(202), futex: Some(64), holder: None });
        // The lock was released meanwhile.
        (futex.value, futex.word) = (2, 0);
        assert_eq!(futex.wait().holder, None);
        // A lock with priority inheritance, with waiters.
        (futex.operation, futex.word) = (0x86, 0x8000_0009);
        assert_eq!(futex.wait().holder, Some(9));
        assert!(Futex::waits(0x189) && !Futex::waits(0x81));
    }
}
