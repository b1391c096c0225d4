//! APPLE's figures: the runs that each needs, and what it shows. own.rs has our own figures.

use std::cell::LazyCell;

use clap::ValueEnum;
use ui::number::Spread;
use ui::text::plural;

use super::host::Config;
use super::plot::{Plot, Series, Shape};
use super::run::{run_all, spread};
use super::scheduler::Rule;
use super::stats::Report;
use super::table::{Figure, Table};
use super::window::{AppleSetup, Policy};
use super::workload::{PAPER, Workload, all_named};
use super::{calibration, own};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// APPLE's Fig. 1: fixed windows against KVM's default, 2 VMs
    #[value(name = "1")]
    One,
    /// APPLE's Fig. 3: default, APPLE, best and worst fixed window, 2 VMs
    #[value(name = "3")]
    Three,
    /// APPLE's Fig. 4: the same with 4 VMs
    #[value(name = "4")]
    Four,
    /// APPLE's Fig. 5: dbench's inefficiency by window, 2 VMs
    #[value(name = "5")]
    Five,
    /// APPLE's Fig. 6: the window over epochs by KVM's own rule
    #[value(name = "6")]
    Six,
    /// APPLE's Fig. 7: the window over epochs under APPLE
    #[value(name = "7")]
    Seven,
    /// Ours: throughput and inefficiency of five kinds of locks by window
    Windows,
    /// Ours: settings of APPLE, and KVM's default, against the best window
    Rules,
    /// Ours: one VM, so no overcommitment
    OneVm,
    /// Ours: APPLE while the workload changes
    Change,
    /// Ours: the best window by the number of VMs
    Vms,
    /// The measurement that gives the model's costs
    Calibration,
    /// All figures
    All,
}

pub const WINDOWS: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
/// Number of WINDOWS up to 32768, the paper's largest window.
const PAPERS_WINDOWS: usize = 7;
/// APPLE with the paper's parameters.
const PAPERS_APPLE: Policy = Policy::Apple(AppleSetup::PAPER);

/// Settings common to all figures.
pub struct Setup {
    /// CPUs and vCPUs, the first seed, and the simulated time of runs with APPLE. Other runs take a
    /// fifth of it.
    pub base: Config,
    /// Overrides the figure's number of VMs.
    pub vms: Option<usize>,
    /// None: CFS in the paper's figures, as on its hosts, and EEVDF in ours.
    pub scheduler: Option<Rule>,
    pub seeds: u64,
}

/// The host of a figure.
pub struct HostOf {
    pub base: Config,
    seeds: u64,
}

/// Indexed by workload, policy and seed.
pub type Sweep = Vec<Vec<Vec<Report>>>;

impl Setup {
    fn host(&self, vms: usize, rule: Rule) -> HostOf {
        let scheduler = self.scheduler.unwrap_or(rule);
        let base = Config { scheduler, vms: self.vms.unwrap_or(vms), ..self.base.clone() };
        HostOf { base, seeds: self.seeds }
    }

    pub fn papers(&self, vms: usize) -> HostOf {
        self.host(vms, Rule::Cfs)
    }

    pub fn ours(&self, vms: usize) -> HostOf {
        self.host(vms, Rule::Eevdf)
    }
}

impl HostOf {
    /// The configuration of the first seed.
    pub fn config(&self, workload: &'static Workload, policy: Policy) -> Config {
        // APPLE needs time to find its window; other policies only need the guests to start.
        let (part, warm_up) = match policy {
            Policy::Apple(_) => (1.0, 0.6),
            _ => (0.2, 0.2),
        };
        let seconds = self.base.seconds * part;
        Config { phases: vec![(0.0, workload)], policy, seconds, warm_up, ..self.base.clone() }
    }

    /// Run all seeds of each workload with each policy.
    pub fn measure(&self, workloads: &[&'static Workload], policies: &[Policy]) -> Sweep {
        let configs = workloads.iter().flat_map(|w| policies.iter().map(|p| self.config(w, *p)));
        let mut cells = run_seeds(configs, self.seeds).into_iter();
        workloads.iter().map(|_| cells.by_ref().take(policies.len()).collect()).collect()
    }

    pub fn text(&self) -> String {
        let Config { pcpus, vms, vcpus, scheduler, .. } = &self.base;
        let (vms, seeds) = (plural(*vms as u64, "VM"), plural(self.seeds, "seed"));
        let rule = if *scheduler == Rule::Cfs { "CFS" } else { "EEVDF" };
        format!("{pcpus} pCPUs, {vms} of {vcpus} vCPUs, {rule}; {seeds}")
    }
}

/// Make each run with `seeds` seeds.
pub fn run_seeds(configs: impl Iterator<Item = Config>, seeds: u64) -> Vec<Vec<Report>> {
    let of_seeds = |c: Config| (0..seeds).map(move |i| Config { seed: c.seed + i, ..c.clone() });
    let reports = run_all(configs.flat_map(of_seeds).collect());
    reports.chunks(seeds as usize).map(<[Report]>::to_vec).collect()
}

pub fn fixed(windows: &[u32]) -> Vec<Policy> {
    windows.iter().map(|&w| Policy::Fixed(w)).collect()
}

pub fn throughput(reports: &[Report]) -> Spread {
    spread(reports.iter().map(|r| r.throughput))
}

pub fn inefficiency(reports: &[Report]) -> Spread {
    spread(reports.iter().map(|r| r.inefficiency))
}

/// Make the figures. Runs that several figures of ours show are made once.
pub fn make(name: Name, setup: &Setup) -> Vec<Figure> {
    use Name::{
        All, Calibration, Change, Five, Four, One, OneVm, Rules, Seven, Six, Three, Vms, Windows,
    };
    let sweep = LazyCell::new(|| own::sweep(&setup.ours(4)));
    let figures =
        [Calibration, One, Three, Four, Five, Six, Seven, Windows, Rules, OneVm, Change, Vms];
    let wanted = figures.into_iter().filter(|figure| name == All || name == *figure);
    wanted
        .map(|figure| match figure {
            Calibration => calibration::figure(setup),
            One => one(&setup.papers(2)),
            Three => against_fixed(&setup.papers(2), "3", "kvm-figure-3"),
            Four => against_fixed(&setup.papers(4), "4", "kvm-figure-4"),
            Five => five(&setup.papers(2)),
            Six => over_epochs(&setup.papers(2), "6", "kvm-figure-6", Policy::Kvm),
            Seven => over_epochs(&setup.papers(2), "7", "kvm-figure-7", PAPERS_APPLE),
            Windows => own::windows(&setup.ours(4), &sweep),
            Rules => own::rules(&setup.ours(4), &sweep),
            OneVm => own::one_vm(&setup.ours(1)),
            Change => own::change(&setup.ours(4)),
            Vms => own::by_vms(setup),
            All => unreachable!("it is no figure"),
        })
        .collect()
}

pub fn two_digits(value: f64) -> String {
    format!("{value:.2}")
}

/// Return a line or bars for each name, with the values of its column. `rows` begin with their
/// place on the x axis.
pub fn series<S: Into<String>>(
    names: impl IntoIterator<Item = S>,
    rows: &[(f64, Vec<f64>)],
) -> Series {
    let column = |i: usize| rows.iter().map(|(x, values)| (*x, values[i])).collect();
    names.into_iter().enumerate().map(|(i, name)| (name.into(), column(i))).collect()
}

/// Return the rows of `series` for groups of bars.
pub fn groups(rows: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    rows.into_iter().enumerate().map(|(i, values)| (i as f64, values)).collect()
}

fn one(host: &HostOf) -> Figure {
    const NAMES: [&str; 2] = ["dbench", "streamcluster"];
    let windows = &WINDOWS[..PAPERS_WINDOWS];
    let policies = [fixed(windows), vec![Policy::Kvm]].concat();
    let sweep = host.measure(&all_named(&NAMES), &policies);
    let title = format!("Throughput by fixed window, KVM's default = 1\n{}", host.text());
    let mut table = Table::new(&title, ["window"].iter().chain(&NAMES).copied());
    let mut rows = Vec::new();
    for (i, window) in windows.iter().enumerate() {
        let speed = |row: &Vec<Vec<Report>>| {
            throughput(&row[i]).median / throughput(&row[PAPERS_WINDOWS]).median
        };
        let speeds: Vec<f64> = sweep.iter().map(speed).collect();
        table.row(window.to_string(), speeds.iter().copied().map(two_digits));
        rows.push((f64::from(*window), speeds));
    }
    let plot = Plot {
        name: "kvm-figure-1",
        title: format!("Throughput by PLE window ({})", host.text()),
        x: "fixed PLE window, cycles",
        y: "throughput, KVM's default = 1",
        shape: Shape::Windows,
        series: series(NAMES, &rows),
    };
    Figure { figure: "1", tables: vec![table], plots: vec![plot] }
}

/// Figs. 3 and 4: throughput relative to KVM's default.
fn against_fixed(host: &HostOf, figure: &'static str, name: &'static str) -> Figure {
    const KVM: usize = PAPERS_WINDOWS;
    let windows = &WINDOWS[..PAPERS_WINDOWS];
    let others = [Policy::Kvm, PAPERS_APPLE, Policy::Apple(AppleSetup::STEADY)];
    let sweep = host.measure(&all_named(&PAPER), &[fixed(windows), others.to_vec()].concat());
    let title = format!("Throughput, KVM's default = 1\n{}", host.text());
    let columns =
        ["program", "default", "APPLE", "steady", "best fixed", "window", "worst fixed", "window"];
    let mut table = Table::new(&title, columns);
    let mut rows = Vec::new();
    for (name, row) in PAPER.iter().zip(&sweep) {
        let speeds: Vec<f64> = row.iter().map(|r| throughput(r).median).collect();
        let pick = |better: fn(f64, f64) -> bool| {
            (1..PAPERS_WINDOWS)
                .fold(0, |best, w| if better(speeds[w], speeds[best]) { w } else { best })
        };
        let (best, worst) = (pick(|a, b| a > b), pick(|a, b| a < b));
        let shown = [KVM, KVM + 1, KVM + 2, best, worst].map(|at| speeds[at] / speeds[KVM]);
        let mut cells = shown.map(two_digits).to_vec();
        cells.insert(4, windows[best].to_string());
        cells.push(windows[worst].to_string());
        table.row(*name, cells);
        rows.push(shown.to_vec());
    }
    let mean =
        |i: usize| (rows.iter().map(|row| row[i].ln()).sum::<f64>() / rows.len() as f64).exp();
    let means: Vec<f64> = (0..5).map(mean).collect();
    let mut cells: Vec<String> = means.iter().copied().map(two_digits).collect();
    cells.insert(4, String::new());
    cells.push(String::new());
    table.row("geometric mean", cells);
    rows.push(means);
    table.note = "APPLE: the paper's parameters\n\
                  steady: ours, epochs of 4000 exits and a margin of 5 %"
        .into();
    let names = ["default", "APPLE", "steady", "best fixed", "worst fixed"];
    let plot = Plot {
        name,
        title: format!("APPLE and fixed windows ({})", host.text()),
        x: "program",
        y: "throughput, KVM's default = 1",
        shape: Shape::Bars(PAPER.into_iter().chain(["geometric mean"]).collect()),
        series: series(names, &groups(rows)),
    };
    Figure { figure, tables: vec![table], plots: vec![plot] }
}

fn five(host: &HostOf) -> Figure {
    let policies = [fixed(&WINDOWS[..PAPERS_WINDOWS]), vec![Policy::Kvm, PAPERS_APPLE]].concat();
    let sweep = host.measure(&all_named(&["dbench"]), &policies);
    let title = format!("dbench's inefficiency, % of CPU time, by window\n{}", host.text());
    let mut table = Table::new(&title, ["window", "inefficiency"]);
    let names = vec!["512", "1024", "2048", "4096", "8192", "16384", "32768", "default", "APPLE"];
    let mut rows = Vec::new();
    for (name, reports) in names.iter().zip(sweep.iter().flatten()) {
        let share = 100.0 * inefficiency(reports).median;
        table.row(*name, [format!("{share:.1}")]);
        rows.push(vec![share]);
    }
    let plot = Plot {
        name: "kvm-figure-5",
        title: format!("dbench's inefficiency ({})", host.text()),
        x: "PLE window, cycles",
        y: "inefficiency, % of CPU time",
        shape: Shape::Bars(names),
        series: series(["dbench"], &groups(rows)),
    };
    Figure { figure: "5", tables: vec![table], plots: vec![plot] }
}

/// Figs. 6 and 7: the window over epochs, for dbench and one seed.
fn over_epochs(host: &HostOf, figure: &'static str, name: &'static str, policy: Policy) -> Figure {
    let rule = if policy == Policy::Kvm { "KVM's own rule" } else { "APPLE" };
    let seconds = host.base.seconds;
    let config = host.config(all_named(&["dbench"])[0], policy);
    let reports = run_all(vec![Config { epochs: true, warm_up: 0.0, seconds, ..config }]);
    let epochs = &reports[0].epochs;
    let title = format!("The first VM's window under {rule}, dbench\n{}", host.text());
    let mut table = Table::new(&title, ["epochs", "least", "median", "most"]);
    let tenth = epochs.len().div_ceil(10).max(1);
    for (i, part) in epochs.chunks(tenth).enumerate() {
        let m = spread(part.iter().map(|w| f64::from(*w)));
        let first = i * tenth;
        let range = format!("{first}-{}", first + part.len() - 1);
        table.row(range, [m.least, m.median, m.most].map(|v| format!("{v:.0}")));
    }
    table.note = "An epoch: 1000 PLE exits of the VM".into();
    let windows = epochs.iter().map(|w| vec![f64::from(*w)]).collect();
    let plot = Plot {
        name,
        title: format!("The window under {rule}, dbench ({})", host.text()),
        x: "epoch of 1000 PLE exits",
        y: "window of the first VM, cycles",
        shape: Shape::Lines,
        series: series([rule], &groups(windows)),
    };
    Figure { figure, tables: vec![table], plots: vec![plot] }
}
