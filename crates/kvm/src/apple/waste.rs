//! Cost of pause-loop exits: the inefficiency that APPLE minimizes.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use super::device::{Counters, Module, Vendor};

/// TSC cycles within a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waste {
    /// Useless spinning: it ended with a pause-loop exit.
    pub spinning: u64,
    /// From such an exit until the CPU entered a vCPU again, ran another thread, or went idle.
    pub switches: u64,
    /// In the guest, and in those switches.
    pub time: u64,
}

impl Waste {
    pub fn total(&self) -> u64 {
        self.spinning + self.switches
    }

    /// The waste as a share of the time.
    pub fn inefficiency(&self) -> f64 {
        share(self.total(), self.time)
    }
}

pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Counters {
    /// Returns None if a counter decreased: a VM of the process has ended.
    pub fn since(&self, before: &Counters) -> Option<Counters> {
        Some(Counters {
            entries: self.entries.checked_sub(before.entries)?,
            applied: self.applied.checked_sub(before.applied)?,
            ple: self.ple.checked_sub(before.ple)?,
            spun: self.spun.checked_sub(before.spun)?,
            before: self.before.checked_sub(before.before)?,
            switches: self.switches.checked_sub(before.switches)?,
            guest: self.guest.checked_sub(before.guest)?,
        })
    }

    /// unit: TSC cycles per unit of a window.
    pub fn waste(&self, unit: f64) -> Waste {
        // A vCPU cannot have spun for longer than it was in the guest.
        let spinning = ((self.spun as f64 * unit) as u64).min(self.before);
        Waste { spinning, switches: self.switches, time: self.guest + self.switches }
    }
}

/// TSC cycles per unit of a window. AMD's window counts PAUSEs, whose length differs between
/// processors by an order of magnitude. So an iteration of a waiting loop is timed on this CPU.
pub fn window_unit(module: &Module) -> f64 {
    match module.vendor {
        Vendor::Intel => 1.0,
        Vendor::Amd => turn_ns() * module.tsc_khz as f64 / 1e6,
    }
}

/// Time of one iteration in ns: the least of several batches, because interrupts only add time.
fn turn_ns() -> f64 {
    const TURNS: u32 = 10_000;
    let word = AtomicU32::new(0);
    let batch = || {
        let begin = Instant::now();
        for _ in 0..TURNS {
            if black_box(&word).load(Relaxed) != 0 {
                break;
            }
            spin_loop();
        }
        begin.elapsed().as_nanos() as f64 / f64::from(TURNS)
    };
    (0..10).map(|_| batch()).fold(f64::MAX, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTERS: Counters = Counters {
        entries: 100,
        applied: 0,
        ple: 10,
        spun: 1000,
        before: 5000,
        switches: 300,
        guest: 9000,
    };

    #[test]
    fn spinning_is_what_the_windows_say() {
        let waste = COUNTERS.waste(2.0);
        assert_eq!(waste, Waste { spinning: 2000, switches: 300, time: 9300 });
        assert!((waste.inefficiency() - 2300.0 / 9300.0).abs() < 1e-9);
    }

    #[test]
    fn spinning_is_no_more_than_the_time_in_the_guest() {
        assert_eq!(COUNTERS.waste(1000.0).spinning, 5000);
    }

    #[test]
    fn nothing_is_wasted_of_nothing() {
        assert_eq!(Counters::default().waste(1.0).inefficiency(), 0.0);
    }

    #[test]
    fn differences() {
        assert_eq!(COUNTERS.since(&COUNTERS), Some(Counters::default()));
        assert_eq!(Counters::default().since(&COUNTERS), None);
    }

    #[test]
    fn a_turn_takes_time() {
        assert!(turn_ns() > 0.0);
    }
}
