//! The run queue of one physical CPU: EEVDF or CFS as in Linux (kernel/sched/fair.c), for entities
//! of equal weight. Times are in cycles.

use clap::ValueEnum;
use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Linux 6.18: run the earliest deadline among those that had at most their share. A vCPU that
    /// yields loses the rest of its slice; the one that it yields to runs only while that is fair
    #[default]
    Eevdf,
    /// Linux before 6.6: run the vCPU that had the least. A vCPU that yields is passed over once
    /// and loses nothing; the one that it yields to runs while it is less than 4 ms ahead
    Cfs,
}

/// A run queue's data of a vCPU's thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entity {
    pub vruntime: i64,
    pub deadline: i64,
    /// Lag behind the average when it left its queue; it keeps this lag when it is enqueued again.
    lag: i64,
}

#[derive(Default)]
pub struct RunQueue {
    pub current: Option<usize>,
    pub queued: Vec<usize>,
    /// The "next buddy": the target of a directed yield.
    next: Option<usize>,
    /// CFS's "skip buddy": the thread that has just yielded.
    skip: Option<usize>,
    rule: Rule,
    slice: i64,
    /// The average when the queue was last not empty.
    zero: i64,
}

impl RunQueue {
    pub fn new(slice: u64, rule: Rule) -> RunQueue {
        RunQueue { rule, slice: slice as i64, ..RunQueue::default() }
    }

    /// nr_running: the queued threads and the current one.
    pub fn len(&self) -> usize {
        self.queued.len() + usize::from(self.current.is_some())
    }

    fn average(&self, entities: &[Entity]) -> i64 {
        let mut all = self.queued.iter().chain(&self.current);
        let Some(&first) = all.next() else { return self.zero };
        // Relative to one of them, so that the sum does not overflow.
        let base = entities[first].vruntime;
        base + all.map(|&id| entities[id].vruntime - base).sum::<i64>() / self.len() as i64
    }

    /// Returns whether a thread has had no more than its share.
    fn is_eligible(&self, entities: &[Entity], id: usize) -> bool {
        let base = entities[id].vruntime;
        let others: i64 =
            self.queued.iter().chain(&self.current).map(|&o| entities[o].vruntime - base).sum();
        others >= 0
    }

    /// Enqueue a thread that is in no queue. It keeps the lag with which it left its last queue.
    pub fn enqueue(&mut self, entities: &mut [Entity], id: usize) {
        let average = self.average(entities);
        let others = self.len() as i64;
        // The new thread moves the average by a part of its lag: place it farther to compensate.
        let lag = if others > 0 { entities[id].lag * (others + 1) / others } else { 0 };
        entities[id].vruntime = average - lag;
        entities[id].deadline = entities[id].vruntime + self.slice;
        self.queued.push(id);
    }

    /// Remove a thread that waits here, to enqueue it elsewhere.
    pub fn dequeue(&mut self, entities: &mut [Entity], id: usize) {
        self.leave(entities, id);
        self.queued.retain(|&q| q != id);
    }

    /// Remove the current thread, which sleeps.
    pub fn block(&mut self, entities: &mut [Entity]) {
        if let Some(id) = self.current {
            self.leave(entities, id);
            self.current = None;
        }
    }

    fn leave(&mut self, entities: &mut [Entity], id: usize) {
        self.zero = self.average(entities);
        let most = 2 * self.slice;
        entities[id].lag = (self.zero - entities[id].vruntime).clamp(-most, most);
        self.next = self.next.filter(|&n| n != id);
    }

    /// Account `time` to the current thread. Returns whether its slice has ended.
    pub fn ran(&mut self, entities: &mut [Entity], time: u64) -> bool {
        let Some(id) = self.current else { return false };
        let entity = &mut entities[id];
        entity.vruntime += time as i64;
        let is_over = entity.vruntime >= entity.deadline;
        if is_over {
            entity.deadline = entity.vruntime + self.slice;
        }
        is_over
    }

    /// Time left of the current thread's slice.
    pub fn left(&self, entities: &[Entity]) -> u64 {
        self.current.map_or(0, |id| (entities[id].deadline - entities[id].vruntime).max(0) as u64)
    }

    /// schedule(): put the current thread back, and take the next one. A buddy is preferred only
    /// while that is fair.
    pub fn pick(&mut self, entities: &mut [Entity]) -> Option<usize> {
        self.queued.extend(self.current.take());
        let id = match self.rule {
            Rule::Eevdf => {
                let buddy = self.next.filter(|&id| self.is_eligible(entities, id));
                buddy.or_else(|| self.earliest(entities))?
            }
            Rule::Cfs => {
                let id = self.leftmost(entities)?;
                entities[id].deadline = entities[id].vruntime + self.slice;
                id
            }
        };
        self.queued.retain(|&q| q != id);
        self.current = Some(id);
        self.skip = None;
        self.next = self.next.filter(|&n| n != id);
        Some(id)
    }

    /// CFS's wakeup_granularity, the unfairness that a buddy may cause: 1 ms, and 4 ms on hosts
    /// with 8 or more CPUs.
    fn granularity(&self) -> i64 {
        self.slice * 4 / 3
    }

    /// The thread with the least virtual runtime, unless a buddy is preferred.
    fn leftmost(&self, entities: &[Entity]) -> Option<usize> {
        let time = |id: usize| entities[id].vruntime;
        let first = self.queued.iter().copied().min_by_key(|&id| time(id))?;
        let near = |&id: &usize| time(id) - time(first) < self.granularity();
        let others = self.queued.iter().copied().filter(|&id| id != first);
        let second = others.min_by_key(|&id| time(id)).filter(near);
        let skipping = second.filter(|_| self.skip == Some(first));
        Some(self.next.filter(near).or(skipping).unwrap_or(first))
    }

    /// The eligible thread with the earliest deadline.
    fn earliest(&self, entities: &[Entity]) -> Option<usize> {
        let average = self.average(entities);
        let all = || self.queued.iter().chain(&self.current).copied();
        let eligible = all().filter(|&id| entities[id].vruntime <= average);
        // The average is rounded: with equal runtimes, none may be below it.
        eligible
            .min_by_key(|&id| entities[id].deadline)
            .or_else(|| all().min_by_key(|&id| entities[id].vruntime))
    }

    /// Returns whether a new thread runs at once. With EEVDF, the current one must have had more
    /// than its share, and the new one must be first. With CFS, the current one must be ahead by
    /// more than the granularity.
    pub fn preempts(&self, entities: &[Entity], id: usize) -> bool {
        let Some(current) = self.current else { return true };
        if self.rule == Rule::Cfs {
            return entities[current].vruntime - entities[id].vruntime > self.granularity();
        }
        !self.is_eligible(entities, current) && self.earliest(entities) == Some(id)
    }

    /// The target's half of yield_to(): `id`, which is queued here, is to run next.
    pub fn prefer(&mut self, id: usize) {
        self.next = Some(id);
    }

    /// The yielder's half of yield_to(), on its own queue. With EEVDF the yielder forfeits the rest
    /// of its slice (since Linux 6.18), and goes behind the others.
    pub fn yield_current(&mut self, entities: &mut [Entity]) {
        let Some(id) = self.current.filter(|_| self.len() > 1) else { return };
        self.next = self.next.filter(|&n| n != id);
        if self.rule == Rule::Cfs {
            self.skip = Some(id);
            return;
        }
        if self.is_eligible(entities, id) {
            entities[id].vruntime = entities[id].deadline;
        }
        entities[id].deadline = entities[id].vruntime + self.slice;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(n: usize) -> (RunQueue, Vec<Entity>) {
        queue_by(Rule::Eevdf, n)
    }

    fn queue_by(rule: Rule, n: usize) -> (RunQueue, Vec<Entity>) {
        let mut queue = RunQueue::new(100, rule);
        let mut entities = vec![Entity::default(); n];
        for id in 0..n {
            queue.enqueue(&mut entities, id);
        }
        (queue, entities)
    }

    #[test]
    fn shares_are_fair() {
        for rule in [Rule::Eevdf, Rule::Cfs] {
            let (mut queue, mut entities) = queue_by(rule, 3);
            let mut had = [0; 3];
            for i in 0..3000u64 {
                let id = queue.pick(&mut entities).unwrap();
                let time = 20 + i % 50;
                had[id] += time;
                queue.ran(&mut entities, time);
            }
            let (least, most) = (had.iter().min().unwrap(), had.iter().max().unwrap());
            assert!(most - least <= 300, "{rule:?}: {had:?}");
        }
    }

    #[test]
    fn cfs_passes_a_yielder_over_once_and_takes_nothing() {
        let (mut queue, mut entities) = queue_by(Rule::Cfs, 3);
        let first = queue.pick(&mut entities).unwrap();
        let before = entities[first].vruntime;
        queue.yield_current(&mut entities);
        assert_eq!(entities[first].vruntime, before);
        let second = queue.pick(&mut entities).unwrap();
        assert_ne!(second, first);
        queue.ran(&mut entities, 10);
        // Another thread yields to it while it is little ahead.
        assert_ne!(queue.pick(&mut entities), Some(second));
        queue.ran(&mut entities, 1);
        queue.prefer(second);
        queue.yield_current(&mut entities);
        assert_eq!(queue.pick(&mut entities), Some(second));
        // A yield to it has no effect once it is far ahead.
        queue.ran(&mut entities, 200);
        queue.prefer(second);
        assert_ne!(queue.pick(&mut entities), Some(second));
    }

    #[test]
    fn a_slice_ends() {
        let (mut queue, mut entities) = queue(2);
        let first = queue.pick(&mut entities).unwrap();
        assert_eq!(queue.left(&entities), 100);
        assert!(!queue.ran(&mut entities, 60));
        assert_eq!(queue.left(&entities), 40);
        assert!(queue.ran(&mut entities, 40));
        assert_ne!(queue.pick(&mut entities), Some(first));
    }

    #[test]
    fn the_preferred_one_is_next_while_that_is_fair() {
        let (mut queue, mut entities) = queue(4);
        queue.pick(&mut entities);
        queue.ran(&mut entities, 1);
        let wanted = *queue.queued.last().unwrap();
        queue.prefer(wanted);
        queue.yield_current(&mut entities);
        assert_eq!(queue.pick(&mut entities), Some(wanted));
        // The thread has run for much longer than the others: one of them is next.
        queue.ran(&mut entities, 50);
        queue.prefer(wanted);
        assert_ne!(queue.pick(&mut entities), Some(wanted));
    }

    #[test]
    fn who_yields_is_behind_the_others() {
        let (mut queue, mut entities) = queue(3);
        let first = queue.pick(&mut entities).unwrap();
        queue.ran(&mut entities, 1);
        queue.yield_current(&mut entities);
        for _ in 0..2 {
            let id = queue.pick(&mut entities).unwrap();
            assert_ne!(id, first);
            queue.ran(&mut entities, 60);
            queue.block(&mut entities);
        }
        assert_eq!(queue.pick(&mut entities), Some(first));
    }

    #[test]
    fn who_is_alone_yields_to_nobody() {
        let (mut queue, mut entities) = queue(1);
        queue.pick(&mut entities);
        let before = entities[0].deadline;
        queue.yield_current(&mut entities);
        assert_eq!(entities[0].deadline, before);
        assert_eq!(queue.pick(&mut entities), Some(0));
    }

    #[test]
    fn who_slept_comes_back_with_its_lag() {
        let (mut queue, mut entities) = queue(2);
        let first = queue.pick(&mut entities).unwrap();
        queue.ran(&mut entities, 50);
        queue.block(&mut entities);
        let other = queue.pick(&mut entities).unwrap();
        queue.ran(&mut entities, 10);
        queue.enqueue(&mut entities, first);
        assert!(
            entities[first].vruntime > entities[other].vruntime,
            "it had had more than its share"
        );
        assert!(!queue.preempts(&entities, first));
    }
}
