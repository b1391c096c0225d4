//! The APPLE controller, which the runtime uses too: runtime/policy/apple.c, linked into this
//! binary. runtime/policy/apple.h describes its function, units and rules.

/// `struct apple_limits`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub lower: u32,
    pub upper: u32,
    pub step: u32,
    pub step_permille: u32,
    pub margin_permille: u32,
}

impl Limits {
    /// The paper's, in TSC cycles: a fixed step, and no margin.
    pub const PAPER: Limits =
        Limits { lower: 4096, upper: 32_768, step: 1024, step_permille: 0, margin_permille: 0 };
    /// The paper's first threshold.
    pub const PAPERS_START: u32 = 8192;
}

/// `struct apple`
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Apple {
    limits: Limits,
    base: u32,
    trial: u32,
    threshold: [u32; 3],
    wasted: [u64; 3],
    time: [u64; 3],
    rounds: u32,
    moves: u32,
}

unsafe extern "C" {
    fn apple_init(a: *mut Apple, limits: *const Limits, threshold: u32);
    fn apple_epoch(a: *mut Apple, wasted: u64, time: u64) -> u32;
}

impl Apple {
    /// Start at `threshold`, clamped to the limits. A step of 0 keeps it for ever.
    ///
    /// # Panics
    /// If the lower limit is above the upper one.
    pub fn new(limits: Limits, threshold: u32) -> Apple {
        assert!(limits.lower <= limits.upper, "{} > {}", limits.lower, limits.upper);
        let mut apple = Apple::default();
        // SAFETY: both point to whole structures with the layout of apple.h, which are accessed
        // during this call only.
        unsafe { apple_init(&mut apple, &limits, threshold) };
        apple
    }

    /// Return the threshold to use now.
    pub fn threshold(&self) -> u32 {
        self.threshold[self.trial as usize]
    }

    /// Return T, the centre of the current round's thresholds.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// End an epoch, in which `wasted` of `time` was wasted. Returns the next epoch's threshold.
    pub fn epoch(&mut self, wasted: u64, time: u64) -> u32 {
        // SAFETY: as in `new`; apple_init made the structure, so `trial` is within its bounds.
        unsafe { apple_epoch(self, wasted, time) }
    }

    /// Return the number of rounds of epochs so far, and how many of them changed T.
    pub fn rounds(&self) -> (u32, u32) {
        (self.rounds, self.moves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Return a cost function with its minimum at `best`, which grows on both sides with
    /// `steepness`. Costs are inefficiencies of a billion, with noise of `noise` permille.
    fn convex(
        best: u32,
        steepness: f64,
        noise: f64,
        random: &mut fastrand::Rng,
    ) -> impl FnMut(u32) -> u64 + use<> {
        let mut random = random.fork();
        move |t| {
            let distance = (f64::from(t) - f64::from(best)).abs();
            let cost = 1e8 + steepness * distance * 1e4;
            (cost * (1.0 + noise / 1000.0 * (random.f64() * 2.0 - 1.0))) as u64
        }
    }

    fn paper(lower: u32, upper: u32, step: u32) -> Limits {
        Limits { lower, upper, step, ..Limits::default() }
    }

    /// Run `epochs` epochs. Returns the mean of T.
    fn run(apple: &mut Apple, epochs: u32, mut cost: impl FnMut(u32) -> u64) -> f64 {
        let mut sum = 0.0;
        for _ in 0..epochs {
            sum += f64::from(apple.base());
            apple.epoch(cost(apple.threshold()), 1_000_000_000);
        }
        sum / f64::from(epochs)
    }

    proptest! {
        #[test]
        fn stays_within_its_limits(lower in 0u32.., room in 0u32.., start in 0u32.., step in 0u32.., permille in 0u32..5000,
                                   margin in 0u32..2000, epochs in prop::collection::vec((0u64.., 0u64..), 1..100)) {
            let upper = lower.saturating_add(room);
            let limits = Limits { lower, upper, step, step_permille: permille, margin_permille: margin };
            let mut apple = Apple::new(limits, start);
            for (wasted, time) in epochs {
                prop_assert!((lower..=upper).contains(&apple.threshold()));
                prop_assert!((lower..=upper).contains(&apple.base()));
                let next = apple.epoch(wasted, time);
                prop_assert_eq!(next, apple.threshold());
            }
        }

        #[test]
        fn converges_on_convex_costs(start in 0u32..=100_000, best in 0u32..=100_000, steepness in 0.5f64..20.0,
                                     seed in 0u64..) {
            let step = 1000;
            let mut random = fastrand::Rng::with_seed(seed);
            let mut apple = Apple::new(paper(0, 100_000, step), start);
            // One step for each round of three epochs, over at most the whole range.
            run(&mut apple, 310, convex(best, steepness, 0.0, &mut random));
            let mean = run(&mut apple, 60, convex(best, steepness, 0.0, &mut random));
            prop_assert!((mean - f64::from(best)).abs() <= f64::from(step), "{mean} for {best}");
        }

        /// With noise of 0.5 %, the mean cost is at most 2 % above the optimum, plus that of a
        /// step.
        #[test]
        fn converges_through_noise(start in 0u32..=100_000, best in 0u32..=100_000, steepness in 0.5f64..20.0, seed in 0u64..) {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut apple = Apple::new(paper(0, 100_000, 4000), start);
            run(&mut apple, 300, convex(best, steepness, 5.0, &mut random));
            let mut noisy = convex(best, steepness, 5.0, &mut random);
            let mut exact = convex(best, steepness, 0.0, &mut random);
            let (mut sum, epochs) = (0.0, 300);
            for _ in 0..epochs {
                sum += exact(apple.base()) as f64;
                apple.epoch(noisy(apple.threshold()), 1_000_000_000);
            }
            let least = exact(best) as f64;
            // Noise may keep T one step of 4000 from the optimum.
            let near = steepness * 4000.0 * 1e4;
            prop_assert!(sum / f64::from(epochs) <= least * 1.02 + near, "{} {least}", sum / f64::from(epochs));
        }

        #[test]
        fn follows_a_moving_optimum(first in 0u32..=100_000, second in 0u32..=100_000, seed in 0u64..) {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut apple = Apple::new(paper(0, 100_000, 1000), 50_000);
            for best in [first, second, first] {
                run(&mut apple, 310, convex(best, 5.0, 0.0, &mut random));
                let mean = run(&mut apple, 60, convex(best, 5.0, 0.0, &mut random));
                prop_assert!((mean - f64::from(best)).abs() <= 1000.0, "{mean} for {best}");
            }
        }

        #[test]
        fn never_leaves_when_flat(lower in 0u32..1000, room in 0u32..1_000_000, start in 0u32..2_000_000, step in 0u32..10_000,
                                  permille in 0u32..1000, wasted in 0u64..1 << 40, time in 1u64..1 << 40) {
            let limits = Limits { lower, upper: lower + room, step, step_permille: permille, margin_permille: 0 };
            let mut apple = Apple::new(limits, start);
            let base = apple.base();
            // The same inefficiency, in epochs of other lengths.
            for i in 0..100u64 {
                apple.epoch(wasted * (i % 7 + 1), time * (i % 7 + 1));
                prop_assert_eq!(apple.base(), base);
            }
            prop_assert_eq!(apple.rounds().1, 0);
        }

        /// Noise below the margin does not move T.
        #[test]
        fn margin_holds_against_noise(start in 0u32..=100_000, seed in 0u64..) {
            let limits = Limits { margin_permille: 21, ..paper(0, 100_000, 1000) };
            let mut random = fastrand::Rng::with_seed(seed);
            let mut apple = Apple::new(limits, start);
            run(&mut apple, 300, |_| 100_000_000 + random.u64(0..=2_000_000));
            prop_assert_eq!(apple.base(), start);
        }
    }

    #[test]
    fn relative_steps_cross_a_wide_range_soon() {
        let limits = Limits { step_permille: 250, ..paper(100, 10_000_000, 100) };
        let mut apple = Apple::new(limits, 1000);
        let mut random = fastrand::Rng::with_seed(1);
        run(&mut apple, 3 * 45, convex(5_000_000, 0.01, 0.0, &mut random));
        assert!((4_000_000..6_300_000).contains(&apple.base()), "{}", apple.base());
    }

    #[test]
    fn at_a_bound_there_are_two_trials() {
        let mut apple = Apple::new(paper(10, 100, 30), 0);
        assert_eq!(apple.threshold(), 10);
        assert_eq!(apple.epoch(5, 100), 40);
        assert_eq!(apple.epoch(4, 100), 40, "less wasted above: T moved");
        assert_eq!(apple.rounds(), (1, 1));
        assert_eq!(apple.epoch(4, 100), 70);
        assert_eq!(apple.epoch(9, 100), 10);
    }

    #[test]
    fn an_epoch_without_time_is_done_again() {
        let mut apple = Apple::new(paper(0, 100, 10), 50);
        assert_eq!(apple.epoch(1, 0), 50);
        assert_eq!(apple.epoch(1, 10), 60);
    }
}
