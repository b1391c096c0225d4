//! System calls and futexes in which threads wait, by samples. `/proc/PID/task/TID/syscall` shows
//! the system call in which a thread is blocked. Futex calls are left out if the runtime publishes
//! its statistics: most are its own, and it counts the program's waits itself.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::FileExt as _;

use serde::Serialize;

use super::live::is_monitor;
use super::told::Lock;
use super::trace::{self, Futex, calls};

/// Futexes kept of a process. Those on the stacks of threads are many, and of no interest.
const KEPT: usize = 256;

/// Words read of a waiting thread's stack: as many as the runtime scans under lissom.
const STACK_WORDS: usize = 48;

/// Waits of one process so far.
#[derive(Default)]
pub struct Waits {
    looks: u32,
    /// Futex calls are left out.
    is_under_lissom: bool,
    /// Number of threads over all scans, by system call.
    calls: BTreeMap<u32, u64>,
    futexes: HashMap<u64, Lock>,
}

/// A system call in which threads wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockedIn {
    pub call: String,
    /// Average number of threads: the time that they waited in it, as a share of the elapsed time.
    pub threads: f64,
}

/// A thread that is blocked in a system call.
#[derive(Debug, PartialEq, Eq)]
struct Blocked {
    number: u32,
    /// None: it waits for something else than a futex.
    futex: Option<Waiter>,
}

/// A thread that is blocked on a futex.
#[derive(Debug, PartialEq, Eq)]
struct Waiter {
    futex: u64,
    stack: u64,
    instruction: u64,
}

impl Waits {
    /// Scan the threads of process `pid`. Costs about 10 us for each thread, and 20 for a new
    /// futex.
    pub fn look(&mut self, pid: u32, is_under_lissom: bool) {
        if is_under_lissom != self.is_under_lissom {
            *self = Waits { is_under_lissom, ..Waits::default() };
        }
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
        self.looks += 1;
        for task in tasks.flatten() {
            let asked = fs::read_to_string(task.path().join("syscall"));
            let Some(blocked) = asked.ok().and_then(|text| blocked(&text)) else { continue };
            let is_futex = i64::from(blocked.number) == libc::SYS_futex;
            if is_under_lissom && (is_futex || is_monitor(&task.path())) {
                continue;
            }
            *self.calls.entry(blocked.number).or_default() += 1;
            if let Some(waiter) = blocked.futex {
                self.add(pid, &waiter);
            }
        }
    }

    fn add(&mut self, pid: u32, waiter: &Waiter) {
        if self.futexes.len() == KEPT && !self.futexes.contains_key(&waiter.futex) {
            let coldest =
                self.futexes.values().min_by_key(|l| (l.waits, l.address)).map(|l| l.address);
            self.futexes.remove(&coldest.unwrap_or(0));
        }
        let lock = self.futexes.entry(waiter.futex).or_insert_with(|| Lock {
            address: waiter.futex,
            waits: 0,
            code: [waiter.instruction].into_iter().chain(stack(pid, waiter.stack)).collect(),
        });
        lock.waits += 1;
    }

    /// Return the system calls, those with the most threads first.
    pub fn blocked_in(&self) -> Vec<BlockedIn> {
        let looks = f64::from(self.looks.max(1));
        let mut calls: Vec<BlockedIn> = self
            .calls
            .iter()
            .map(|(&number, &n)| BlockedIn { call: calls::name(number), threads: n as f64 / looks })
            .collect();
        calls.sort_by(|a, b| b.threads.total_cmp(&a.threads));
        calls
    }

    pub fn looks(&self) -> u32 {
        self.looks
    }

    /// Return the `n` futexes with the most threads. `waits` is the number of threads over all
    /// scans.
    pub fn hottest(&self, n: usize) -> Vec<Lock> {
        let mut locks: Vec<Lock> = self.futexes.values().cloned().collect();
        locks.sort_by_key(|l| (std::cmp::Reverse(l.waits), l.address));
        locks.truncate(n);
        locks
    }
}

/// Parse a line of /proc. None: the thread runs, or is not in a system call.
fn blocked(text: &str) -> Option<Blocked> {
    let (Some(number), words) = trace::call(text)? else { return None };
    let [futex, operation, _, _, _, _, stack, instruction] = words[..] else { return None };
    let is_wait = i64::from(number) == libc::SYS_futex && Futex::waits(operation as u32);
    let futex = is_wait.then_some(Waiter { futex, stack, instruction });
    Some(Blocked { number, futex })
}

/// Read the stack from `address` on. Some words are addresses of code; places.rs finds these.
fn stack(pid: u32, address: u64) -> Vec<u64> {
    let mut bytes = [0; STACK_WORDS * 8];
    let memory = fs::File::open(format!("/proc/{pid}/mem"));
    let read = memory.and_then(|m| m.read_at(&mut bytes, address)).unwrap_or(0);
    bytes[..read]
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().expect("8")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes() {
        let text = "202 0x55d0 0x189 0x0 0x0 0x0 0xffffffff 0x7ffc10 0x7f3b20\n";
        let futex = Waiter { futex: 0x55d0, stack: 0x7ffc10, instruction: 0x7f3b20 };
        assert_eq!(blocked(text), Some(Blocked { number: 202, futex: Some(futex) }));
        for (number, other) in [
            (202, "202 0x55d0 0x81 0x1 0x0 0x0 0x0 0x7ffc10 0x7f3b20\n"), // a wake
            (230, "230 0x55d0 0x0 0x0 0x0 0x0 0x0 0x7ffc10 0x7f3b20\n"),
        ] {
            assert_eq!(blocked(other), Some(Blocked { number, futex: None }), "{other}");
        }
        for other in ["running\n", "-1 0x7ffc10 0x7f3b20\n", "202 0x55d0 0x80", ""] {
            assert_eq!(blocked(other), None, "{other}");
        }
        assert_eq!([0, 202, 9999].map(calls::name), ["read", "futex", "system call 9999"]);
    }

    #[test]
    fn those_with_the_fewest_threads_are_dropped() {
        let mut waits = Waits::default();
        let add =
            |waits: &mut Waits, futex| waits.add(0, &Waiter { futex, stack: 0, instruction: 1 });
        add(&mut waits, 1);
        add(&mut waits, 1);
        (2..1000).for_each(|futex| add(&mut waits, futex));
        assert_eq!(waits.futexes.len(), KEPT);
        assert_eq!((waits.hottest(1)[0].address, waits.hottest(1)[0].waits), (1, 2));
    }

    /// A thread of this process that waits in a system call other than a futex's is found.
    #[test]
    fn other_calls() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let reading = std::thread::spawn(move || std::io::read_to_string(reader));
        let mut waits = Waits::default();
        while !waits.blocked_in().iter().any(|b| b.call == "read" && b.threads > 0.0) {
            waits.look(std::process::id(), false);
        }
        drop(writer);
        assert!(reading.join().is_ok());
    }

    /// A waiting thread of this process is found.
    #[test]
    fn of_this_process() {
        let pair = std::sync::Arc::new((std::sync::Mutex::new(false), std::sync::Condvar::new()));
        let waiting = std::thread::spawn({
            let pair = std::sync::Arc::clone(&pair);
            move || drop(pair.1.wait_while(pair.0.lock().expect("lock"), |ended| !*ended))
        });
        let address = std::ptr::from_ref(&pair.1) as u64;
        let mut waits = Waits::default();
        while !waits.hottest(KEPT).iter().any(|l| (address..address + 64).contains(&l.address)) {
            waits.look(std::process::id(), false);
        }
        *pair.0.lock().expect("lock") = true;
        pair.1.notify_all();
        waiting.join().expect("it ends");
    }
}
