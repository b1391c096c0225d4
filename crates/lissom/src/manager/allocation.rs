//! Core allocation of the elasticity manager (Rubio et al., Algorithm 1): decide which CPUs each
//! program gets. Pure functions: no clock, no I/O.
//!
//! A rigid program determines its own number of threads. It is *active* if it ran during the
//! period, and *idle* if not. Malleable programs share the remaining CPUs; each runs as many
//! threads (slots) as it gets CPUs. Malleable programs get the CPUs with the highest numbers, rigid
//! programs those below.
//!
//! Beyond the paper: affinity masks, weights, caps, and packing by what CPUs share (packing.rs).

use std::collections::BTreeMap;

use super::matching::Matching;
use super::packing::{self, Packing};
use watch::activity::Id;

#[derive(Clone, Debug)]
pub struct Application {
    pub id: Id,
    pub kind: Kind,
    /// CPUs of its affinity mask or cpuset. None: all.
    pub may_use: Option<Vec<usize>>,
    /// CPUs are divided among malleable programs in proportion to their weights. At least 1.
    pub weight: u32,
    /// Maximum number of CPUs. At least 1.
    pub cap: Option<u32>,
}

impl Application {
    /// Create an application without a mask and a cap, of weight 1.
    pub fn new(id: Id, kind: Kind) -> Application {
        Application { id, kind, may_use: None, weight: 1, cap: None }
    }
}

#[derive(Clone, Debug)]
pub enum Kind {
    Malleable {
        /// Maximum number of threads; more CPUs are useless to it.
        max_threads: u32,
    },
    Rigid {
        typical_thread_count: u32,
    },
}

/// CPUs of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of threads (slots) that a malleable program is to run. None: the program decides.
    pub target_threads: Option<u32>,
    /// CPUs on which it may run. Several programs may have the same.
    pub cpus: Vec<usize>,
}

/// Divide `cpus` among the applications. Returns the share of each: at least one CPU, and only CPUs
/// that it may use. An application that may use none of `cpus` keeps its own CPUs, without a
/// target.
///
/// Neither `cpus` nor any `may_use` may be empty. Packing by number takes CPUs for malleable
/// programs from the end of `cpus`, and leaves the others to rigid ones.
pub fn allocate(
    applications: &[Application],
    cpus: &[usize],
    packing: &Packing,
) -> BTreeMap<Id, Share> {
    let mut shares = BTreeMap::new();
    let mut programs = Vec::new();
    for application in applications {
        let allowed: Vec<bool> = cpus
            .iter()
            .map(|c| application.may_use.as_ref().is_none_or(|m| m.contains(c)))
            .collect();
        match allowed.iter().filter(|&&a| a).count() {
            0 => {
                let cpus = application.may_use.clone().unwrap_or_default();
                shares.insert(application.id, Share { target_threads: None, cpus });
            }
            usable => programs.push(Program::new(application, allowed, usable)),
        }
    }
    programs.sort_unstable_by_key(|p| p.id);
    let (mut matching, counts) = counts(&programs, cpus.len());
    let grown: Vec<(usize, usize)> = (0..programs.len())
        .filter(|&i| programs[i].malleable && counts[i] > 0)
        .map(|i| (i, counts[i]))
        .collect();
    packing::settle(&mut matching, &grown, packing, cpus);

    // Count the malleable programs of each CPU.
    let is_malleables = |cpu: usize| {
        matching.owner(cpu).is_some_and(|i| i < programs.len() && programs[i].malleable)
    };
    let mut users: Vec<usize> =
        (0..cpus.len()).map(|cpu| usize::from(is_malleables(cpu))).collect();
    for (i, program) in programs.iter().enumerate() {
        let usable = |cpu: &usize| program.allowed[*cpu];
        let own = |cpu: &usize| matching.owner(*cpu) == Some(i);
        let (mut of, target): (Vec<usize>, _) = if !program.malleable {
            (program.rigid_share(&matching, is_malleables), None)
        } else if counts[i] > 0 {
            ((0..cpus.len()).filter(own).collect(), Some(counts[i] as u32))
        } else {
            // There are more programs than CPUs that they may use: share the CPU with the fewest.
            let shared = (0..cpus.len())
                .rev()
                .filter(usable)
                .min_by_key(|&cpu| users[cpu])
                .expect("it may use one");
            users[shared] += 1;
            (vec![shared], Some(1))
        };
        of.sort_unstable();
        shares.insert(
            program.id,
            Share { target_threads: target, cpus: of.iter().map(|&cpu| cpus[cpu]).collect() },
        );
    }
    shares
}

/// An application that may use at least one CPU. CPUs are named by their index.
struct Program {
    id: Id,
    malleable: bool,
    allowed: Vec<bool>,
    /// Number of CPUs that it can use. 0: idle.
    limit: usize,
    weight: u64,
    cap: usize,
}

impl Program {
    fn new(application: &Application, allowed: Vec<bool>, usable: usize) -> Program {
        let cap = application.cap.map_or(usize::MAX, |cap| cap.max(1) as usize);
        let (malleable, threads) = match application.kind {
            Kind::Malleable { max_threads } => (true, max_threads.max(1)),
            Kind::Rigid { typical_thread_count } => (false, typical_thread_count),
        };
        let limit = (threads as usize).min(cap).min(usable);
        Program {
            id: application.id,
            malleable,
            allowed,
            limit,
            weight: application.weight.max(1).into(),
            cap,
        }
    }

    /// Return the CPUs of a rigid program: those without a malleable program, or all if none is
    /// left. A cap keeps first those that the matching gives to no program.
    fn rigid_share(
        &self,
        matching: &Matching,
        is_malleables: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let all: Vec<usize> = (0..self.allowed.len()).filter(|&cpu| self.allowed[cpu]).collect();
        let mut left: Vec<usize> = all.iter().copied().filter(|&cpu| !is_malleables(cpu)).collect();
        if left.is_empty() {
            left = all;
        }
        left.sort_by_key(|&cpu| matching.owner(cpu).is_some());
        left.truncate(self.cap);
        left
    }
}

/// Decide how many CPUs each program gets, and match CPUs to programs accordingly. A malleable
/// program with a count of 0 has no CPU of its own.
fn counts(programs: &[Program], cpus: usize) -> (Matching, Vec<usize>) {
    let mut allowed: Vec<Vec<bool>> = programs.iter().map(|p| p.allowed.clone()).collect();
    // Reserve one CPU for all idle programs together. When one wakes up, it has a CPU until the
    // next period.
    let idle: Vec<&Program> = programs.iter().filter(|p| !p.malleable && p.limit == 0).collect();
    allowed.push((0..cpus).map(|cpu| idle.iter().any(|p| p.allowed[cpu])).collect());
    let mut matching = Matching::new(allowed, cpus);
    let mut counts = vec![0; programs.len()];

    let of_kind =
        |malleable: bool| (0..programs.len()).filter(move |&i| programs[i].malleable == malleable);
    for i in of_kind(true) {
        counts[i] = usize::from(matching.grow(i));
    }
    for i in of_kind(false) {
        while counts[i] < programs[i].limit && matching.grow(i) {
            counts[i] += 1;
        }
    }
    matching.grow(programs.len());
    // One CPU at a time to the program with the fewest for its weight; of equal ones, to the first.
    let mut growing: Vec<usize> =
        of_kind(true).filter(|&i| 0 < counts[i] && counts[i] < programs[i].limit).collect();
    while let Some(at) = least_provided(&growing, programs, &counts) {
        let i = growing[at];
        let grew = matching.grow(i);
        counts[i] += usize::from(grew);
        // A program that cannot grow now cannot grow later.
        if !grew || counts[i] == programs[i].limit {
            growing.remove(at);
        }
    }
    (matching, counts)
}

/// Find the program with the fewest CPUs for its weight. Returns its position in `growing`.
fn least_provided(growing: &[usize], programs: &[Program], counts: &[usize]) -> Option<usize> {
    (0..growing.len()).min_by(|&a, &b| {
        let (a, b) = (growing[a], growing[b]);
        (counts[a] as u64 * programs[b].weight).cmp(&(counts[b] as u64 * programs[a].weight))
    })
}

#[cfg(test)]
mod tests {
    use super::super::topology::{Place, Topology};
    use super::*;

    fn rigid(id: Id, typical_thread_count: u32) -> Application {
        Application::new(id, Kind::Rigid { typical_thread_count })
    }

    fn malleable(id: Id, max_threads: u32) -> Application {
        Application::new(id, Kind::Malleable { max_threads })
    }

    /// Format the shares of CPUs 0..n as `id: target on cpus`.
    fn shown(applications: &[Application], n: usize) -> Vec<String> {
        let shares = allocate(applications, &(0..n).collect::<Vec<_>>(), &Packing::Number);
        let show = |(id, s): (&Id, &Share)| match s.target_threads {
            Some(target) => format!("{id}: {target} on {:?}", s.cpus),
            None => format!("{id}: on {:?}", s.cpus),
        };
        shares.iter().map(show).collect()
    }

    #[test]
    fn worked_examples() {
        // A sequential phase leaves seven of eight CPUs.
        assert_eq!(
            shown(&[rigid(1, 1), malleable(2, 8)], 8),
            ["1: on [0]", "2: 7 on [1, 2, 3, 4, 5, 6, 7]"]
        );
        assert_eq!(
            shown(&[rigid(1, 6), malleable(2, 8)], 8),
            ["1: on [0, 1, 2, 3, 4, 5]", "2: 2 on [6, 7]"]
        );
        // A malleable program has a CPU even if rigid ones want all.
        assert_eq!(shown(&[rigid(1, 9), malleable(2, 8)], 4), ["1: on [0, 1, 2]", "2: 1 on [3]"]);
        // All idle programs together have one CPU.
        assert_eq!(
            shown(&[rigid(1, 0), rigid(2, 0), rigid(3, 2), malleable(4, 8)], 8),
            ["1: on [0, 1, 2]", "2: on [0, 1, 2]", "3: on [0, 1, 2]", "4: 5 on [3, 4, 5, 6, 7]"]
        );
        // Two malleable programs: the odd CPU goes to the lower number.
        assert_eq!(
            shown(&[malleable(7, 9), malleable(5, 9), rigid(1, 1)], 4),
            ["1: on [0]", "5: 2 on [2, 3]", "7: 1 on [1]"]
        );
        // One program gets the CPUs that the other cannot use.
        assert_eq!(
            shown(&[malleable(1, 1), malleable(2, 9)], 4),
            ["1: 1 on [3]", "2: 3 on [0, 1, 2]"]
        );
        // More programs than CPUs.
        assert_eq!(
            shown(&[malleable(1, 4), malleable(2, 4), malleable(3, 4), rigid(4, 1)], 2),
            ["1: 1 on [1]", "2: 1 on [0]", "3: 1 on [1]", "4: on [0, 1]"]
        );
        // Without a malleable program, or with a single CPU, rigid programs use all CPUs.
        assert_eq!(shown(&[rigid(1, 1), rigid(2, 0)], 2), ["1: on [0, 1]", "2: on [0, 1]"]);
        assert_eq!(shown(&[malleable(1, 4), rigid(2, 0)], 1), ["1: 1 on [0]", "2: on [0]"]);
    }

    /// Create random applications. Each has a limit of each kind with probability `limited`.
    fn applications(random: &mut fastrand::Rng, limited: f64, cpus: &[usize]) -> Vec<Application> {
        let mut list: Vec<Application> = Vec::new();
        for id in 0..random.u32(..12) {
            let mut one = match random.bool() {
                true => malleable(id, random.u32(..20)),
                false => rigid(id, random.u32(..9)),
            };
            if random.f64() < limited {
                // Perhaps none of these is in `cpus`.
                let mut some: Vec<usize> = (0..60).filter(|_| random.u8(..10) == 0).collect();
                some.push(random.usize(60..70));
                one.may_use = Some(if random.bool() {
                    some
                } else {
                    vec![*random.choice(cpus).expect("one")]
                });
            }
            if random.f64() < limited {
                one.cap = Some(random.u32(1..6));
            }
            if random.f64() < limited {
                one.weight = random.u32(1..5);
            }
            list.push(one);
        }
        random.shuffle(&mut list);
        list
    }

    fn packings() -> [Packing; 2] {
        let place = |cpu| Place { node: cpu / 30, cache: cpu / 15, core: cpu / 6 };
        [Packing::Number, Packing::Topology(Topology::new((0..60).map(|cpu| (cpu, place(cpu)))))]
    }

    #[test]
    fn what_always_holds() {
        let mut random = fastrand::Rng::with_seed(1);
        for round in 0..20_000 {
            let cpus: Vec<usize> = (0..random.usize(1..20)).map(|i| 3 * i + 1).collect();
            let limited = f64::from(round % 3) / 2.0;
            let list = applications(&mut random, limited, &cpus);
            let packing = &packings()[random.usize(..2)];
            let shares = allocate(&list, &cpus, packing);
            assert_eq!(shares.len(), list.len());
            // Number of malleable programs of each CPU.
            let mut given: BTreeMap<usize, usize> = BTreeMap::new();
            let mut total = 0;
            for application in &list {
                let share = &shares[&application.id];
                let may_use =
                    |c: &usize| application.may_use.as_ref().is_none_or(|m| m.contains(c));
                assert!(
                    !share.cpus.is_empty()
                        && share.cpus.is_sorted()
                        && share.cpus.iter().all(may_use)
                );
                if !cpus.iter().any(may_use) {
                    assert_eq!(share.target_threads, None);
                    continue;
                }
                assert!(share.cpus.iter().all(|c| cpus.contains(c)));
                assert!(
                    application.cap.is_none_or(|cap| share.cpus.len() <= cap as usize),
                    "{list:?} {shares:?}"
                );
                match application.kind {
                    Kind::Malleable { max_threads } => {
                        let target = share.target_threads.expect("malleable");
                        assert!(target >= 1 && target <= max_threads.max(1));
                        assert_eq!(share.cpus.len(), target as usize);
                        total += target as usize;
                        share.cpus.iter().for_each(|&c| *given.entry(c).or_default() += 1);
                    }
                    Kind::Rigid { .. } => assert_eq!(share.target_threads, None),
                }
            }
            // A program with several CPUs shares none of them.
            for share in shares.values().filter(|s| s.target_threads.is_some_and(|t| t > 1)) {
                assert!(share.cpus.iter().all(|c| given[c] == 1), "{list:?} {shares:?}");
            }
            let programs = shares.values().filter(|s| s.target_threads.is_some()).count();
            assert!(
                limited > 0.0 || total <= cpus.len().max(programs),
                "more than there is: {list:?}"
            );
            // Rigid and malleable programs do not meet while each malleable program has a CPU and
            // one is left for the rest.
            if limited == 0.0 && programs < cpus.len() && total < cpus.len() {
                let rigid = list.iter().filter(|a| matches!(a.kind, Kind::Rigid { .. }));
                assert!(rigid.flat_map(|a| &shares[&a.id].cpus).all(|c| !given.contains_key(c)));
            }
            // The result does not depend on the order of the applications.
            let mut other = list.clone();
            random.shuffle(&mut other);
            assert_eq!(allocate(&other, &cpus, packing), shares);
            // Packing changes which CPUs programs get, but not how many.
            let by_number = allocate(&list, &cpus, &Packing::Number);
            assert!(shares.iter().all(|(id, s)| s.target_threads == by_number[id].target_threads));
        }
    }

    #[test]
    fn shares_are_fair() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..5_000 {
            let cpus: Vec<usize> = (0..random.usize(1..40)).collect();
            let mut list = applications(&mut random, 0.5, &cpus);
            list.iter_mut().for_each(|a| a.may_use = None);
            let shares = allocate(&list, &cpus, &Packing::Number);
            for one in &list {
                let Kind::Malleable { max_threads } = one.kind else { continue };
                let target = |a: &Application| shares[&a.id].target_threads;
                let limit = max_threads.min(one.cap.unwrap_or(u32::MAX));
                let count = target(one).expect("malleable");
                // No program that could use more has less, for its weight, than another by more
                // than one.
                for other in
                    list.iter().filter(|o| count < limit && target(o).is_some_and(|t| t > 1))
                {
                    let of_other = target(other).expect("malleable");
                    assert!(
                        (of_other - 1) * one.weight <= count * other.weight,
                        "{list:?} {shares:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn weights_caps_and_masks() {
        let with = |mut a: Application, f: fn(&mut Application)| {
            f(&mut a);
            a
        };
        let weighted = with(malleable(2, 9), |a| a.weight = 3);
        assert_eq!(
            shown(&[malleable(1, 9), weighted.clone()], 8),
            ["1: 2 on [6, 7]", "2: 6 on [0, 1, 2, 3, 4, 5]"]
        );
        // The others get the CPUs that a heavy program cannot use.
        let capped = with(weighted, |a| a.cap = Some(2));
        assert_eq!(
            shown(&[malleable(1, 9), capped], 8),
            ["1: 6 on [2, 3, 4, 5, 6, 7]", "2: 2 on [0, 1]"]
        );
        // A bound program gets its CPU, and the other one gets the rest.
        let bound = with(malleable(2, 9), |a| a.may_use = Some(vec![3]));
        assert_eq!(shown(&[malleable(1, 9), bound], 4), ["1: 3 on [0, 1, 2]", "2: 1 on [3]"]);
        // A rigid program that is bound to the highest CPUs displaces malleable ones.
        let bound = with(rigid(1, 2), |a| a.may_use = Some(vec![2, 3]));
        assert_eq!(shown(&[bound, malleable(2, 9)], 4), ["1: on [2, 3]", "2: 2 on [0, 1]"]);
        // A rigid program with a cap leaves more CPUs.
        let capped = with(rigid(1, 4), |a| a.cap = Some(1));
        assert_eq!(shown(&[capped, malleable(2, 9)], 4), ["1: on [0]", "2: 3 on [1, 2, 3]"]);
        // A program that may use none of the CPUs keeps its own.
        let away = with(malleable(1, 9), |a| a.may_use = Some(vec![7]));
        assert_eq!(shown(&[away, malleable(2, 9)], 2), ["1: on [7]", "2: 2 on [0, 1]"]);
    }
}
