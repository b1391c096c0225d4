//! Whether a thread of another process waits in a loop: the interpreter of runtime/spin, which
//! proves that for `lissom run`, on registers that the kernel side of the scheduler has sampled and
//! on memory that is read from outside. docs/sched-judge.md says what is proved.

use std::ffi::{c_int, c_long, c_uint, c_void};

use super::layout::{Candidate, Verdict};
use super::memory::{self, Looking};

/// Snapshots of memory that are tried. The thread goes on running, so one may be of another moment
/// of its turn than the registers.
const ATTEMPTS: u32 = 8;
/// Instructions that are interpreted in all of them, or few more. An attempt that shows a wait
/// takes some hundreds.
const BUDGET: u32 = 6000;
/// That have to agree that a thread makes progress.
const AGREEING: u32 = 3;

/// `struct orbit_memory`
#[repr(C)]
struct Memory {
    load: unsafe extern "C" fn(usize, *mut c_void, c_uint) -> c_long,
    fetch: unsafe extern "C" fn(usize, *mut c_void, c_uint) -> c_long,
    again: unsafe extern "C" fn(usize, *mut c_void, c_uint) -> c_long,
}

static MEMORY: Memory = Memory { load: memory::load, fetch: memory::fetch, again: memory::again };

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

/// Decides about one candidate: in some 100 us, at most a few ms. The thread is not stopped, and
/// goes on running. A process that is gone, or that this one may not look into, is `Unknown`.
pub fn judge(candidate: &Candidate) -> Verdict {
    match loop_of(candidate) {
        Ok(_) => Verdict::Spins,
        Err(verdict) => verdict,
    }
}

/// That; of one that waits, the first instruction of its loop, which is the same for each
/// instruction of it that may be sampled.
pub fn loop_of(candidate: &Candidate) -> Result<u64, Verdict> {
    const RSP: usize = 7;
    // A stack below 4 GiB is that of 32-bit code, which would be read as if it were 64-bit code.
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
        // SAFETY: memory, registers and scratch are as orbit.h wants them; the callbacks read what
        // `looking` has set up.
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

/// Where the thread's fs segment begins. Nothing tells that of a running thread. glibc registers a
/// list head within the thread's control block, whose first and third word are its own address, and
/// that is where fs begins. None: not glibc, or user space switches contexts between threads, as
/// `lissom run` does: then it may be another thread's.
fn thread_pointer(candidate: &Candidate, looking: &Looking) -> Option<u64> {
    let mut head = 0usize;
    let mut len = 0usize;
    // SAFETY: both are variables that the call fills in.
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

/// True also if that cannot be told.
fn is_under_lissom(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/maps"))
        .map_or(true, |maps| maps.windows(b"liblissom".len()).any(|w| w == b"liblissom"))
}

#[cfg(test)]
#[path = "judge_test.rs"]
mod tests;
