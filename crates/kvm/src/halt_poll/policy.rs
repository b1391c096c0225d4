//! Choose the longest poll: a pure function of the lengths of recent halts, with hysteresis.
//! docs/operate/kvm-halt-poll.md.

use crate::observe::counts::{BUCKETS, Histogram, bound};

/// ns. No wake-up arrives within a shorter poll.
const SHORTEST: u64 = 8_000;

/// Minimum weight of halts for a decision.
const ENOUGH: f64 = 100.0;

/// Minimum advantage of another window, as a share of what the current one saves or costs.
const MARGIN: f64 = 0.1;

/// Number of consecutive intervals in which another window must have this advantage.
const CONFIRM: u32 = 3;

#[derive(Clone, Debug)]
pub struct Policy {
    /// Longest window to choose, in ns.
    max: u64,
    /// CPU time that a wake-up within the poll is worth, in ns.
    worth: u64,
    /// Weight of the halts in each bucket. It halves with each interval.
    weights: [f64; BUCKETS],
    /// Number of consecutive intervals in which another window was better.
    better_for: u32,
}

/// Effect of a window on halts of known lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Share of the halts that end within the window.
    pub hits: f64,
    /// ns polled for halts that end within the window, and for longer ones.
    pub hit_ns: f64,
    pub miss_ns: f64,
    /// ns saved: the worth of the hits minus all polling. Negative if polling costs more.
    pub saved: f64,
}

/// Estimate the effect of a window. halts: weight of the halts in each bucket of bpf/kvm.h. window,
/// worth: in ns.
pub fn estimate(halts: &[f64; BUCKETS], window: u64, worth: u64) -> Estimate {
    let (mut hits, mut all, mut hit_ns, mut miss_ns) = (0.0, 0.0, 0.0, 0.0);
    for (bucket, &n) in halts.iter().enumerate() {
        all += n;
        if bound(bucket) <= window {
            let low = if bucket == 0 { 0 } else { bound(bucket - 1) };
            hits += n;
            hit_ns += n * (low + bound(bucket)) as f64 / 2.0;
        } else {
            miss_ns += n * window as f64;
        }
    }
    let share = if all > 0.0 { hits / all } else { 0.0 };
    Estimate { hits: share, hit_ns, miss_ns, saved: hits * worth as f64 - hit_ns - miss_ns }
}

impl Policy {
    pub fn new(max: u64, worth: u64) -> Policy {
        Policy { max, worth, weights: [0.0; BUCKETS], better_for: 0 }
    }

    /// End an interval with these halts. Returns the next window, which may be `current`.
    pub fn interval(&mut self, current: u64, halts: &Histogram) -> u64 {
        for (weight, &n) in self.weights.iter_mut().zip(halts) {
            *weight = *weight / 2.0 + n as f64;
        }
        let all: f64 = self.weights.iter().sum();
        if all < ENOUGH {
            self.better_for = 0;
            // The current window may exceed the maximum.
            return current.min(self.max);
        }
        let best = self.best();
        let saved = |window| estimate(&self.weights, window, self.worth).saved;
        let (now, then) = (saved(current.min(self.max)), saved(best));
        // If both save almost nothing, a change must gain a twentieth of the worth of all halts.
        let least = (MARGIN * now.abs()).max(all * self.worth as f64 / 20.0);
        if current > self.max {
            return best;
        }
        self.better_for = if then > now + least { self.better_for + 1 } else { 0 };
        if self.better_for < CONFIRM {
            return current;
        }
        self.better_for = 0;
        best
    }

    /// Returns the window that saves most; of equal ones, the shortest.
    fn best(&self) -> u64 {
        let windows = (0..BUCKETS - 1).map(bound).filter(|w| (SHORTEST..=self.max).contains(w));
        let mut best = (0, 0.0);
        for window in windows {
            let saved = estimate(&self.weights, window, self.worth).saved;
            if saved > best.1 {
                best = (window, saved);
            }
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::counts::bucket;
    use proptest::prelude::*;

    const WORTH: u64 = 50_000;

    /// A histogram of n halts for each (ns, n).
    fn halts(of: &[(u64, u64)]) -> Histogram {
        let mut histogram = [0; BUCKETS];
        for &(ns, n) in of {
            histogram[bucket(ns)] += n;
        }
        histogram
    }

    fn settle(policy: &mut Policy, mut window: u64, histogram: &Histogram) -> u64 {
        for _ in 0..20 {
            window = policy.interval(window, histogram);
        }
        window
    }

    #[test]
    fn short_halts_are_polled_for() {
        let mut policy = Policy::new(500_000, WORTH);
        let window = settle(&mut policy, 0, &halts(&[(20_000, 1000), (10_000_000, 10)]));
        assert!((20_000..50_000).contains(&window), "{window}");
    }

    #[test]
    fn long_ones_are_not() {
        let mut policy = Policy::new(500_000, WORTH);
        assert_eq!(settle(&mut policy, 200_000, &halts(&[(10_000_000, 1000)])), 0);
    }

    #[test]
    fn halts_longer_than_they_are_worth_are_not() {
        let mut policy = Policy::new(500_000, WORTH);
        assert_eq!(settle(&mut policy, 200_000, &halts(&[(150_000, 1000)])), 0);
        let mut policy = Policy::new(500_000, 400_000);
        assert!((150_000..250_000).contains(&settle(&mut policy, 0, &halts(&[(150_000, 1000)]))));
    }

    #[test]
    fn a_mixture_is_weighed() {
        // Of 100 halts, the 40 short ones save 40 * (50 - 20) us, and the 60 long ones cost 60 * 24
        // us: polling does not pay.
        let mut policy = Policy::new(500_000, WORTH);
        assert_eq!(settle(&mut policy, 24_000, &halts(&[(20_000, 400), (5_000_000, 600)])), 0);
        let mut policy = Policy::new(500_000, WORTH);
        assert!(settle(&mut policy, 0, &halts(&[(20_000, 600), (5_000_000, 400)])) > 20_000);
    }

    #[test]
    fn one_interval_changes_nothing() {
        let mut policy = Policy::new(500_000, WORTH);
        let (short, long) = (halts(&[(20_000, 1000)]), halts(&[(5_000_000, 1000)]));
        let window = settle(&mut policy, 0, &short);
        assert_eq!(policy.interval(window, &long), window);
        assert_eq!(policy.interval(window, &short), window);
        assert_eq!(settle(&mut policy, window, &short), window);
    }

    #[test]
    fn few_halts_change_nothing() {
        let mut policy = Policy::new(500_000, WORTH);
        assert_eq!(settle(&mut policy, 200_000, &halts(&[(5_000_000, 20)])), 200_000);
        assert_eq!(settle(&mut Policy::new(100_000, WORTH), 200_000, &halts(&[])), 100_000);
    }

    proptest! {
        #[test]
        fn stays_within_its_bounds_and_settles(lengths in prop::collection::vec((1000u64..100_000_000, 0u64..10_000), 0..10),
                                               max in 0u64..10_000_000, start in 0u64..10_000_000, worth in 1000u64..1_000_000) {
            let mut policy = Policy::new(max, worth);
            let histogram = halts(&lengths);
            let window = settle(&mut policy, start, &histogram);
            prop_assert!(window <= max);
            // The same halts change nothing more.
            prop_assert_eq!(settle(&mut policy, window, &histogram), window);
        }

        #[test]
        fn never_worse_than_no_poll(lengths in prop::collection::vec((1000u64..100_000_000, 1u64..10_000), 1..10), start in 0u64..1_000_000) {
            let mut policy = Policy::new(1_000_000, WORTH);
            let histogram = halts(&lengths);
            let window = settle(&mut policy, start, &histogram);
            let all: u64 = histogram.iter().sum();
            if all >= 100 {
                let saved = estimate(&histogram.map(|n| n as f64), window, WORTH).saved;
                prop_assert!(saved >= -(all as f64) * WORTH as f64 / 9.0, "{window} {saved}");
            }
        }
    }
}
