//! Caps by feedback (Rubio et al., Fig. 5). If a program that grows slows its neighbours, for
//! example by the memory bandwidth, it returns to its old number and tries again later. Pure: no
//! clock, no I/O; each call of `Feedback::period` is one period.

use std::collections::{BTreeMap, VecDeque};

use watch::activity::Id;

/// Periods averaged before and after a change.
const WINDOW: usize = 5;
/// Periods until a capped program may grow again. Each failure doubles them, up to `LONGEST_WAIT`.
const FIRST_WAIT: u32 = 20;
const LONGEST_WAIT: u32 = 20 << 7;

/// Progress of a program in one period.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub id: Id,
    /// Threads (slots) that it had.
    pub target: u32,
    /// Work per second, in the program's own unit. None: not reported, so a slowdown cannot be
    /// detected.
    pub rate: Option<f64>,
}

pub struct Feedback {
    /// Tolerated loss of a neighbour's rate, as a fraction.
    slowdown: f64,
    targets: BTreeMap<Id, u32>,
    /// Up to `WINDOW` rates of each program since any target changed.
    rates: BTreeMap<Id, VecDeque<f64>>,
    trial: Option<Trial>,
    caps: BTreeMap<Id, Cap>,
}

/// The growth of one program while nothing else changed.
struct Trial {
    id: Id,
    from: u32,
    /// Mean rates of the other programs before the growth.
    before: BTreeMap<Id, Mean>,
}

struct Cap {
    at: u32,
    /// The program may have one thread more, to test whether that harms others.
    trying: bool,
    /// Periods between two attempts.
    wait: u32,
    /// Periods until the next attempt, or until the present one ends.
    left: u32,
}

#[derive(Clone, Copy)]
struct Mean {
    value: f64,
    /// Variance of the mean.
    error: f64,
}

impl Feedback {
    /// `slowdown`: tolerated loss of a neighbour's rate, as a fraction; 0.05 is 5 %.
    pub fn new(slowdown: f64) -> Feedback {
        Feedback {
            slowdown,
            targets: BTreeMap::new(),
            rates: BTreeMap::new(),
            trial: None,
            caps: BTreeMap::new(),
        }
    }

    /// Process one period. Returns the maximum number of threads of each capped program in the next
    /// period; the other programs have no cap.
    pub fn period(&mut self, programs: &[Progress]) -> BTreeMap<Id, u32> {
        let targets: BTreeMap<Id, u32> = programs.iter().map(|p| (p.id, p.target)).collect();
        if targets != self.targets {
            self.changed(targets);
        } else {
            self.unchanged(programs);
        }
        // A cap is useless if no other program reports its rate.
        let tells = |than: Id| programs.iter().any(|p| p.id != than && p.rate.is_some());
        self.caps.retain(|&id, _| tells(id));
        self.caps.iter().map(|(&id, cap)| (id, cap.at + u32::from(cap.trying))).collect()
    }

    /// Handle a period in which targets changed. Ignores its rates: they mix those before and
    /// after.
    fn changed(&mut self, targets: BTreeMap<Id, u32>) {
        let same_programs = targets.keys().eq(self.targets.keys());
        let mut changes =
            targets.iter().filter(|(id, target)| self.targets.get(id) != Some(target));
        let grown = match (changes.next(), changes.next()) {
            (Some((&id, &to)), None) if same_programs => {
                Some((id, self.targets[&id])).filter(|&(_, from)| from < to)
            }
            _ => None,
        };
        self.trial = grown.map(|(id, from)| {
            let known =
                self.rates.iter().filter(|(other, rates)| **other != id && rates.len() == WINDOW);
            Trial { id, from, before: known.map(|(&other, rates)| (other, mean(rates))).collect() }
        });
        // After several changes at once the cause is unknown: end the attempt, and wait again.
        let trial = self.trial.as_ref().map(|t| t.id);
        self.caps.retain(|id, _| targets.contains_key(id));
        for (&id, cap) in &mut self.caps {
            if trial != Some(id) && cap.trying && targets[&id] > cap.at {
                cap.trying = false;
                cap.left = cap.wait;
            }
            if !same_programs {
                // With other neighbours, the earlier result says little.
                cap.left = cap.left.min(FIRST_WAIT);
            }
        }
        self.rates.clear();
        self.targets = targets;
    }

    fn unchanged(&mut self, programs: &[Progress]) {
        for program in programs {
            let Some(rate) = program.rate else { continue };
            let rates = self.rates.entry(program.id).or_default();
            rates.push_back(rate);
            if rates.len() > WINDOW {
                rates.pop_front();
            }
        }
        let measured = self.rates.values().any(|rates| rates.len() == WINDOW);
        match self.trial.take() {
            Some(trial) if !measured && !self.rates.is_empty() => self.trial = Some(trial),
            Some(trial) => self.judge(&trial),
            None => self.wait(),
        }
    }

    fn judge(&mut self, trial: &Trial) {
        let harmed = trial.before.iter().any(|(other, before)| {
            self.rates
                .get(other)
                .is_some_and(|after| is_slower(*before, mean(after), self.slowdown))
        });
        let target = self.targets[&trial.id];
        if harmed {
            let known = self.caps.get(&trial.id).map_or(FIRST_WAIT / 2, |cap| cap.wait);
            let wait = (2 * known).min(LONGEST_WAIT);
            self.caps.insert(trial.id, Cap { at: trial.from, trying: false, wait, left: wait });
        } else if let Some(cap) = self.caps.get_mut(&trial.id) {
            *cap =
                Cap { at: cap.at.max(target), trying: false, wait: FIRST_WAIT, left: FIRST_WAIT };
        }
    }

    /// Advance all caps by one period. One program tries at a time. An attempt that the program
    /// does not use ends after `FIRST_WAIT` periods.
    fn wait(&mut self) {
        for cap in self.caps.values_mut() {
            cap.left = cap.left.saturating_sub(1);
            if cap.trying && cap.left == 0 {
                cap.trying = false;
                cap.left = cap.wait;
            }
        }
        let somebody_tries = self.caps.values().any(|cap| cap.trying);
        if !somebody_tries && let Some(cap) = self.caps.values_mut().find(|cap| cap.left == 0) {
            cap.trying = true;
            cap.left = FIRST_WAIT;
        }
    }
}

fn mean(rates: &VecDeque<f64>) -> Mean {
    let n = rates.len() as f64;
    let value = rates.iter().sum::<f64>() / n;
    let variance = rates.iter().map(|r| (r - value).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    Mean { value, error: variance / n }
}

/// Return whether the rate fell by more than the fraction `slowdown`, and by more than three
/// standard errors of the difference.
fn is_slower(before: Mean, after: Mean, slowdown: f64) -> bool {
    let lost = before.value - after.value;
    lost > slowdown * before.value && lost > 3.0 * (before.error + after.error).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEIGHBOUR: Id = 1;
    const GROWING: Id = 2;

    /// Simulated machine: each thread uses one unit of the memory `bandwidth`.
    struct Machine {
        feedback: Feedback,
        bandwidth: f64,
        noise: f64,
        random: fastrand::Rng,
        caps: BTreeMap<Id, u32>,
    }

    impl Machine {
        fn new(bandwidth: f64, noise: f64) -> Machine {
            let random = fastrand::Rng::with_seed(7);
            Machine {
                feedback: Feedback::new(0.05),
                bandwidth,
                noise,
                random,
                caps: BTreeMap::new(),
            }
        }

        /// Run one period: the growing program wants `wanted` threads; the neighbour, if present,
        /// has 2. Returns the number of threads that the growing program had.
        fn period(&mut self, wanted: u32, neighbour: bool) -> u32 {
            let target = wanted.min(self.caps.get(&GROWING).copied().unwrap_or(u32::MAX));
            let all = f64::from(target) + if neighbour { 2.0 } else { 0.0 };
            let mut rate = |threads: f64| {
                let noise = 1.0 + self.noise * (2.0 * self.random.f64() - 1.0);
                Some(threads * (self.bandwidth / all).min(1.0) * noise)
            };
            let mut programs =
                vec![Progress { id: GROWING, target, rate: rate(f64::from(target)) }];
            if neighbour {
                programs.push(Progress { id: NEIGHBOUR, target: 2, rate: rate(2.0) });
            }
            self.caps = self.feedback.period(&programs);
            target
        }

        fn run(&mut self, periods: u32, wanted: u32, neighbour: bool) -> Vec<u32> {
            (0..periods).map(|_| self.period(wanted, neighbour)).collect()
        }
    }

    #[test]
    fn growth_stops_where_the_bandwidth_ends() {
        for noise in [0.0, 0.01] {
            let mut machine = Machine::new(4.0, noise);
            for wanted in 1..=6 {
                machine.run(20, wanted, true);
            }
            // 2 and 2 threads use up the bandwidth.
            let had = machine.run(2_000, 6, true);
            assert!(had.iter().all(|&n| n <= 3), "{had:?}");
            let too_many = had.iter().filter(|&&n| n == 3).count();
            assert!(too_many > 0, "it never tries again");
            assert!(too_many < 100, "it tries too often: {too_many} of 2,000 periods");
            // Alone, the program has no cap.
            assert_eq!(machine.run(3, 6, false)[2], 6);
        }
    }

    #[test]
    fn after_a_leap_it_grows_one_by_one() {
        let mut machine = Machine::new(5.0, 0.0);
        machine.run(20, 1, true);
        assert_eq!(machine.run(10, 8, true)[9], 1);
        let had = machine.run(2_000, 8, true);
        assert!(had.windows(2).all(|w| w[1] <= w[0] + 1));
        assert_eq!(had.iter().filter(|&&n| n == 3).count() * 10 / had.len(), 9);
    }

    #[test]
    fn growth_that_harms_nobody_is_free() {
        let mut machine = Machine::new(100.0, 0.03);
        for wanted in (1..40).chain((1..40).rev()).cycle().take(2_000) {
            let had = machine.run(15, wanted, true);
            assert_eq!(had[14], wanted);
        }
    }

    #[test]
    fn bandwidth_that_comes_free_is_found() {
        let mut machine = Machine::new(4.0, 0.0);
        machine.run(20, 1, true);
        machine.run(2_000, 6, true);
        machine.bandwidth = 8.0;
        // The wait has become long. Growth without harm shortens it again.
        let had = machine.run(LONGEST_WAIT + 300, 6, true);
        assert_eq!(had.last(), Some(&6));
    }

    #[test]
    fn who_does_not_want_more_is_in_nobodys_way() {
        let mut feedback = Feedback::new(0.05);
        let mut caps = BTreeMap::new();
        // Programs 2 and 3 each slow program 1 by growing. Then 2 wants no more threads, but 3
        // does.
        let mut run = |periods: u32, wanted: [u32; 2], rate: f64| {
            let mut most = 0;
            for _ in 0..periods {
                let target = |id: Id| {
                    wanted[id as usize - 2].min(caps.get(&id).copied().unwrap_or(u32::MAX))
                };
                let grown = target(2) + target(3) > 2;
                let programs = [
                    Progress { id: 1, target: 1, rate: Some(if grown { rate } else { 1.0 }) },
                    Progress { id: 2, target: target(2), rate: None },
                    Progress { id: 3, target: target(3), rate: None },
                ];
                most = most.max(target(3));
                caps = feedback.period(&programs);
            }
            most
        };
        run(20, [1, 1], 0.5);
        run(10, [2, 1], 0.5);
        run(10, [1, 1], 0.5);
        run(10, [1, 2], 0.5);
        assert_eq!(run(200, [1, 4], 1.0), 4);
    }

    #[test]
    fn nobody_is_blamed_when_more_changes_at_once() {
        let mut feedback = Feedback::new(0.05);
        let both = |a: u32, b: u32, rate: f64| {
            [
                Progress { id: 1, target: a, rate: Some(rate) },
                Progress { id: 2, target: b, rate: Some(rate) },
            ]
        };
        (0..10).for_each(|_| assert!(feedback.period(&both(1, 1, 1.0)).is_empty()));
        (0..10).for_each(|_| assert!(feedback.period(&both(2, 2, 0.5)).is_empty()));
        // A program that shrinks gets no cap. Nor does any if no program reports its rate.
        (0..10).for_each(|_| assert!(feedback.period(&both(2, 1, 0.3)).is_empty()));
        let silent = |target: u32| {
            [Progress { id: 1, target, rate: None }, Progress { id: 2, target: 1, rate: None }]
        };
        (1..10).for_each(|n| assert!(feedback.period(&silent(n)).is_empty()));
    }
}
