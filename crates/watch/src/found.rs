//! Estimate from samples how much CPU time a process lost in loops that wait. Pure.

use std::collections::HashMap;

/// Minimum number of judged samples for an estimate.
const ENOUGH: f64 = 5.0;

/// Two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.96;

/// Result of judging one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The thread waits, in the loop with this lowest instruction.
    Waits(u64),
    Works,
    Undecided,
}

/// Position of a sample: instruction, and stack pointer within its page. Threads that were called
/// the same way have the same one, because their stacks begin at the same offset of a page.
pub type Position = (u64, u64);

/// Samples of one process in one slot of time.
#[derive(Default)]
pub struct Slot {
    /// All samples, judged or not.
    pub taken: u32,
    pub judged: Vec<(Position, Judged)>,
}

/// Number of samples in user code by verdict. A number may be fractional, because the judged
/// samples of a slot stand for all of its samples.
#[derive(Clone, Debug, Default)]
pub struct Found {
    works: f64,
    waits: f64,
    undecided: f64,
    /// Sum of the squares of the weights of judged samples.
    squares: f64,
    /// Number of judged samples.
    judged: u32,
    at: HashMap<Position, At>,
}

/// Samples at one position.
#[derive(Clone, Debug, Default)]
struct At {
    works: f64,
    undecided: f64,
    /// Samples in loops that wait, by the address of the loop's first instruction.
    loops: HashMap<u64, f64>,
}

impl At {
    fn waits(&self) -> f64 {
        self.loops.values().sum()
    }

    /// Return the factor by which undecided samples raise the number of waits. A sample stays
    /// undecided if the wait ended before its verdict, so it counts like the decided samples of
    /// its position.
    fn factor(&self) -> f64 {
        let decided = self.waits() + self.works;
        if decided > 0.0 { 1.0 + self.undecided / decided } else { 1.0 }
    }
}

/// Shares of the CPU time in user code, from 0 to 1. Their sum is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    pub waits: f64,
    pub works: f64,
    /// Neither could be proven.
    pub undecided: f64,
    /// Half width of the 95 % confidence interval of `waits`.
    pub error: f64,
}

impl Found {
    /// Add the samples of a slot. Returns false if none was judged: the caller adds this slot's
    /// number of samples to the next one.
    pub fn add_slot(&mut self, slot: &Slot) -> bool {
        if slot.judged.is_empty() {
            return false;
        }
        let weight = f64::from(slot.taken) / slot.judged.len() as f64;
        for &(position, judged) in &slot.judged {
            let at = self.at.entry(position).or_default();
            let (total, here) = match judged {
                Judged::Waits(head) => (&mut self.waits, at.loops.entry(head).or_default()),
                Judged::Works => (&mut self.works, &mut at.works),
                Judged::Undecided => (&mut self.undecided, &mut at.undecided),
            };
            *total += weight;
            *here += weight;
            self.squares += weight * weight;
            self.judged += 1;
        }
        true
    }

    pub fn add(&mut self, other: &Found) {
        self.works += other.works;
        self.waits += other.waits;
        self.undecided += other.undecided;
        self.squares += other.squares;
        self.judged += other.judged;
        for (position, of) in &other.at {
            let at = self.at.entry(*position).or_default();
            at.works += of.works;
            at.undecided += of.undecided;
            for (head, n) in &of.loops {
                *at.loops.entry(*head).or_default() += n;
            }
        }
    }

    fn total(&self) -> f64 {
        self.waits + self.works + self.undecided
    }

    /// Return the shares. None: too few samples were judged.
    pub fn shares(&self) -> Option<Shares> {
        if f64::from(self.judged) < ENOUGH {
            return None;
        }
        let total = self.total();
        let (mut waits, mut works) = (0.0, 0.0);
        for at in self.at.values() {
            waits += at.waits() * at.factor();
            works += at.works * at.factor();
        }
        let (waits, works) = (waits / total, works / total);
        // Samples with unequal weights tell as much as this number of equal ones.
        let n = total * total / self.squares;
        Some(Shares {
            waits,
            works,
            undecided: (1.0 - waits - works).max(0.0),
            error: half_width(waits.min(1.0), n),
        })
    }

    /// Return the loops that wait, by the address of their first instruction, with their shares of
    /// the CPU time in user code.
    pub fn loops(&self) -> HashMap<u64, f64> {
        let mut loops: HashMap<u64, f64> = HashMap::new();
        for at in self.at.values() {
            for (head, n) in &at.loops {
                *loops.entry(*head).or_default() += n * at.factor() / self.total();
            }
        }
        loops
    }
}

/// Return the distance from `p` to the farther end of Wilson's confidence interval.
fn half_width(p: f64, n: f64) -> f64 {
    let z2 = Z * Z;
    let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    (middle - p).abs() + half
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(taken: u32, judged: &[(u64, Judged)]) -> Slot {
        Slot { taken, judged: judged.iter().map(|&(ip, judged)| ((ip, 0), judged)).collect() }
    }

    fn found(slots: &[Slot]) -> Found {
        let mut found = Found::default();
        assert!(slots.iter().all(|slot| found.add_slot(slot)));
        found
    }

    const WAITS: Judged = Judged::Waits(8);

    #[test]
    fn too_few() {
        assert_eq!(found(&[slot(400, &[(1, WAITS); 4])]).shares(), None);
        assert!(!Found::default().add_slot(&slot(9, &[])));
    }

    #[test]
    fn judged_samples_stand_for_all_of_their_slot() {
        // Waits are quick to judge, so more of them are judged. Both phases took equally long.
        let found = found(&[
            slot(20, &[(1, WAITS); 20]),
            slot(20, &[(2, Judged::Works), (2, Judged::Works)]),
        ]);
        let shares = found.shares().expect("enough");
        assert_eq!((shares.waits, shares.works, shares.undecided), (0.5, 0.5, 0.0));
        assert_eq!(found.loops(), HashMap::from([(8, 0.5)]));
    }

    #[test]
    fn undecided_samples_count_like_the_decided_ones_there() {
        let mut found = found(&[slot(
            10,
            &[
                (1, WAITS),
                (1, WAITS),
                (1, Judged::Undecided),
                (1, Judged::Undecided),
                (2, Judged::Works),
                (2, Judged::Works),
                (3, Judged::Undecided),
                (3, Judged::Undecided),
                (2, Judged::Works),
                (2, Judged::Works),
            ],
        )]);
        let shares = found.shares().expect("enough");
        let rounded = |x: f64| (x * 1e6).round() / 1e6;
        assert_eq!(
            [shares.waits, shares.works, shares.undecided].map(rounded),
            [0.4, 0.4, 0.2],
            "{shares:?}"
        );
        assert_eq!(rounded(found.loops()[&8]), 0.4);
        found.add(&found.clone());
        let twice = found.shares().expect("enough");
        assert_eq!(rounded(twice.waits), 0.4);
        assert!(twice.error < shares.error);
    }

    #[test]
    fn errors() {
        let all = |n: u32| {
            let error = found(&[slot(n, &vec![(1, WAITS); n as usize])]).shares();
            error.expect("enough").error
        };
        assert!((0.02..0.03).contains(&all(150)), "{}", all(150));
        assert!((0.4..0.5).contains(&all(5)), "{}", all(5));
        // One judged sample in ten says as much as if no others had been taken.
        let few = found(&[slot(1500, &vec![(1, WAITS); 150])]).shares().expect("enough");
        assert!((few.error - all(150)).abs() < 1e-9);
    }
}
