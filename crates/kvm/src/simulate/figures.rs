//! APPLE's figures: the runs that each needs, and what it shows. own.rs has our own figures.

use clap::ValueEnum;

use super::host::{Config, Machine};
use super::plot::{Plot, Series, Shape};
use super::run::{Middle, middle, run_all};
use super::scheduler::Rule;
use super::stats::Report;
use super::table::{Figure, Table};
use super::window::{AppleSetup, Policy};
use super::workload::{PAPER, Workload, all_named, named};

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
pub const PAPERS_WINDOWS: usize = 7;

/// Settings common to all figures.
pub struct Setup {
    pub pcpus: usize,
    pub vcpus: usize,
    /// Overrides the figure's number of VMs.
    pub vms: Option<usize>,
    /// None: CFS in the paper's figures, as on its hosts, and EEVDF in ours.
    pub scheduler: Option<Rule>,
    /// Simulated time of runs with APPLE; other runs take a fifth of it.
    pub seconds: f64,
    pub seed: u64,
    pub seeds: u64,
}

/// A column of a figure: a policy, or APPLE with its parameters.
#[derive(Clone, Copy)]
pub enum Way {
    Policy(Policy),
    Apple(AppleSetup),
}

/// The host of a figure.
#[derive(Clone, Copy)]
pub struct HostOf<'a> {
    pub setup: &'a Setup,
    pub vms: usize,
    pub scheduler: Rule,
}

/// Indexed by workload, way and seed.
pub type Sweep = Vec<Vec<Vec<Report>>>;

impl Setup {
    fn host(&self, vms: usize, scheduler: Rule) -> HostOf<'_> {
        HostOf {
            setup: self,
            vms: self.vms.unwrap_or(vms),
            scheduler: self.scheduler.unwrap_or(scheduler),
        }
    }

    pub fn papers(&self, vms: usize) -> HostOf<'_> {
        self.host(vms, Rule::Cfs)
    }

    pub fn ours(&self, vms: usize) -> HostOf<'_> {
        self.host(vms, Rule::Eevdf)
    }

    pub fn machine(&self, scheduler: Rule) -> Machine {
        Machine { scheduler: self.scheduler.unwrap_or(scheduler), ..Machine::DEFAULT }
    }
}

impl HostOf<'_> {
    pub fn config(&self, workload: &'static Workload, way: Way, seed: u64) -> Config {
        let (policy, apple, part) = match way {
            Way::Policy(policy) => (policy, AppleSetup::PAPER, 0.2),
            Way::Apple(apple) => (Policy::Apple, apple, 1.0),
        };
        Config {
            machine: Machine { scheduler: self.scheduler, ..Machine::DEFAULT },
            pcpus: self.setup.pcpus,
            vms: self.vms,
            vcpus: self.setup.vcpus,
            phases: vec![(0.0, workload)],
            policy,
            apple,
            seconds: self.setup.seconds * part,
            // APPLE needs time to find its window; other policies only need the guests to start.
            warm_up: if part == 1.0 { 0.6 } else { 0.2 },
            seed: self.setup.seed + seed,
            stacked: false,
            samples: 0,
            epochs: false,
        }
    }

    /// Run all seeds of each workload with each way.
    pub fn measure(&self, workloads: &[&'static Workload], ways: &[Way]) -> Sweep {
        let seeds = self.setup.seeds;
        let configs = workloads.iter().flat_map(|w| {
            ways.iter().flat_map(move |&way| (0..seeds).map(move |s| self.config(w, way, s)))
        });
        let mut reports = run_all(configs.collect()).into_iter();
        let mut of_seeds = || reports.by_ref().take(seeds as usize).collect();
        workloads.iter().map(|_| ways.iter().map(|_| of_seeds()).collect()).collect()
    }

    pub fn text(&self) -> String {
        let s = |n: u64| if n == 1 { "" } else { "s" };
        let (vm, seed) = (s(self.vms as u64), s(self.setup.seeds));
        let rule = if self.scheduler == Rule::Cfs { "CFS" } else { "EEVDF" };
        format!(
            "{} pCPUs, {} VM{vm} of {} vCPUs, {rule}; {} seed{seed}",
            self.setup.pcpus, self.vms, self.setup.vcpus, self.setup.seeds
        )
    }
}

pub fn fixed(windows: &[u32]) -> Vec<Way> {
    windows.iter().map(|&w| Way::Policy(Policy::Fixed(w))).collect()
}

pub fn throughput(reports: &[Report]) -> Middle {
    middle(reports.iter().map(|r| r.throughput))
}

pub fn inefficiency(reports: &[Report]) -> Middle {
    middle(reports.iter().map(|r| r.inefficiency))
}

/// Make the figures. Runs that several figures of ours show are made once.
pub fn make(name: Name, setup: &Setup) -> Vec<Figure> {
    let wants = |n: Name| name == n || name == Name::All;
    let mut figures = Vec::new();
    if wants(Name::Calibration) {
        figures.push(super::calibration::figure(setup));
    }
    if wants(Name::One) {
        figures.push(one(setup.papers(2)));
    }
    if wants(Name::Three) {
        figures.push(against_fixed(setup.papers(2), "3", "kvm-figure-3"));
    }
    if wants(Name::Four) {
        figures.push(against_fixed(setup.papers(4), "4", "kvm-figure-4"));
    }
    if wants(Name::Five) {
        figures.push(five(setup.papers(2)));
    }
    if wants(Name::Six) {
        let way = Way::Policy(Policy::Kvm);
        figures.push(over_epochs(setup.papers(2), "6", "kvm-figure-6", "KVM's own rule", way));
    }
    if wants(Name::Seven) {
        let way = Way::Apple(AppleSetup::PAPER);
        figures.push(over_epochs(setup.papers(2), "7", "kvm-figure-7", "APPLE", way));
    }
    figures.extend(super::own::make(wants, setup));
    figures
}

fn two_digits(value: f64) -> String {
    format!("{value:.2}")
}

fn one(host: HostOf) -> Figure {
    let workloads = all_named(&["dbench", "streamcluster"]);
    let windows = &WINDOWS[..PAPERS_WINDOWS];
    let ways: Vec<Way> = fixed(windows).into_iter().chain([Way::Policy(Policy::Kvm)]).collect();
    let sweep = host.measure(&workloads, &ways);
    let title = format!("Throughput by fixed window, KVM's default = 1\n{}", host.text());
    let names: Vec<&str> =
        std::iter::once("window").chain(workloads.iter().map(|w| w.name)).collect();
    let mut table = Table::new(&title, &names);
    let mut series: Series = workloads.iter().map(|w| (w.name.to_string(), Vec::new())).collect();
    for (i, window) in windows.iter().enumerate() {
        let mut cells = vec![window.to_string()];
        for (row, (_, points)) in sweep.iter().zip(&mut series) {
            let speed = throughput(&row[i]).median / throughput(&row[PAPERS_WINDOWS]).median;
            points.push((f64::from(*window), speed));
            cells.push(two_digits(speed));
        }
        table.rows.push(cells);
    }
    let plot = Plot {
        name: "kvm-figure-1",
        title: format!("Throughput by PLE window ({})", host.text()),
        x: "fixed PLE window, cycles",
        y: "throughput, KVM's default = 1",
        shape: Shape::Windows,
        series,
    };
    Figure { figure: "1", tables: vec![table], plots: vec![plot] }
}

/// Figs. 3 and 4: throughput relative to KVM's default.
fn against_fixed(host: HostOf, figure: &'static str, name: &'static str) -> Figure {
    let workloads = all_named(&PAPER);
    let windows = &WINDOWS[..PAPERS_WINDOWS];
    let mut ways = fixed(windows);
    ways.extend([Way::Policy(Policy::Kvm), Way::Apple(AppleSetup::PAPER)]);
    ways.push(Way::Apple(AppleSetup::STEADY));
    let sweep = host.measure(&workloads, &ways);
    let title = format!("Throughput, KVM's default = 1\n{}", host.text());
    let mut table = Table::new(&title, &["program", "default", "APPLE", "steady"]);
    table.columns.extend(["best fixed", "window", "worst fixed", "window"].map(String::from));
    let names = ["default", "APPLE", "steady", "best fixed", "worst fixed"];
    let mut series: Series = names.map(|n| (n.to_string(), Vec::new())).into();
    for (i, row) in sweep.iter().enumerate() {
        let speeds: Vec<f64> = row.iter().map(|r| throughput(r).median).collect();
        let kvm = speeds[PAPERS_WINDOWS];
        let pick = |better: fn(f64, f64) -> bool| {
            (1..PAPERS_WINDOWS)
                .fold(0, |best, w| if better(speeds[w], speeds[best]) { w } else { best })
        };
        let (best, worst) = (pick(|a, b| a > b), pick(|a, b| a < b));
        let places = [PAPERS_WINDOWS, PAPERS_WINDOWS + 1, PAPERS_WINDOWS + 2, best, worst];
        for (at, (_, points)) in places.iter().zip(&mut series) {
            points.push((i as f64, speeds[*at] / kvm));
        }
        let cell = |at: usize| two_digits(speeds[at] / kvm);
        let mut cells = vec![workloads[i].name.to_string()];
        cells.extend(places[..3].iter().map(|p| cell(*p)));
        cells.extend([cell(best), windows[best].to_string()]);
        cells.extend([cell(worst), windows[worst].to_string()]);
        table.rows.push(cells);
    }
    let mean = workloads.len() as f64;
    let mut cells = vec!["geometric mean".to_string()];
    for (i, (_, points)) in series.iter_mut().enumerate() {
        let speed = (points.iter().map(|p| p.1.ln()).sum::<f64>() / mean).exp();
        points.push((mean, speed));
        cells.push(two_digits(speed));
        if i >= 3 {
            cells.push(String::new());
        }
    }
    table.rows.push(cells);
    table.note = "APPLE: the paper's parameters\n\
                  steady: ours, epochs of 4000 exits and a margin of 5 %"
        .into();
    let plot = Plot {
        name,
        title: format!("APPLE and fixed windows ({})", host.text()),
        x: "program",
        y: "throughput, KVM's default = 1",
        shape: Shape::Bars(PAPER.into_iter().chain(["geometric mean"]).collect()),
        series,
    };
    Figure { figure, tables: vec![table], plots: vec![plot] }
}

fn five(host: HostOf) -> Figure {
    let workloads = all_named(&["dbench"]);
    let windows = &WINDOWS[..PAPERS_WINDOWS];
    let mut ways = fixed(windows);
    ways.extend([Way::Policy(Policy::Kvm), Way::Apple(AppleSetup::PAPER)]);
    let sweep = host.measure(&workloads, &ways);
    let title = format!("dbench's inefficiency, % of CPU time, by window\n{}", host.text());
    let mut table = Table::new(&title, &["window", "inefficiency"]);
    let names: Vec<&'static str> =
        vec!["512", "1024", "2048", "4096", "8192", "16384", "32768", "default", "APPLE"];
    let mut points = Vec::new();
    for (i, (name, reports)) in names.iter().zip(sweep.iter().flatten()).enumerate() {
        let share = 100.0 * inefficiency(reports).median;
        table.rows.push(vec![name.to_string(), format!("{share:.1}")]);
        points.push((i as f64, share));
    }
    let plot = Plot {
        name: "kvm-figure-5",
        title: format!("dbench's inefficiency ({})", host.text()),
        x: "PLE window, cycles",
        y: "inefficiency, % of CPU time",
        shape: Shape::Bars(names),
        series: vec![("dbench".into(), points)],
    };
    Figure { figure: "5", tables: vec![table], plots: vec![plot] }
}

/// Figs. 6 and 7: the window over epochs, for dbench and one seed.
fn over_epochs(
    host: HostOf,
    figure: &'static str,
    name: &'static str,
    rule: &str,
    way: Way,
) -> Figure {
    let Some(workload) = named("dbench") else { unreachable!("a test names it") };
    let config = Config {
        epochs: true,
        warm_up: 0.0,
        seconds: host.setup.seconds,
        ..host.config(workload, way, 0)
    };
    let reports = run_all(vec![config]);
    let epochs: Vec<u32> = reports.into_iter().flat_map(|r| r.epochs).collect();
    let title = format!("The first VM's window under {rule}, dbench\n{}", host.text());
    let mut table = Table::new(&title, &["epochs", "least", "median", "most"]);
    let tenth = epochs.len().div_ceil(10).max(1);
    for (i, part) in epochs.chunks(tenth).enumerate() {
        let m = middle(part.iter().map(|w| f64::from(*w)));
        let first = i * tenth;
        let range = format!("{first}-{}", first + part.len() - 1);
        let numbers = [m.least, m.median, m.most].map(|v| format!("{v:.0}"));
        table.rows.push(std::iter::once(range).chain(numbers).collect());
    }
    table.note = "An epoch: 1000 PLE exits of the VM".into();
    let points = epochs.iter().enumerate().map(|(i, w)| (i as f64, f64::from(*w))).collect();
    let plot = Plot {
        name,
        title: format!("The window under {rule}, dbench ({})", host.text()),
        x: "epoch of 1000 PLE exits",
        y: "window of the first VM, cycles",
        shape: Shape::Lines,
        series: vec![(rule.to_string(), points)],
    };
    Figure { figure, tables: vec![table], plots: vec![plot] }
}
