//! Counts of a VM, from bpf/kvm.bpf.c, and values derived from them.

use bytemuck::{Pod, Zeroable};
use serde::Serialize;

use crate::words::combine;

/// `KVM_BUCKETS` in bpf/kvm.h.
pub const BUCKETS: usize = 64;

/// A histogram of times: bucket 0 is below 2^10 ns, then two buckets follow per doubling.
pub type Histogram = [u64; BUCKETS];

/// `struct kvm_counts` of bpf/kvm.h, which documents it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Serialize, Zeroable)]
pub struct Counts {
    pub entries: u64,
    pub exits: u64,
    pub guest_ns: u64,
    pub pause_exits: u64,
    pub spin_ns: u64,
    pub switch_ns: u64,
    pub back_to_same: u64,
    pub back_to_other: u64,
    pub left: u64,
    pub yields: u64,
    pub yields_done: u64,
    pub wakeups: u64,
    pub slept: u64,
    pub polls: u64,
    pub poll_hits: u64,
    pub poll_hit_ns: u64,
    pub poll_miss_ns: u64,
    pub poll_grows: u64,
    pub poll_shrinks: u64,
    pub window_sum: u64,
    pub poll_window_sum: u64,
    #[serde(skip)]
    pub vcpus: u64,
    #[serde(skip)]
    pub switches: Histogram,
    #[serde(skip)]
    pub halts: Histogram,
}

impl Counts {
    pub fn plus(&self, other: &Counts) -> Counts {
        Counts { vcpus: self.vcpus.max(other.vcpus), ..combine(self, other, u64::wrapping_add) }
    }

    pub fn since(&self, before: &Counts) -> Counts {
        Counts { vcpus: self.vcpus, ..combine(self, before, u64::saturating_sub) }
    }

    /// APPLE's inefficiency: spinning that ended with a pause-loop exit, and the switches after
    /// such exits, as a share of CPU time. CPU time is guest time plus those switches. Returns None
    /// if the VM did not run.
    pub fn inefficiency(&self) -> Option<f64> {
        ratio(self.spin_ns + self.switch_ns, self.guest_ns + self.switch_ns)
    }

    /// Mean time in ns from a PAUSE exit until the CPU does useful work again.
    pub fn switch(&self) -> Option<f64> {
        ratio(self.switch_ns, self.back_to_same + self.back_to_other + self.left)
    }

    /// Mean pause-loop window, in the CPU's unit.
    pub fn window(&self) -> Option<f64> {
        ratio(self.window_sum, self.pause_exits)
    }

    /// Mean poll window after a change, in ns.
    pub fn poll_window(&self) -> Option<f64> {
        ratio(self.poll_window_sum, self.poll_grows + self.poll_shrinks)
    }

    pub fn yields_done(&self) -> Option<f64> {
        ratio(self.yields_done, self.yields)
    }

    pub fn poll_hits(&self) -> Option<f64> {
        ratio(self.poll_hits, self.polls)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The exclusive upper bound of a bucket, in ns; meaningless for the last bucket.
pub fn bound(bucket: usize) -> u64 {
    // 2^10, then alternately 1.5 and 2 times a power of two.
    let doubling = bucket / 2 + 9;
    if bucket % 2 == 1 { 3 << doubling } else { 2 << doubling }
}

/// The bucket of a time, as in bpf/kvm.bpf.c.
pub fn bucket(ns: u64) -> usize {
    if ns < 1024 {
        return 0;
    }
    let log = ns.ilog2() as usize;
    (1 + (log - 10) * 2 + (ns >> (log - 1) & 1) as usize).min(BUCKETS - 1)
}

/// The bound in ns below which at least `share` of the times are. Returns None if there are none.
pub fn quantile(histogram: &Histogram, share: f64) -> Option<u64> {
    let all: u64 = histogram.iter().sum();
    let wanted = (all as f64 * share).ceil().max(1.0) as u64;
    let mut sum = 0;
    let reached = |n: &u64| {
        sum += n;
        sum >= wanted
    };
    (all > 0).then(|| histogram.iter().position(reached).map(bound)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_buckets() {
        assert_eq!([bound(0), bound(1), bound(2), bound(3)], [1024, 1536, 2048, 3072]);
        for i in 0..BUCKETS - 1 {
            assert_eq!(bucket(bound(i) - 1), i, "{i}");
            assert_eq!(bucket(bound(i)), i + 1, "{i}");
        }
    }

    #[test]
    fn from_memory_and_back() {
        let words: Vec<u64> = (0..size_of::<Counts>() as u64 / 8).collect();
        let counts: Counts = *bytemuck::from_bytes(bytemuck::cast_slice(&words));
        assert_eq!((counts.entries, counts.pause_exits, counts.vcpus), (0, 3, 21));
        assert_eq!((counts.switches[0], counts.halts[BUCKETS - 1]), (22, 21 + 2 * BUCKETS as u64));
        let twice = counts.plus(&counts);
        assert_eq!((twice.exits, twice.vcpus, twice.halts[1]), (2, 21, counts.halts[1] * 2));
        assert_eq!(twice.since(&counts), counts);
    }

    #[test]
    fn what_follows() {
        let idle = Counts::zeroed();
        assert_eq!((idle.inefficiency(), idle.switch(), idle.poll_hits()), (None, None, None));
        let counts = Counts {
            guest_ns: 800,
            spin_ns: 300,
            switch_ns: 200,
            pause_exits: 5,
            back_to_same: 1,
            back_to_other: 2,
            left: 1,
            ..idle
        };
        assert_eq!(counts.inefficiency(), Some(0.5));
        assert_eq!(counts.switch(), Some(50.0));
    }

    #[test]
    fn quantiles() {
        let mut histogram = [0; BUCKETS];
        assert_eq!(quantile(&histogram, 0.5), None);
        (histogram[0], histogram[10], histogram[20]) = (50, 49, 1);
        assert_eq!(quantile(&histogram, 0.5), Some(1024));
        assert_eq!(quantile(&histogram, 0.99), Some(bound(10)));
        assert_eq!(quantile(&histogram, 1.0), Some(bound(20)));
    }
}
