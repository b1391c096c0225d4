//! What happens when. An event that has been overtaken is not removed: its generation is old, and
//! it is skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The next thing to happen on a physical CPU
    Cpu(usize),
    /// A sleeping vCPU's timer or interrupt
    Wake(usize),
    /// A physical CPU looks whether others have more to do
    Balance(usize),
    /// Counting begins
    Warm,
    /// The guests turn to another workload
    Change(usize),
    /// A point of the path over time
    Sample,
}

#[derive(Default)]
pub struct Events {
    /// Time, then order of entry, so that equal times do not depend on the heap.
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
