//! Statistics and reports of a run.

use bytemuck::{Pod, Zeroable};
use serde::Serialize;

use super::host::{Host, Vm};
use crate::words;

/// Cycles of a physical CPU. They add up to all cycles since counting began.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Serialize, Zeroable)]
pub struct Times {
    pub useful: u64,
    pub spin: u64,
    /// PLE exits, and the switches after directed yields
    pub ple: u64,
    /// Switches that directed yields caused on the CPUs of their targets
    pub remote: u64,
    pub switch: u64,
    pub poll: u64,
    pub idle: u64,
}

/// Statistics of a VM. Times are in cycles.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Stats {
    pub operations: u64,
    pub cpu: u64,
    pub spin: u64,
    /// Part of `spin` that ended in a PLE exit.
    pub wasted_spin: u64,
    pub ple: u64,
    /// Switches that the VM's yields caused on other CPUs.
    pub remote: u64,
    pub exits: u64,
    pub tried: u64,
    pub yielded: u64,
}

/// A point of the path over time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    pub seconds: f64,
    /// The first VM's base window T under APPLE.
    pub window: Option<u32>,
}

#[derive(Clone, Debug, Serialize)]
pub struct VmReport {
    /// Operations per second.
    pub throughput: f64,
    pub ple_exits: u64,
    pub yields_tried: u64,
    pub yields_successful: u64,
    /// Spins that ended in a PLE exit, and the switches after them, as parts of the VM's CPU time.
    pub wasted_spinning: f64,
    pub wasted_switches: f64,
    /// The sum of the two.
    pub inefficiency: f64,
    /// Switches that the VM's yields caused on other CPUs; not part of the inefficiency.
    pub remote_switches: f64,
    /// All spins, with and without a PLE exit.
    pub spinning: f64,
    /// In cycles. With KVM's rule, the mean over the vCPUs; null if PLE is off.
    pub window_at_end: Option<u32>,
    /// APPLE's rounds of three epochs, and how many of them moved T.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apple_rounds_and_moves: Option<(u32, u32)>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Simulated time after the warm-up.
    pub seconds: f64,
    /// Operations per second of all VMs.
    pub throughput: f64,
    pub inefficiency: f64,
    pub spinning: f64,
    pub vms: Vec<VmReport>,
    /// Cycles of all physical CPUs.
    pub cpu_cycles: Times,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Point>,
    /// The first VM's window in cycles after each 1000 of its PLE exits: APPLE's T, or the mean
    /// over its vCPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<u32>,
}

fn part(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

impl Host {
    /// The report about the time since the warm-up.
    pub fn report(self) -> Report {
        let seconds = (self.now - self.warm) as f64 / self.second();
        let all = words::total(self.vms.iter().map(|vm| &vm.stats));
        let vm = |(i, vm): (usize, &Vm)| {
            let s = &vm.stats;
            VmReport {
                throughput: s.operations as f64 / seconds,
                ple_exits: s.exits,
                yields_tried: s.tried,
                yields_successful: s.yielded,
                wasted_spinning: part(s.wasted_spin, s.cpu),
                wasted_switches: part(s.ple, s.cpu),
                inefficiency: part(s.wasted_spin + s.ple, s.cpu),
                remote_switches: part(s.remote, s.cpu),
                spinning: part(s.spin, s.cpu),
                window_at_end: self.window_of(i),
                apple_rounds_and_moves: vm.controller.as_ref().map(|c| c.apple.rounds()),
            }
        };
        Report {
            seconds,
            throughput: all.operations as f64 / seconds,
            inefficiency: part(all.wasted_spin + all.ple, all.cpu),
            spinning: part(all.spin, all.cpu),
            vms: self.vms.iter().enumerate().map(vm).collect(),
            cpu_cycles: words::total(self.cpus.iter().map(|c| &c.times)),
            path: self.points,
            epochs: self.epochs,
        }
    }

    pub(super) fn window_of(&self, vm: usize) -> Option<u32> {
        if let Some(controller) = &self.vms[vm].controller {
            return Some(controller.apple.base());
        }
        let n = self.config.vcpus;
        let windows = (vm * n..(vm + 1) * n).map(|id| self.window(id).map(u64::from));
        let sum: u64 = windows.sum::<Option<u64>>()?;
        Some((sum / n as u64) as u32)
    }
}
