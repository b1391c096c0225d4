//! What the guests do. Times are in cycles, and means: half of each is certain, the rest
//! exponentially distributed.

use super::lock::Kind;

#[derive(Debug)]
pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: Kind,
    /// How many locks a VM's operations are spread over.
    pub locks: usize,
    pub critical: u64,
    /// Between two operations.
    pub outside: u64,
    /// Whether that is in user mode: a vCPU preempted there is no candidate for a directed yield.
    pub user: bool,
    /// After how many operations of each vCPU all of a VM meet.
    pub barrier: Option<u32>,
    /// After how many operations on average a vCPU waits for something outside, and how long.
    pub sleep: Option<(u32, u64)>,
}

pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "ticket",
        about: "one ticket lock, and little else",
        kind: Kind::Ticket,
        locks: 1,
        critical: 2_000,
        outside: 9_000,
        user: false,
        barrier: None,
        sleep: None,
    },
    Workload {
        name: "hackbench",
        about: "messages: short critical sections of 8 ticket locks",
        kind: Kind::Ticket,
        locks: 8,
        critical: 300,
        outside: 3_000,
        user: false,
        barrier: None,
        sleep: None,
    },
    Workload {
        name: "kernbench",
        about: "compiling: user mode, and now and then one of 16 ticket locks",
        kind: Kind::Ticket,
        locks: 16,
        critical: 1_000,
        outside: 20_000,
        user: true,
        barrier: None,
        sleep: None,
    },
    Workload {
        name: "dbench",
        about: "files: long critical sections of one TTAS lock, and waiting for disks",
        kind: Kind::Ttas,
        locks: 1,
        critical: 12_000,
        outside: 60_000,
        user: false,
        barrier: None,
        sleep: Some((100, 300_000)),
    },
    Workload {
        name: "ebizzy",
        about: "page faults: one TTAS lock that is busy most of the time",
        kind: Kind::Ttas,
        locks: 1,
        critical: 4_000,
        outside: 20_000,
        user: true,
        barrier: None,
        sleep: None,
    },
    Workload {
        name: "streamcluster",
        about: "a barrier after each operation: the lock of a futex bucket, then sleep",
        kind: Kind::Ticket,
        locks: 1,
        critical: 1_500,
        outside: 60_000,
        user: true,
        barrier: Some(1),
        sleep: None,
    },
    Workload {
        name: "dedup",
        about: "a pipeline: page faults and queues under 4 ticket locks, short sleeps",
        kind: Kind::Ticket,
        locks: 4,
        critical: 3_000,
        outside: 15_000,
        user: true,
        barrier: None,
        sleep: Some((50, 200_000)),
    },
    Workload {
        name: "raytrace",
        about: "user mode, and now and then the one ticket lock of a task queue",
        kind: Kind::Ticket,
        locks: 1,
        critical: 2_000,
        outside: 100_000,
        user: true,
        barrier: None,
        sleep: None,
    },
    Workload {
        name: "barrier",
        about: "a queued lock, and a barrier of all vCPUs every 50 operations",
        kind: Kind::Queue,
        locks: 1,
        critical: 1_500,
        outside: 40_000,
        user: true,
        barrier: Some(50),
        sleep: None,
    },
];

/// The programs of APPLE's Figs. 3 and 4, in their order.
pub const PAPER: [&str; 6] =
    ["streamcluster", "dedup", "raytrace", "ebizzy", "dbench", "kernbench"];
/// The programs of our own figures: their locks differ most.
pub const OWN: [&str; 5] = ["ticket", "hackbench", "kernbench", "dbench", "ebizzy"];

pub fn named(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|w| w.name == name)
}

/// All of these. Pre: they exist; a test checks it.
pub fn all_named(names: &[&str]) -> Vec<&'static Workload> {
    names.iter().filter_map(|n| named(n)).collect()
}

/// A duration of this mean, at least 1.
pub fn about(mean: u64, random: &mut fastrand::Rng) -> u64 {
    let exponential = -(1.0 - random.f64()).ln();
    ((mean as f64) * (0.5 + 0.5 * exponential)).max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_name_workloads() {
        assert_eq!(all_named(&PAPER).len(), PAPER.len());
        assert_eq!(all_named(&OWN).len(), OWN.len());
    }
}
