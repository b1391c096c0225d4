//! The numbers that a process under lissom publishes, as plain values.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::live::Copy;
use crate::stats::{self, Names, SpinLoop};
use os::process;
use runtime::abi::{self, STATES};

pub struct Told {
    /// Time since the process wrote these numbers.
    pub age: Duration,
    /// At most one thread can run, so the process does not write.
    pub is_asleep: bool,
    /// lissom has given up, and passes all waits to the kernel.
    pub is_native: bool,
    pub state: &'static str,
    pub threads: u32,
    pub slots: u32,
    /// Slots that it would have alone.
    pub limit: u32,
    /// Threads that hold a slot.
    pub running: u32,
    /// Threads that wait for a slot.
    pub ready: u32,
    pub counters: Names,
    pub pinned: Names,
    /// Locks, those with the most waits first.
    pub locks: Vec<Lock>,
    pub loops: Vec<SpinLoop>,
}

/// A futex on which threads waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub address: u64,
    /// Estimated number of waits, from samples.
    pub waits: u64,
    /// Origin of one of these waits: the instruction, then addresses of code that were on the
    /// stack.
    pub code: Vec<u64>,
}

impl Told {
    /// Read the numbers from a copy of the process's memory. Bounds them, because the process may
    /// have written anything.
    pub fn new(copy: &Copy) -> Told {
        let live = copy.get();
        let number = |field: &AtomicU32| field.load(Relaxed).min(1 << 22);
        let now = process::monotonic();
        let (running, demand) = (number(&live.running), number(&live.demand));
        Told {
            age: now.saturating_sub(Duration::from_nanos(live.heartbeat.load(Relaxed))),
            is_asleep: live.is_asleep.load(Relaxed) != 0,
            is_native: live.is_native.load(Relaxed) != 0,
            state: STATES.get(live.record.state.load(Relaxed) as usize).map_or("unknown", |s| s.0),
            threads: number(&live.threads),
            slots: number(&live.slots),
            limit: number(&live.limit),
            running,
            ready: demand.saturating_sub(running),
            counters: stats::counters(&live.record),
            pinned: stats::pinned(&live.record),
            locks: locks(live),
            loops: stats::loops(&live.record),
        }
    }

    /// Return whether the numbers are more than half a second old. The monitor writes ten times a
    /// second, unless it gets no CPU or is stopped.
    pub fn is_late(&self) -> bool {
        !self.is_asleep && self.age > Duration::from_millis(500)
    }
}

fn locks(live: &abi::Live) -> Vec<Lock> {
    let every = u64::from(live.lock_every.load(Relaxed)).max(1);
    let word = |field: &AtomicU64| field.load(Relaxed);
    let mut locks: Vec<Lock> = live
        .lock
        .iter()
        .filter(|l| word(&l.samples) > 0)
        .map(|l| Lock {
            address: word(&l.address),
            waits: word(&l.samples).saturating_mul(every),
            code: l.code.iter().map(word).filter(|&c| c != 0).collect(),
        })
        .collect();
    locks.sort_by_key(|l| std::cmp::Reverse((l.waits, l.address)));
    locks
}
