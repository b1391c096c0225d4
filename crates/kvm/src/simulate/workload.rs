//! The guests' workloads. Times are means, in cycles: half of each is fixed, the rest is
//! exponentially distributed.

use super::lock::Kind;

#[derive(Debug)]
pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: Kind,
    /// Number of locks in a VM; each operation takes one at random.
    pub locks: usize,
    pub critical: u64,
    /// Cycles between two operations.
    pub outside: u64,
    /// Whether the time outside is in user mode: directed yields skip a vCPU preempted there.
    pub user: bool,
    /// Number of operations of each vCPU after which all vCPUs of a VM meet.
    pub barrier: Option<u32>,
    /// Mean number of operations after which a vCPU waits for an outside event, and for how long.
    pub sleep: Option<(u32, u64)>,
}

/// One ticket lock in kernel mode, without barriers and sleep: workloads name their differences.
const KERNEL: Workload = Workload {
    name: "",
    about: "",
    kind: Kind::Ticket,
    locks: 1,
    critical: 0,
    outside: 0,
    user: false,
    barrier: None,
    sleep: None,
};
const USER: Workload = Workload { user: true, ..KERNEL };

pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "ticket",
        about: "one ticket lock, and little else",
        critical: 2_000,
        outside: 9_000,
        ..KERNEL
    },
    Workload {
        name: "hackbench",
        about: "messages: short critical sections of 8 ticket locks",
        locks: 8,
        critical: 300,
        outside: 3_000,
        ..KERNEL
    },
    Workload {
        name: "kernbench",
        about: "compiling: user mode, and now and then one of 16 ticket locks",
        locks: 16,
        critical: 1_000,
        outside: 20_000,
        ..USER
    },
    Workload {
        name: "dbench",
        about: "files: long critical sections of one TTAS lock, and waiting for disks",
        kind: Kind::Ttas,
        critical: 12_000,
        outside: 60_000,
        sleep: Some((100, 300_000)),
        ..KERNEL
    },
    Workload {
        name: "ebizzy",
        about: "page faults: one TTAS lock that is busy most of the time",
        kind: Kind::Ttas,
        critical: 4_000,
        outside: 20_000,
        ..USER
    },
    Workload {
        name: "streamcluster",
        about: "a barrier after each operation: the lock of a futex bucket, then sleep",
        critical: 1_500,
        outside: 60_000,
        barrier: Some(1),
        ..USER
    },
    Workload {
        name: "dedup",
        about: "a pipeline: page faults and queues under 4 ticket locks, short sleeps",
        locks: 4,
        critical: 3_000,
        outside: 15_000,
        sleep: Some((50, 200_000)),
        ..USER
    },
    Workload {
        name: "raytrace",
        about: "user mode, and now and then the one ticket lock of a task queue",
        critical: 2_000,
        outside: 100_000,
        ..USER
    },
    Workload {
        name: "barrier",
        about: "a queued lock, and a barrier of all vCPUs every 50 operations",
        kind: Kind::Queue,
        critical: 1_500,
        outside: 40_000,
        barrier: Some(50),
        ..USER
    },
];

/// The programs of APPLE's Figs. 3 and 4, in their order.
pub const PAPER: [&str; 6] =
    ["streamcluster", "dedup", "raytrace", "ebizzy", "dbench", "kernbench"];
/// The programs of our own figures: those whose locks differ most.
pub const OWN: [&str; 5] = ["ticket", "hackbench", "kernbench", "dbench", "ebizzy"];

pub fn named(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|w| w.name == name)
}

/// The workloads of these names, which must exist; a test checks that.
pub fn all_named(names: &[&str]) -> Vec<&'static Workload> {
    names.iter().filter_map(|n| named(n)).collect()
}

/// Returns a random duration of this mean, at least 1.
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
