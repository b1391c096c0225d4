//! State of a VM under APPLE: its epochs, and the counters for the reports.

use super::device::{Counters, Vm};
use super::waste::Waste;
use crate::adapt::{Apple, Limits};

pub struct Machine {
    /// As read last.
    pub vm: Vm,
    pub program: String,
    pub apple: Apple,
    /// Counters at the begin of the epoch, and at the last report.
    epoch_began: Counters,
    shown: Counters,
}

/// A VM, with its counters and waste since the last report.
pub struct Interval<'a> {
    pub machine: &'a Machine,
    pub counters: Counters,
    pub waste: Waste,
}

impl Machine {
    pub fn new(vm: &Vm, limits: Limits, start: u32) -> Machine {
        Machine {
            vm: vm.clone(),
            program: os::process::name(vm.pid),
            apple: Apple::new(limits, start),
            epoch_began: vm.counters,
            shown: vm.counters,
        }
    }

    pub fn see(&mut self, vm: &Vm) {
        if vm.counters.since(&self.vm.counters).is_none() {
            // A counter decreased: a VM of the process has ended, and its counts with it.
            self.epoch_began = vm.counters;
            self.shown = vm.counters;
        }
        self.vm = vm.clone();
    }

    /// End the epoch if it has had at least `exits` PLE exits. Returns the next epoch's window, or
    /// None if the epoch continues. unit: TSC cycles per unit of a window.
    pub fn end_epoch(&mut self, exits: u64, unit: f64) -> Option<u32> {
        let counters = self.vm.counters.since(&self.epoch_began)?;
        if counters.ple < exits {
            return None;
        }
        self.epoch_began = self.vm.counters;
        let waste = counters.waste(unit);
        Some(self.apple.epoch(waste.total(), waste.time))
    }

    pub fn interval(&mut self, unit: f64) -> Interval<'_> {
        let counters = self.vm.counters.since(&self.shown).unwrap_or_default();
        self.shown = self.vm.counters;
        Interval { machine: self, counters, waste: counters.waste(unit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ple: u64, guest: u64) -> Vm {
        // Each exit spins for a window of 100.
        let counters = Counters {
            entries: ple,
            ple,
            spun: 100 * ple,
            before: guest,
            guest,
            ..Counters::default()
        };
        Vm { pid: 0, vcpus: 2, window: None, own: 4096, counters }
    }

    fn limits() -> Limits {
        Limits { lower: 100, upper: 10_000, step: 100, ..Limits::default() }
    }

    #[test]
    fn an_epoch_ends_with_so_many_exits() {
        let mut machine = Machine::new(&seen(500, 500_000), limits(), 4096);
        assert_eq!(machine.end_epoch(1000, 1.0), None);
        machine.see(&seen(1499, 1_499_000));
        assert_eq!(machine.end_epoch(1000, 1.0), None);
        machine.see(&seen(1500, 1_500_000));
        assert_eq!(machine.end_epoch(1000, 1.0), Some(4196));
        assert_eq!(machine.end_epoch(1000, 1.0), None);
    }

    #[test]
    fn the_window_goes_where_less_is_wasted() {
        let mut machine = Machine::new(&seen(0, 0), limits(), 4096);
        let (mut ple, mut guest) = (0, 0);
        // Model: the guest time between two exits is inversely proportional to the window.
        for _ in 0..300 {
            ple += 1000;
            guest += 1000 * 20_000_000 / u64::from(machine.apple.threshold());
            machine.see(&seen(ple, guest));
            assert!(machine.end_epoch(1000, 1.0).is_some());
        }
        assert_eq!(machine.apple.base(), 100);
        assert!(machine.apple.rounds().1 >= 40);
    }

    #[test]
    fn counters_that_went_back_begin_a_new_epoch() {
        let mut machine = Machine::new(&seen(5000, 5_000_000), limits(), 4096);
        machine.see(&seen(100, 100_000));
        assert_eq!(machine.end_epoch(1000, 1.0), None);
        assert_eq!(machine.interval(1.0).counters.ple, 0);
        machine.see(&seen(1100, 1_100_000));
        assert!(machine.end_epoch(1000, 1.0).is_some());
        assert_eq!(machine.interval(1.0).counters.ple, 1000);
    }
}
