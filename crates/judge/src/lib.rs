//! Judge whether a thread of another process busy-waits. Uses the interpreter of runtime/spin, on
//! registers that the kernel side of the scheduler sampled and on memory read from outside.
//! docs/design/sched-judge.md says what a verdict proves.

mod memory;

use std::ffi::{c_int, c_long, c_uint, c_void};

use serde::Serialize;
use zerocopy::{Immutable, IntoBytes, TryFromBytes};

use memory::Looking;
// Its decoder in C, which the interpreter calls.
use zydis as _;

/// Maximum number of memory snapshots to try. The thread keeps running, so a snapshot may be of
/// another moment of the loop's iteration than the registers.
const ATTEMPTS: u32 = 8;
/// Instructions interpreted in all attempts together, after which no further attempt starts. An
/// attempt that proves a wait takes some hundred.
const BUDGET: u32 = 6000;
/// Number of attempts that have to show that the thread makes progress.
const AGREEING: u32 = 3;

/// `struct orbit_memory`
#[repr(C)]
struct Memory {
    load: unsafe extern "C" fn(usize, *mut c_void, c_uint) -> c_long,
    fetch: unsafe extern "C" fn(usize, *mut c_void, c_uint) -> c_long,
    again: unsafe extern "C" fn(usize, *mut c_void, c_uint) -> c_long,
}

static MEMORY: Memory = Memory {
    load: memory::callback::<{ memory::SNAPSHOT }>,
    fetch: memory::callback::<{ memory::CODE }>,
    again: memory::callback::<{ memory::NOW }>,
};

/// `struct orbit_attempt`
#[repr(C)]
#[derive(Default)]
struct Attempt {
    steps: u32,
    uses_fs: bool,
    head: u64,
}

/// ORBIT_SCRATCH
const SCRATCH: usize = 72 * 1024;

#[repr(C, align(64))]
struct Scratch([u8; SCRATCH]);

unsafe extern "C" {
    fn orbit_judge(
        memory: *const Memory,
        registers: *const u64,
        fs_base: u64,
        scratch: *mut Scratch,
        attempt: *mut Attempt,
    ) -> c_int;
}

/// `enum scx_verdict`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TryFromBytes, IntoBytes, Immutable)]
#[serde(rename_all = "lowercase")]
#[repr(u32)]
pub enum Verdict {
    /// Not decided: no thread is preempted there.
    Unknown,
    /// Threads wait there for another thread to change a word.
    Spins,
    /// Threads make progress there.
    Works,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Unknown => "unknown",
            Verdict::Spins => "spins",
            Verdict::Works => "works",
        }
    }
}

/// `struct scx_candidate`: a thread that repeatedly was in the same state, with its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub pid: u32,
    pub thread: u32,
    pub ip: u64,
    /// rax rbx rcx rdx rsi rdi rbp rsp r8..r15 rip rflags
    pub registers: [u64; 18],
}

/// Decide about one candidate: in about 100 us, at most a few ms. The thread is not stopped and
/// keeps running. Returns `Unknown` if the process has ended or may not be read.
pub fn judge(candidate: &Candidate) -> Verdict {
    match loop_of(candidate) {
        Ok(_) => Verdict::Spins,
        Err(verdict) => verdict,
    }
}

/// Decide about one candidate, as [`judge`] does. If the thread busy-waits, returns the lowest
/// instruction of its loop, which is the same for each sampled instruction of the loop.
pub fn loop_of(candidate: &Candidate) -> Result<u64, Verdict> {
    const RSP: usize = 7;
    // A stack below 4 GiB means 32-bit code, which the interpreter would decode as 64-bit code.
    if candidate.registers[RSP] >> 32 == 0 {
        return Err(Verdict::Unknown);
    }
    let looking = Looking::at(candidate.pid);
    let mut scratch = Box::new(Scratch([0; SCRATCH]));
    let mut fs_base = None;
    let (mut works, mut steps) = (0, 0);
    for _ in 0..ATTEMPTS {
        let mut attempt = Attempt::default();
        looking.anew();
        // SAFETY: memory, registers and scratch are as orbit.h requires; the callbacks read the
        // process that `looking` has set.
        let verdict = unsafe {
            orbit_judge(
                &MEMORY,
                candidate.registers.as_ptr(),
                fs_base.flatten().unwrap_or(0),
                &mut *scratch,
                &mut attempt,
            )
        };
        match verdict {
            1 => return Ok(attempt.head),
            2 => works += 1,
            _ if attempt.uses_fs && fs_base.is_none() => {
                fs_base = Some(thread_pointer(candidate, &looking))
            }
            _ => (),
        }
        steps += attempt.steps;
        if works == AGREEING {
            return Err(Verdict::Works);
        }
        if steps >= BUDGET {
            break;
        }
    }
    Err(Verdict::Unknown)
}

/// Find the thread's fs base, which the kernel does not report for a running thread. glibc
/// registers a list head inside the thread's control block. The block starts at the fs base, and
/// its first and third word are its own address. Returns None without glibc. Returns None under
/// `lissom run`, too: its user-space context switches may leave another thread's control block.
fn thread_pointer(candidate: &Candidate, looking: &Looking) -> Option<u64> {
    let mut head = 0usize;
    let mut len = 0usize;
    // SAFETY: the call writes only to these two variables.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_get_robust_list,
            candidate.thread as c_int,
            &raw mut head,
            &raw mut len,
        ) != 0
    };
    if failed || head == 0 || is_under_lissom(candidate.pid) {
        return None;
    }
    let is_own =
        |at: usize| looking.word(at) == Some(at as u64) && looking.word(at + 16) == Some(at as u64);
    (0..64).map(|n| (head & !63).wrapping_sub(n * 64)).find(|&at| is_own(at)).map(|at| at as u64)
}

/// Returns true also if /proc/PID/maps cannot be read.
fn is_under_lissom(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/maps"))
        .map_or(true, |maps| maps.windows(b"liblissom".len()).any(|w| w == b"liblissom"))
}

#[cfg(test)]
#[path = "judge_test.rs"]
mod tests;
