//! Decide which CPUs malleable programs get, after their counts are known. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::matching::Matching;
use super::topology::{Place, Topology};

/// Rule by which CPUs are chosen for malleable programs.
#[derive(Clone, Debug)]
pub enum Packing {
    /// The highest numbers, one program after the other, as in the paper.
    Number,
    /// CPUs that share cores, caches and nodes with each other, and as little as possible with
    /// other programs.
    Topology(Topology),
}

/// Settle all CPUs of `programs`: (index, number of CPUs), ordered by index. `cpus[i]` is the
/// number of the CPU with index i in `matching`.
pub fn settle(
    matching: &mut Matching,
    programs: &[(usize, usize)],
    packing: &Packing,
    cpus: &[usize],
) {
    match packing {
        Packing::Number => {
            for &(program, count) in programs {
                let wanted: Vec<usize> = matching.open(program).rev().collect();
                take(matching, program, count, wanted);
            }
        }
        Packing::Topology(topology) => {
            let places: Vec<Place> = cpus.iter().map(|&cpu| topology.place(cpu)).collect();
            // Programs with the fewest allowed CPUs choose first, then the largest; small ones fill
            // the gaps.
            let mut order: Vec<(usize, usize)> = programs.to_vec();
            order.sort_by_key(|&(program, count)| (matching.open(program).count(), Reverse(count)));
            for (program, count) in order {
                let mut left = count;
                // Try each candidate once.
                let mut candidates: Vec<usize> = matching.open(program).collect();
                while left > 0 && !candidates.is_empty() {
                    let (chosen, domain) =
                        closest(&candidates, left, &places, &cores_in_use(matching, &places));
                    left -= take(matching, program, left, chosen.clone());
                    candidates.retain(|cpu| domain.contains(cpu) && !chosen.contains(cpu));
                }
                // Settle the rest on CPUs that the program owns already.
                let held =
                    (0..cpus.len()).filter(|&cpu| matching.owner(cpu) == Some(program)).collect();
                take(matching, program, left, held);
            }
        }
    }
}

/// Settle up to `count` CPUs of `wanted`, in their order. Returns the number settled.
fn take(matching: &mut Matching, program: usize, count: usize, wanted: Vec<usize>) -> usize {
    let mut taken = 0;
    for cpu in wanted {
        if taken < count && matching.settle(program, cpu) {
            taken += 1;
        }
    }
    taken
}

/// Return the cores with at least one settled CPU.
fn cores_in_use(matching: &Matching, places: &[Place]) -> BTreeSet<Place> {
    (0..places.len()).filter(|&cpu| matching.is_settled(cpu)).map(|cpu| places[cpu]).collect()
}

/// Choose the next CPUs for a program that needs `count` more. Returns these, and the domain in
/// which to search for the rest.
///
/// The domain is a core, cache or node, or all: of the lowest level that has enough candidates. On
/// one level, choose the domain where the fewest CPUs share a core with another program, ignoring
/// one odd thread. Then choose the one with the fewest candidates.
///
/// The chosen CPUs are the largest part of the domain with at most `count` CPUs. If there are too
/// few candidates, returns all of them.
fn closest(
    candidates: &[usize],
    count: usize,
    places: &[Place],
    in_use: &BTreeSet<Place>,
) -> (Vec<usize>, Vec<usize>) {
    let levels: [fn(Place) -> [usize; 3]; 4] =
        [|p| [p.node, p.cache, p.core], |p| [p.node, p.cache, 0], |p| [p.node, 0, 0], |_| [0; 3]];
    // Begin with single CPUs, so every level has parts.
    let mut parts: Vec<Vec<usize>> = candidates.iter().map(|&cpu| vec![cpu]).collect();
    for level in levels {
        let mut groups: BTreeMap<[usize; 3], Vec<usize>> = BTreeMap::new();
        for &cpu in candidates {
            groups.entry(level(places[cpu])).or_default().push(cpu);
        }
        let enough = groups.values().filter(|g| g.len() >= count);
        let shared = |g: &[usize]| {
            let whole = g.iter().filter(|&&cpu| !in_use.contains(&places[cpu])).count();
            count.saturating_sub(whole + count % 2)
        };
        let best = enough.min_by_key(|g| (shared(g), g.len(), Reverse(g.last().copied())));
        if let Some(domain) = best {
            let within = parts
                .into_iter()
                .filter(|p| p.len() <= count && p.iter().all(|cpu| domain.contains(cpu)));
            let chosen = within.max_by_key(|p| (p.len(), p.last().copied())).unwrap_or_default();
            return (chosen, domain.clone());
        }
        parts = groups.into_values().collect();
    }
    // There are too few candidates.
    (candidates.to_vec(), candidates.to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::allocation::{Application, Kind, allocate};
    use super::*;
    use watch::activity::Id;

    /// 2 sockets x 4 cores x 2 threads; siblings are n and n + 8, as on many machines.
    fn two_sockets() -> Packing {
        let place = |cpu: usize| Place { node: cpu % 8 / 4, cache: cpu % 8 / 4, core: cpu % 8 };
        Packing::Topology(Topology::new((0..16).map(|cpu| (cpu, place(cpu)))))
    }

    fn malleable(id: Id, cap: u32) -> Application {
        Application { cap: Some(cap), ..Application::new(id, Kind::Malleable { max_threads: 99 }) }
    }

    fn placed(applications: &[Application]) -> Vec<Vec<usize>> {
        let cpus: Vec<usize> = (0..16).collect();
        allocate(applications, &cpus, &two_sockets()).into_values().map(|s| s.cpus).collect()
    }

    #[test]
    fn whole_cores_of_one_socket() {
        // Half of the machine is one socket, not CPUs 8 to 15, which are one thread of each core.
        assert_eq!(placed(&[malleable(1, 8)]), [[4, 5, 6, 7, 12, 13, 14, 15]]);
        assert_eq!(placed(&[malleable(1, 2)]), [[7, 15]]);
        assert_eq!(placed(&[malleable(1, 1)]), [[15]]);
        let two = placed(&[malleable(1, 8), malleable(2, 8)]);
        assert_eq!(two, [[4, 5, 6, 7, 12, 13, 14, 15], [0, 1, 2, 3, 8, 9, 10, 11]]);
        // 4, 8 and 4 CPUs: the two small programs share a socket, but no core.
        let three = placed(&[malleable(1, 4), malleable(2, 8), malleable(3, 4)]);
        assert_eq!(three, [vec![2, 3, 10, 11], vec![4, 5, 6, 7, 12, 13, 14, 15], vec![0, 1, 8, 9]]);
        // More than a socket: all of one, and whole cores of the other.
        assert_eq!(placed(&[malleable(1, 10)]), [[3, 4, 5, 6, 7, 11, 12, 13, 14, 15]]);
    }

    #[test]
    fn odd_counts_share_one_core() {
        let two = placed(&[malleable(1, 3), malleable(2, 5)]);
        let cores =
            |of: &[usize]| of.iter().map(|c| c % 8).collect::<std::collections::BTreeSet<_>>();
        assert_eq!((cores(&two[0]).len(), cores(&two[1]).len()), (2, 3));
        assert!(two.concat().iter().all(|c| c % 8 >= 4), "one socket: {two:?}");
        assert_eq!(cores(&two.concat()).len(), 4);
    }

    #[test]
    fn masks_count_more() {
        let bound = Application { may_use: Some(vec![4, 5, 6, 7]), ..malleable(1, 4) };
        let two = placed(&[bound, malleable(2, 4)]);
        // The other program avoids the siblings of the first one's cores.
        assert_eq!(two, [[4, 5, 6, 7], [2, 3, 10, 11]]);
    }

    #[test]
    fn rigid_programs_keep_whole_cores() {
        let rigid = Application::new(2, Kind::Rigid { typical_thread_count: 6 });
        let two = placed(&[malleable(1, 99), rigid]);
        assert_eq!(two, [vec![3, 4, 5, 6, 7, 11, 12, 13, 14, 15], vec![0, 1, 2, 8, 9, 10]]);
    }
}
