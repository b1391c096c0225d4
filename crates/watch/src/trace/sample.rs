//! States of threads from /proc: /proc/PID/task/TID/syscall shows whether a thread runs, and the
//! system call in which it is blocked.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;

use super::{Event, Futex, Wait, What};
use os::process;

/// Scans of one process.
pub struct Scan {
    pid: u32,
    /// Threads of the last scan.
    threads: Vec<u32>,
    memory: Option<File>,
}

impl Scan {
    pub fn new(pid: u32) -> Scan {
        let memory = File::open(format!("/proc/{pid}/mem")).ok();
        Scan { pid, threads: Vec::new(), memory }
    }

    /// Return the state of each thread, and an end of each that has ended since the last scan.
    /// Costs about 10 us for each thread. Fails if the process has ended, or may not be inspected.
    pub fn look(&mut self) -> io::Result<Vec<Event>> {
        let mut events = Vec::with_capacity(self.threads.len() + 8);
        let (mut threads, mut denied) = (Vec::new(), None);
        for task in fs::read_dir(format!("/proc/{}/task", self.pid))?.flatten() {
            let Ok(thread) = task.file_name().to_string_lossy().parse() else { continue };
            let text = match fs::read_to_string(task.path().join("syscall")) {
                Ok(text) => text,
                Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                    denied = Some(e);
                    continue;
                }
                // It has ended.
                Err(_) => continue,
            };
            let time = process::monotonic().as_nanos() as u64;
            threads.push(thread);
            events.push(Event { time, thread, what: self.state(&text) });
        }
        if let (true, Some(denied)) = (threads.is_empty(), denied) {
            return Err(denied);
        }
        let time = process::monotonic().as_nanos() as u64;
        let gone = self.threads.iter().filter(|thread| !threads.contains(thread));
        events.extend(gone.map(|&thread| Event { time, thread, what: What::Ends }));
        self.threads = threads;
        Ok(events)
    }

    fn state(&self, text: &str) -> What {
        let Some((call, arguments)) = call(text) else { return What::Active };
        let (Some(call), &[address, operation, value, ..]) = (call, &arguments[..]) else {
            return What::Waits(Wait { call, ..Wait::default() });
        };
        let (operation, value) = (operation as u32, value as u32);
        if i64::from(call) != libc::SYS_futex || !Futex::waits(operation) {
            return What::Waits(Wait { call: Some(call), ..Wait::default() });
        }
        let word = |address: u64| {
            let mut bytes = [0; 4];
            let memory = self.memory.as_ref();
            let read = memory.map(|m| m.read_exact_at(&mut bytes, address));
            read.map_or(0, |_| u32::from_ne_bytes(bytes))
        };
        let (word, owner) = (word(address), word(address.wrapping_add(8)));
        What::Waits(Futex { address, operation, value, word, owner }.wait())
    }
}

/// Parse `NUMBER ARGUMENT...`, or `-1` for a thread that waits outside of a system call. None: the
/// thread runs.
pub fn call(text: &str) -> Option<(Option<u32>, Vec<u64>)> {
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let mut words = text.split_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    Some((u32::try_from(number).ok(), words.map_while(hex).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        assert_eq!(call("running\n"), None);
        assert_eq!(call("-1 0x10 0x20\n"), Some((None, vec![16, 32])));
        assert_eq!(call("0 0x3 0x4 0x5 0x0 0x0 0x0 0x7 0x8\n").map(|c| c.0), Some(Some(0)));
    }

    #[test]
    fn of_this_process() {
        let pid = std::process::id();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || receiver.recv());
        let mut scan = Scan::new(pid);
        let waits = |event: &Event| matches!(event.what, What::Waits(Wait { futex: Some(_), .. }));
        while !scan.look().expect("it is here").iter().any(waits) {}
        drop(sender);
        let _ = waiting.join();
        assert!(Scan::new(u32::MAX >> 1).look().is_err());
    }
}
