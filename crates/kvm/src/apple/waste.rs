//! Cost of pause-loop exits: the inefficiency that APPLE minimizes.

use super::device::{Counters, Module};
use crate::host;
use crate::words::combine;

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

    /// A part of the waste as a share of the time.
    pub fn share(&self, part: u64) -> f64 {
        if self.time == 0 { 0.0 } else { part as f64 / self.time as f64 }
    }
}

impl Counters {
    /// Returns None if a counter decreased: a VM of the process has ended.
    pub fn since(&self, before: &Counters) -> Option<Counters> {
        let grown = combine(self, before, u64::saturating_sub);
        let is_growth = combine(before, &grown, u64::saturating_add) == *self;
        is_growth.then_some(grown)
    }

    /// unit: TSC cycles per unit of a window.
    pub fn waste(&self, unit: f64) -> Waste {
        // A vCPU cannot have spun for longer than it was in the guest.
        let spinning = ((self.spun as f64 * unit) as u64).min(self.before);
        Waste { spinning, switches: self.switches, time: self.guest + self.switches }
    }
}

/// TSC cycles per unit of a window. AMD's window counts PAUSEs, which are timed on this CPU.
pub fn window_unit(module: &Module) -> f64 {
    if module.vendor == host::INTEL {
        return 1.0;
    }
    host::pause_ns() * module.tsc_khz as f64 / 1e6
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
        assert!((waste.share(waste.total()) - 2300.0 / 9300.0).abs() < 1e-9);
    }

    #[test]
    fn spinning_is_no_more_than_the_time_in_the_guest() {
        assert_eq!(COUNTERS.waste(1000.0).spinning, 5000);
    }

    #[test]
    fn nothing_is_wasted_of_nothing() {
        assert_eq!(Counters::default().waste(1.0).share(0), 0.0);
    }

    #[test]
    fn differences() {
        assert_eq!(COUNTERS.since(&COUNTERS), Some(Counters::default()));
        assert_eq!(Counters::default().since(&COUNTERS), None);
    }
}
