//! Spin locks of a guest: the holder, and the waiters.

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// First come, first served; all waiters spin on one word
    Ticket,
    /// Test and test-and-set: any running waiter may take it
    Ttas,
    /// First come, first served; each waiter spins on its own word (MCS)
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

    /// Take the lock, or join the waiters. Returns whether the lock was taken.
    pub fn acquire(&mut self, id: usize) -> bool {
        assert!(
            self.holder != Some(id) && !self.waiters.contains(&id),
            "{id} has or awaits the lock"
        );
        if self.holder.is_none() {
            // A ticket or queue lock with waiters is never free.
            self.holder = Some(id);
            return true;
        }
        self.waiters.push_back(id);
        false
    }

    /// A waiter reads the lock's word. Returns whether it holds the lock now.
    pub fn look(&mut self, id: usize) -> bool {
        if self.holder.is_none() {
            self.waiters.retain(|&w| w != id);
            self.holder = Some(id);
        }
        self.holder == Some(id)
    }

    /// Release the lock. A ticket or queue lock passes to the first waiter, whether it runs or not;
    /// returns that waiter. A TTAS lock becomes free: the caller calls `look` for a running waiter.
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
        assert!(lock.acquire(0), "a newcomer may take the lock like a waiter");
    }

    proptest! {
        /// acquire and release assert that only the holder releases, and that no vCPU takes twice.
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
