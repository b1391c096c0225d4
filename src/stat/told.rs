//! The numbers of a process under lissom, as plain values.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::live::Copy;
use crate::abi::{self, STATES};
use crate::process;
use crate::stats::{self, Names, SpinLoop};

pub struct Told {
    /// Since it was written.
    pub age: Duration,
    /// At most one thread can run, so nothing is written.
    pub is_asleep: bool,
    /// It has given up: all waits are the kernel's.
    pub is_native: bool,
    pub state: &'static str,
    pub threads: u32,
    pub slots: u32,
    /// As many slots as it would have alone.
    pub limit: u32,
    pub running: u32,
    pub ready: u32,
    pub counters: Names,
    pub pinned: Names,
    /// Those with the most waits first.
    pub locks: Vec<Lock>,
    pub loops: Vec<SpinLoop>,
}

/// A futex on which threads have waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub address: u64,
    /// About as many.
    pub waits: u64,
    /// Where one of them began: the instruction, and addresses of code that lay on the stack.
    pub code: Vec<u64>,
}

impl Told {
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

    /// Its monitor writes ten times a second, and has missed several of them: CPUs are short, or it
    /// may not run.
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
