//! The measurement from which the model's costs are fitted, beside the model's results. A
//! kernel-mode guest takes a ticket lock, in 2 VMs of 2 vCPUs on 2 pCPUs, in an emulator with VMX
//! and PLE (docs/operate/kvm-simulation.md).

use super::figures::{Setup, groups, inefficiency, run_seeds, series};
use super::host::Config;
use super::plot::{Plot, Shape};
use super::run::spread;
use super::table::{Figure, Table};
use super::window::Policy;
use super::workload::WORKLOADS;

/// The policy, the measured inefficiency (if measured), and 1000 operations per second of each VM.
const MEASURED: [(Policy, Option<f64>, f64); 6] = [
    (Policy::Fixed(512), Some(0.40), 4.5),
    (Policy::Fixed(2048), Some(0.49), 3.8),
    (Policy::Fixed(8192), Some(0.67), 2.5),
    (Policy::Fixed(16_384), Some(0.78), 1.65),
    (Policy::Kvm, None, 2.9),
    (Policy::Off, None, 0.35),
];

/// Clock of the emulated machine, fitted. A slice of 3 ms has fewer cycles than by default.
const MHZ: u64 = 80;

pub fn figure(setup: &Setup) -> Figure {
    let base = Config {
        mhz: MHZ,
        scheduler: setup.scheduler.unwrap_or_default(),
        pcpus: 2,
        vms: 2,
        vcpus: 2,
        phases: vec![(0.0, &WORKLOADS[0])],
        seconds: 10.0,
        warm_up: 0.1,
        stacked: true,
        ..setup.base.clone()
    };
    let configs = MEASURED.map(|(policy, _, _)| Config { policy, ..base.clone() });
    let found = run_seeds(configs.into_iter(), setup.seeds);
    let title = "Calibration: 2 pCPUs, 2 VMs of 2 vCPUs, ticket lock";
    let columns =
        ["window", "inefficiency: measured", "model", "1000 operations/s: measured", "model"];
    let mut table = Table::new(title, columns);
    let mut rows = Vec::new();
    for ((policy, measured, rate), seeds) in MEASURED.iter().zip(&found) {
        let model = spread(seeds.iter().map(|r| r.throughput / 2e3)).median;
        let percent = |share: f64| format!("{:.0}%", 100.0 * share);
        let wasted = Some(inefficiency(seeds).median).filter(|_| *policy != Policy::Off);
        let shares = [*measured, wasted].map(|share| share.map_or("-".into(), percent));
        let rates = [rate.to_string(), format!("{model:.2}")];
        table.row(policy.to_string(), shares.into_iter().chain(rates));
        rows.push(vec![*rate, model]);
    }
    let plot = Plot {
        name: "kvm-calibration",
        title: title.into(),
        x: "PLE window, cycles",
        y: "1000 operations/s of each VM",
        shape: Shape::Bars(vec!["512", "2048", "8192", "16384", "KVM", "off"]),
        series: series(["measured", "model"], &groups(rows)),
    };
    Figure { figure: "calibration", tables: vec![table], plots: vec![plot] }
}
