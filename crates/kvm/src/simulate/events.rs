//! The queue of events by time. Outdated events stay in it: their generation differs from the
//! current one, and the caller skips them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The next event of a physical CPU
    Cpu(usize),
    /// The timer or interrupt of a sleeping vCPU
    Wake(usize),
    /// A physical CPU balances its load with the others
    Balance(usize),
    /// The warm-up ends, and counting begins
    Warm,
    /// The guests change to another workload
    Change(usize),
    /// Record a point of the path over time
    Sample,
}

#[derive(Default)]
pub struct Events {
    /// Sorted by time, then by order of entry, so that equal times do not depend on the heap.
    heap: BinaryHeap<Reverse<(u64, u64, Event, u32)>>,
    entered: u64,
}

impl Events {
    pub fn push(&mut self, at: u64, event: Event, generation: u32) {
        self.entered += 1;
        self.heap.push(Reverse((at, self.entered, event, generation)));
    }

    pub fn pop(&mut self) -> Option<(u64, Event, u32)> {
        self.heap.pop().map(|Reverse((at, _, event, generation))| (at, event, generation))
    }
}
