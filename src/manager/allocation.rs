//! Which CPUs each program is to have: the core allocation of the elasticity manager (Rubio et al., Algorithm 1). Pure functions: no clock, no I/O.
//!
//! Programs that are not malleable have as many threads as they have. They are *active* if they ran during the period, and *idle* if not. What they
//! leave is shared among the malleable ones, which then have so many threads, or slots. The two kinds get CPUs of their own: malleable programs those
//! with the highest numbers, the others those below.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a process has had how many runnable threads, in one period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityVector {
    /// `[i]`: with exactly i threads; the last one: with as many or more.
    time: Vec<Duration>,
    /// `[i]`: whether `time[i]` is of this period. What is not counts as nothing, so that nobody has to clear a long vector each period.
    valid: Vec<bool>,
}

impl ActivityVector {
    pub fn new(time: Vec<Duration>, valid: Vec<bool>) -> ActivityVector {
        assert_eq!(time.len(), valid.len());
        ActivityVector { time, valid }
    }

    /// `[i]`: with i threads.
    pub fn times(&self) -> impl Iterator<Item = Duration> {
        self.time.iter().zip(&self.valid).map(|(time, valid)| if *valid { *time } else { Duration::ZERO })
    }

    /// The largest number of threads that the process has had, or more, for at least `min_threshold` in all: what it had for less is no loss if it waits
    /// for a core. 0: idle.
    pub fn typical_thread_count(&self, min_threshold: Duration) -> u32 {
        let mut with_as_many = Duration::ZERO;
        for i in (1..self.time.len()).rev() {
            if self.valid[i] {
                with_as_many += self.time[i];
            }
            if with_as_many >= min_threshold && with_as_many > Duration::ZERO {
                return i as u32;
            }
        }
        0
    }
}

pub type Id = u32;

#[derive(Clone, Debug)]
pub struct Application {
    pub id: Id,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Malleable {
        /// Threads that it has at most: more cores are no use to it.
        max_threads: u32,
    },
    Rigid {
        typical_thread_count: u32,
    },
}

/// What one program gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Of a malleable program: as many threads, or slots, as it is to have. None: it decides itself.
    pub target_threads: Option<u32>,
    /// Where it may run. Several programs may have the same.
    pub cpus: Vec<usize>,
}

/// `cpus`: those that there are to give, in the order of packing: from the last one on for malleable programs, the others for the rest. Post: each program has at
/// least one. Pre: `cpus` is not empty.
pub fn allocate(applications: &[Application], cpus: &[usize]) -> BTreeMap<Id, Share> {
    let mut malleable: Vec<(Id, u32)> = Vec::new();
    let mut rigid: Vec<Id> = Vec::new();
    let (mut needed, mut idle) = (0usize, false);
    for application in applications {
        match application.kind {
            Kind::Malleable { max_threads } => malleable.push((application.id, max_threads.max(1))),
            Kind::Rigid { typical_thread_count } => {
                rigid.push(application.id);
                needed += typical_thread_count as usize;
                idle |= typical_thread_count == 0;
            }
        }
    }
    malleable.sort_unstable();
    // For those that are idle now: when they begin to run, there is a core until the next period.
    let kept = needed + usize::from(idle);
    let given = cpus.len().saturating_sub(kept).max(malleable.len()).min(cpus.len());
    let counts = fair_share(given, &malleable);

    let mut shares = BTreeMap::new();
    // Taken from the end; if there are fewer CPUs than programs, from the end again.
    let mut taken = 0;
    for (&(id, _), &count) in malleable.iter().zip(&counts) {
        let of: Vec<usize> =
            (0..count).map(|i| cpus[cpus.len() - 1 - (taken + i) % cpus.len()]).rev().collect();
        taken += count;
        shares.insert(id, Share { target_threads: Some(count as u32), cpus: of });
    }
    let below = &cpus[..cpus.len().saturating_sub(taken)];
    // Where nothing is left they share all.
    let below = if below.is_empty() { cpus } else { below };
    for id in rigid {
        shares.insert(id, Share { target_threads: None, cpus: below.to_vec() });
    }
    shares
}

/// `given` cores among malleable programs (id, at most so many): each has one at least; what one cannot use goes to the others; what does not come out even goes to the first ones.
fn fair_share(given: usize, malleable: &[(Id, u32)]) -> Vec<usize> {
    let mut counts = vec![1; malleable.len()];
    let mut left = given.saturating_sub(malleable.len());
    while left > 0 {
        let wanting: Vec<usize> =
            (0..malleable.len()).filter(|&i| counts[i] < malleable[i].1 as usize).collect();
        // A round gives the least-provided first, so that what was given unevenly evens out.
        let Some(least) = wanting.iter().map(|&i| counts[i]).min() else { break };
        for i in wanting {
            if counts[i] == least && left > 0 {
                counts[i] += 1;
                left -= 1;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_THRESHOLD: Duration = Duration::from_millis(2);

    /// Milliseconds with 0, 1, 2 ... threads; None: not of this period.
    fn vector(times: &[Option<u64>]) -> ActivityVector {
        let time = times.iter().map(|t| Duration::from_millis(t.unwrap_or(1000))).collect();
        ActivityVector::new(time, times.iter().map(Option::is_some).collect())
    }

    #[test]
    fn typical_thread_counts() {
        let count = |times: &[Option<u64>]| vector(times).typical_thread_count(MIN_THRESHOLD);
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[Some(100)]), 0);
        assert_eq!(count(&[Some(50), Some(50)]), 1);
        // A burst of 4 threads for 1 ms is no reason for 4 cores.
        assert_eq!(count(&[Some(9), Some(90), Some(0), Some(0), Some(1)]), 1);
        assert_eq!(count(&[Some(8), Some(90), Some(0), Some(0), Some(2)]), 4);
        // 1 ms with 3 and 1 ms with 4 threads are 2 ms with at least 3.
        assert_eq!(count(&[Some(8), Some(90), Some(0), Some(1), Some(1)]), 3);
        assert_eq!(count(&[Some(99), Some(1)]), 0);
        // What an earlier period has left behind.
        assert_eq!(count(&[Some(50), Some(50), None, None]), 1);
        assert_eq!(count(&[None, None]), 0);
        // Without a threshold, still only what was there.
        assert_eq!(vector(&[Some(100), Some(0)]).typical_thread_count(Duration::ZERO), 0);
    }

    fn rigid(id: Id, typical_thread_count: u32) -> Application {
        Application { id, kind: Kind::Rigid { typical_thread_count } }
    }

    fn malleable(id: Id, max_threads: u32) -> Application {
        Application { id, kind: Kind::Malleable { max_threads } }
    }

    /// On CPUs 0..n: `id: target on cpus`.
    fn shown(applications: &[Application], n: usize) -> Vec<String> {
        let shares = allocate(applications, &(0..n).collect::<Vec<_>>());
        let show = |(id, s): (&Id, &Share)| match s.target_threads {
            Some(target) => format!("{id}: {target} on {:?}", s.cpus),
            None => format!("{id}: on {:?}", s.cpus),
        };
        shares.iter().map(show).collect()
    }

    #[test]
    fn worked_examples() {
        // A sequential phase leaves seven of eight cores.
        assert_eq!(shown(&[rigid(1, 1), malleable(2, 8)], 8), ["1: on [0]", "2: 7 on [1, 2, 3, 4, 5, 6, 7]"]);
        assert_eq!(shown(&[rigid(1, 6), malleable(2, 8)], 8), ["1: on [0, 1, 2, 3, 4, 5]", "2: 2 on [6, 7]"]);
        // A malleable program has a core even if the others want all.
        assert_eq!(shown(&[rigid(1, 9), malleable(2, 8)], 4), ["1: on [0, 1, 2]", "2: 1 on [3]"]);
        // One core for all that are idle.
        assert_eq!(
            shown(&[rigid(1, 0), rigid(2, 0), rigid(3, 2), malleable(4, 8)], 8),
            ["1: on [0, 1, 2]", "2: on [0, 1, 2]", "3: on [0, 1, 2]", "4: 5 on [3, 4, 5, 6, 7]"]
        );
        // Two malleable ones: the odd core goes to the first.
        assert_eq!(
            shown(&[malleable(7, 9), malleable(5, 9), rigid(1, 1)], 4),
            ["1: on [0]", "5: 2 on [2, 3]", "7: 1 on [1]"]
        );
        // What one cannot use, the other gets.
        assert_eq!(shown(&[malleable(1, 1), malleable(2, 9)], 4), ["1: 1 on [3]", "2: 3 on [0, 1, 2]"]);
        // More programs than cores.
        assert_eq!(
            shown(&[malleable(1, 4), malleable(2, 4), malleable(3, 4), rigid(4, 1)], 2),
            ["1: 1 on [1]", "2: 1 on [0]", "3: 1 on [1]", "4: on [0, 1]"]
        );
        // Nobody malleable: all for all.
        assert_eq!(shown(&[rigid(1, 1), rigid(2, 0)], 2), ["1: on [0, 1]", "2: on [0, 1]"]);
        assert_eq!(shown(&[malleable(1, 4), rigid(2, 0)], 1), ["1: 1 on [0]", "2: on [0]"]);
    }

    fn applications(random: &mut fastrand::Rng) -> Vec<Application> {
        let kinds = (0..random.u32(..12)).map(|id| match random.bool() {
            true => malleable(id, random.u32(..20)),
            false => rigid(id, random.u32(..9)),
        });
        let mut list: Vec<Application> = kinds.collect();
        random.shuffle(&mut list);
        list
    }

    #[test]
    fn what_always_holds() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let list = applications(&mut random);
            let cpus: Vec<usize> = (0..random.usize(1..20)).map(|i| 3 * i + 1).collect();
            let shares = allocate(&list, &cpus);
            assert_eq!(shares.len(), list.len());
            let mut given = 0;
            let (mut of_malleable, mut of_rigid) = (Vec::new(), Vec::new());
            for application in &list {
                let share = &shares[&application.id];
                assert!(!share.cpus.is_empty() && share.cpus.iter().all(|c| cpus.contains(c)));
                assert!(share.cpus.is_sorted() || share.cpus.len() > cpus.len());
                match application.kind {
                    Kind::Malleable { max_threads } => {
                        let target = share.target_threads.expect("malleable");
                        assert!(target >= 1 && target <= max_threads.max(1));
                        assert_eq!(share.cpus.len(), target as usize);
                        given += target as usize;
                        of_malleable.extend(share.cpus.clone());
                    }
                    Kind::Rigid { .. } => {
                        assert_eq!(share.target_threads, None);
                        of_rigid.extend(share.cpus.clone());
                    }
                }
            }
            let programs = list.iter().filter(|a| matches!(a.kind, Kind::Malleable { .. })).count();
            assert!(given <= cpus.len().max(programs), "more than there is: {list:?}");
            // The two kinds do not meet while there is a core for each malleable program and one for the rest.
            if programs < cpus.len() && given < cpus.len() {
                assert!(of_malleable.iter().all(|c| !of_rigid.contains(c)), "{list:?} {shares:?}");
            }
            // The order in which they are found does not matter, so nothing changes when nothing changes.
            let mut other = list.clone();
            random.shuffle(&mut other);
            assert_eq!(allocate(&other, &cpus), shares);
        }
    }

    #[test]
    fn shares_are_fair() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..5_000 {
            let list = applications(&mut random);
            let cpus: Vec<usize> = (0..random.usize(1..40)).collect();
            let shares = allocate(&list, &cpus);
            let mut malleable: Vec<(u32, u32)> = Vec::new(); // target, max
            for application in &list {
                if let Kind::Malleable { max_threads } = application.kind {
                    malleable.push((shares[&application.id].target_threads.expect("malleable"), max_threads));
                }
            }
            // Nobody who could use more has less than another by more than one.
            for &(target, max) in &malleable {
                if target < max {
                    assert!(malleable.iter().all(|other| other.0 <= target + 1), "{list:?} {shares:?}");
                }
            }
        }
    }
}
