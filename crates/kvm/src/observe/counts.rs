//! Counts of a VM, from bpf/kvm.bpf.c, and values derived from them.

use serde::Serialize;

/// `KVM_BUCKETS` in bpf/kvm.h.
pub const BUCKETS: usize = 64;

/// A histogram of times: bucket 0 is below 2^10 ns, then two buckets follow per doubling.
pub type Histogram = [u64; BUCKETS];

macro_rules! counts {
    ($($name:ident),*) => {
        /// `struct kvm_counts` of bpf/kvm.h, which documents it.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct Counts {
            $(pub $name: u64,)*
            #[serde(skip)]
            pub vcpus: u64,
            #[serde(skip)]
            pub switches: Histogram,
            #[serde(skip)]
            pub halts: Histogram,
        }

        impl Counts {
            pub const BYTES: usize = ([$(stringify!($name),)*].len() + 1 + 2 * BUCKETS) * 8;

            pub fn zero() -> Counts {
                Counts { $($name: 0,)* vcpus: 0, switches: [0; BUCKETS], halts: [0; BUCKETS] }
            }

            /// Returns None if `bytes` has another length.
            pub fn parse(bytes: &[u8]) -> Option<Counts> {
                if bytes.len() != Counts::BYTES {
                    return None;
                }
                let mut words = bytes.chunks_exact(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap_or_default()));
                let mut next = || words.next().unwrap_or_default();
                Some(Counts {
                    $($name: next(),)*
                    vcpus: next(),
                    switches: std::array::from_fn(|_| next()),
                    halts: std::array::from_fn(|_| next()),
                })
            }

            fn merge(&self, other: &Counts, with: impl Fn(u64, u64) -> u64) -> Counts {
                Counts {
                    $($name: with(self.$name, other.$name),)*
                    vcpus: self.vcpus.max(other.vcpus),
                    switches: std::array::from_fn(|i| with(self.switches[i], other.switches[i])),
                    halts: std::array::from_fn(|i| with(self.halts[i], other.halts[i])),
                }
            }
        }
    };
}

counts!(
    entries,
    exits,
    guest_ns,
    pause_exits,
    spin_ns,
    switch_ns,
    back_to_same,
    back_to_other,
    left,
    yields,
    yields_done,
    wakeups,
    slept,
    polls,
    poll_hits,
    poll_hit_ns,
    poll_miss_ns,
    poll_grows,
    poll_shrinks,
    window_sum,
    poll_window_sum
);

impl Counts {
    pub fn plus(&self, other: &Counts) -> Counts {
        self.merge(other, u64::wrapping_add)
    }

    pub fn since(&self, before: &Counts) -> Counts {
        self.merge(before, u64::saturating_sub)
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

    /// The bucket of a time, as in bpf/kvm.bpf.c.
    fn bucket(ns: u64) -> usize {
        if ns < 1024 {
            return 0;
        }
        let log = ns.ilog2() as usize;
        (1 + (log - 10) * 2 + (ns >> (log - 1) & 1) as usize).min(BUCKETS - 1)
    }

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
        let words: Vec<u64> = (0..Counts::BYTES as u64 / 8).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let counts = Counts::parse(&bytes).expect("it is as long");
        assert_eq!((counts.entries, counts.pause_exits, counts.vcpus), (0, 3, 21));
        assert_eq!((counts.switches[0], counts.halts[BUCKETS - 1]), (22, 21 + 2 * BUCKETS as u64));
        assert_eq!(Counts::parse(&bytes[8..]), None);
        let twice = counts.plus(&counts);
        assert_eq!((twice.exits, twice.vcpus, twice.halts[1]), (2, 21, counts.halts[1] * 2));
        assert_eq!(twice.since(&counts), counts);
    }

    #[test]
    fn what_follows() {
        let idle = Counts::zero();
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
