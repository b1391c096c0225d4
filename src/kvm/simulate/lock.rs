//! Spin locks of a guest: who holds them, and who is next.

use std::collections::VecDeque;

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// First come, first served; all spin on one word
    Ticket,
    /// Test and test-and-set: any one that runs may take it
    Ttas,
    /// First come, first served; each spins on a word of its own (MCS)
    Queue,
}

pub struct Lock {
    pub kind: Kind,
    holder: Option<usize>,
    waiters: VecDeque<usize>,
}

impl Lock {
    pub fn new(kind: Kind) -> Lock {
        Lock { kind, holder: None, waiters: VecDeque::new() }
    }

    /// Takes the lock, or a place among those that wait. True if it was free.
    pub fn acquire(&mut self, id: usize) -> bool {
        assert!(
            self.holder != Some(id) && !self.waiters.contains(&id),
            "{id} has or awaits the lock"
        );
        if self.holder.is_none() {
            // With tickets and queues a lock that is awaited is never free.
            self.holder = Some(id);
            return true;
        }
        self.waiters.push_back(id);
        false
    }

    /// What one that waits finds when it looks. True if it holds the lock now.
    pub fn look(&mut self, id: usize) -> bool {
        if self.holder.is_none() {
            self.waiters.retain(|&w| w != id);
            self.holder = Some(id);
        }
        self.holder == Some(id)
    }

    /// With tickets and queues the first one holds it from now on, whether it runs or not. A TTAS
    /// lock is free: the caller has one of the waiters that run `look`.
    pub fn release(&mut self, id: usize) -> Option<usize> {
        assert_eq!(self.holder, Some(id), "released by one that does not hold it");
        self.holder = if self.kind == Kind::Ttas { None } else { self.waiters.pop_front() };
        self.holder
    }

    pub fn waiters(&self) -> impl Iterator<Item = usize> {
        self.waiters.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tickets_are_served_in_order() {
        for kind in [Kind::Ticket, Kind::Queue] {
            let mut lock = Lock::new(kind);
            assert!(lock.acquire(7));
            for id in [3, 9, 1] {
                assert!(!lock.acquire(id));
            }
            assert_eq!(lock.release(7), Some(3));
            assert!(!lock.look(9), "not its turn, though the holder may not run");
            assert!(lock.look(3));
            assert!(!lock.acquire(7), "a place at the end");
            assert_eq!(lock.release(3), Some(9));
            assert_eq!(lock.release(9), Some(1));
            assert_eq!(lock.release(1), Some(7));
            assert_eq!(lock.release(7), None);
        }
    }

    #[test]
    fn a_ttas_lock_goes_to_whoever_looks() {
        let mut lock = Lock::new(Kind::Ttas);
        assert!(lock.acquire(0));
        assert!(!lock.acquire(1) && !lock.acquire(2));
        assert_eq!(lock.release(0), None);
        assert!(lock.look(2));
        assert!(!lock.look(1));
        lock.release(2);
        assert!(lock.acquire(0), "one that comes by is as good as one that waits");
    }

    proptest! {
        /// acquire and release assert that nobody holds it twice or gives away what another has.
        #[test]
        fn one_holder_at_a_time(kind in 0..3, steps in prop::collection::vec(0usize..6, 1..300)) {
            let mut lock = Lock::new([Kind::Ticket, Kind::Ttas, Kind::Queue][kind as usize]);
            let mut waits = [false; 6];
            let mut holds = [false; 6];
            for id in steps {
                if holds[id] {
                    lock.release(id);
                    holds[id] = false;
                } else if waits[id] {
                    holds[id] = lock.look(id);
                    waits[id] = !holds[id];
                } else {
                    holds[id] = lock.acquire(id);
                    waits[id] = !holds[id];
                }
                prop_assert!(holds.iter().filter(|&&h| h).count() <= 1);
            }
        }
    }
}
