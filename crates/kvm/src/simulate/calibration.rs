//! The measurement from which the costs of `Machine` are fitted, beside the model's results. A
//! kernel-mode guest takes a ticket lock, in 2 VMs of 2 vCPUs on 2 pCPUs, in an emulator with VMX
//! and PLE (docs/operate/kvm-simulation.md).

use super::figures::Setup;
use super::host::{Config, Machine};
use super::plot::{Plot, Shape};
use super::run::{middle, run_all};
use super::table::{Figure, Table};
use super::window::{AppleSetup, Policy};
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

/// Clock of the emulated machine, fitted. A slice of 3 ms has fewer cycles than on
/// Machine::DEFAULT.
const MHZ: u64 = 80;

pub fn figure(setup: &Setup) -> Figure {
    let configs = MEASURED.iter().flat_map(|&(policy, _, _)| {
        (0..setup.seeds).map(move |seed| Config {
            machine: Machine { mhz: MHZ, ..setup.machine(super::scheduler::Rule::Eevdf) },
            pcpus: 2,
            vms: 2,
            vcpus: 2,
            phases: vec![(0.0, &WORKLOADS[0])],
            policy,
            apple: AppleSetup::PAPER,
            seconds: 10.0,
            warm_up: 0.1,
            seed: setup.seed + seed,
            stacked: true,
            samples: 0,
            epochs: false,
        })
    });
    let mut reports = run_all(configs.collect()).into_iter();
    let title = "Calibration: 2 pCPUs, 2 VMs of 2 vCPUs, ticket lock";
    let mut table = Table::new(title, &["window", "inefficiency: measured", "model"]);
    table.columns.extend(["1000 operations/s: measured", "model"].map(String::from));
    let mut series =
        [("measured".to_string(), Vec::new()), ("model".to_string(), Vec::<(f64, f64)>::new())];
    for (i, (policy, inefficiency, rate)) in MEASURED.iter().enumerate() {
        let seeds: Vec<_> = reports.by_ref().take(setup.seeds as usize).collect();
        let model = middle(seeds.iter().map(|r| r.throughput / 2e3)).median;
        let wasted = middle(seeds.iter().map(|r| r.inefficiency)).median;
        table.rows.push(vec![
            policy.to_string(),
            inefficiency.map_or("-".into(), |v| format!("{:.0}%", 100.0 * v)),
            if *policy == Policy::Off { "-".into() } else { format!("{:.0}%", 100.0 * wasted) },
            format!("{rate}"),
            format!("{model:.2}"),
        ]);
        series[0].1.push((i as f64, *rate));
        series[1].1.push((i as f64, model));
    }
    let plot = Plot {
        name: "kvm-calibration",
        title: title.into(),
        x: "PLE window, cycles",
        y: "1000 operations/s of each VM",
        shape: Shape::Bars(vec!["512", "2048", "8192", "16384", "KVM", "off"]),
        series: series.into(),
    };
    Figure { figure: "calibration", tables: vec![table], plots: vec![plot] }
}
