//! The figures: which runs each needs, and what it shows of them. What they mean is in
//! docs/kvm-simulation.md.

use clap::ValueEnum;

use super::host::{Config, Machine};
use super::plot::{Plot, Series, Shape};
use super::run::{Middle, middle, run_all};
use super::scheduler::Rule;
use super::stats::Report;
use super::table::{Figure, Table};
use super::window::{AppleSetup, Policy};
use super::workload::{IN_FIGURES, WORKLOADS, Workload, named};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// Throughput against a fixed window
    #[value(name = "1")]
    One,
    /// Inefficiency against a fixed window
    #[value(name = "3")]
    Three,
    /// APPLE against the best fixed window
    #[value(name = "4")]
    Four,
    /// KVM's default against the best fixed window
    #[value(name = "5")]
    Five,
    /// One VM, and so no overcommitment
    #[value(name = "6")]
    Six,
    /// APPLE while the workload changes; the best window by the number of VMs
    #[value(name = "7")]
    Seven,
    /// The measurement that the model's costs are taken from
    Calibration,
    /// Every one of them
    All,
}

pub const WINDOWS: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];

/// What all figures have in common.
pub struct Setup {
    pub pcpus: usize,
    pub vcpus: usize,
    pub vms: usize,
    pub machine: Machine,
    /// Of runs with APPLE; others have a fifth.
    pub seconds: f64,
    pub seed: u64,
    pub seeds: u64,
}

/// What there is beside fixed windows.
#[derive(Clone, Copy)]
enum Way {
    Policy(Policy),
    Apple(AppleSetup),
}

const APPLES: [(&str, AppleSetup); 3] =
    [("paper", AppleSetup::PAPER), ("steady", AppleSetup::STEADY), ("seeing", AppleSetup::SEEING)];

impl Setup {
    fn config(&self, workload: &'static Workload, vms: usize, way: Way, seed: u64) -> Config {
        let (policy, apple, part) = match way {
            Way::Policy(policy) => (policy, AppleSetup::PAPER, 0.2),
            Way::Apple(apple) => (Policy::Apple, apple, 1.0),
        };
        Config {
            machine: self.machine,
            pcpus: self.pcpus,
            vms,
            vcpus: self.vcpus,
            phases: vec![(0.0, workload)],
            policy,
            apple,
            seconds: self.seconds * part,
            // APPLE needs time to find its window; the others only for the guests to get going.
            warm_up: if part == 1.0 { 0.6 } else { 0.2 },
            seed: self.seed + seed,
            stacked: false,
            samples: 0,
        }
    }

    /// A row for each workload and a column for each way; all seeds of each.
    fn measure(&self, vms: usize, ways: &[Way]) -> Sweep {
        let workloads = &WORKLOADS[..IN_FIGURES];
        let configs = workloads.iter().flat_map(|w| {
            ways.iter()
                .flat_map(move |&way| (0..self.seeds).map(move |s| self.config(w, vms, way, s)))
        });
        let mut reports = run_all(configs.collect()).into_iter();
        let mut seeds = || reports.by_ref().take(self.seeds as usize).collect();
        workloads.iter().map(|_| ways.iter().map(|_| seeds()).collect()).collect()
    }

    fn host(&self, vms: usize) -> String {
        let s = |n: u64| if n == 1 { "" } else { "s" };
        let (vm, seed) = (s(vms as u64), s(self.seeds));
        let rule = if self.machine.scheduler == Rule::Cfs { "; CFS" } else { "" };
        format!(
            "{} pCPUs, {vms} VM{vm} of {} vCPUs; {} seed{seed}{rule}",
            self.pcpus, self.vcpus, self.seeds
        )
    }
}

fn fixed() -> Vec<Way> {
    WINDOWS.iter().map(|&w| Way::Policy(Policy::Fixed(w))).collect()
}

fn throughput(reports: &[Report]) -> Middle {
    middle(reports.iter().map(|r| r.throughput))
}

fn inefficiency(reports: &[Report]) -> Middle {
    middle(reports.iter().map(|r| r.inefficiency))
}

/// Which of these fixed windows is best, and its throughput.
fn best(row: &[Vec<Report>]) -> (u32, f64) {
    let all = WINDOWS.iter().zip(row).map(|(&w, reports)| (w, throughput(reports).median));
    all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

fn percent(value: f64, of: f64) -> String {
    format!("{:.0}", 100.0 * value / of)
}

fn thousands(value: f64) -> String {
    format!("{:.1}", value / 1e3)
}

fn names() -> Vec<&'static str> {
    WORKLOADS[..IN_FIGURES].iter().map(|w| w.name).collect()
}

fn columns(first: &'static str) -> Vec<&'static str> {
    std::iter::once(first).chain(names()).collect()
}

/// The largest difference of the seeds' results, as a part of their median.
fn spread(cells: &[Vec<Report>]) -> f64 {
    let one = |reports: &Vec<Report>| {
        let m = throughput(reports);
        (m.most - m.least) / m.median.max(1e-9)
    };
    cells.iter().map(one).fold(0.0, f64::max)
}

/// Makes the figures, and measures only once what several of them show.
pub fn make(name: Name, setup: &Setup) -> Vec<Figure> {
    let wants = |n: Name| name == n || name == Name::All;
    let mut figures = Vec::new();
    if wants(Name::Calibration) {
        figures.push(super::calibration::figure(setup));
    }
    if [Name::One, Name::Three, Name::Four, Name::Five].into_iter().any(wants) {
        let sweep = setup.measure(setup.vms, &fixed());
        if wants(Name::One) {
            figures.push(one(setup, &sweep));
        }
        if wants(Name::Three) {
            figures.push(three(setup, &sweep));
        }
        if wants(Name::Four) {
            figures.push(four(setup, &sweep));
        }
        if wants(Name::Five) {
            figures.push(five(setup, &sweep));
        }
    }
    if wants(Name::Six) {
        figures.push(six(setup));
    }
    if wants(Name::Seven) {
        figures.push(seven(setup));
    }
    figures
}

/// A row for each workload, a cell for each window, a report for each seed.
type Sweep = Vec<Vec<Vec<Report>>>;

/// A line for each workload and a point for each window. The last number is the best window's
/// throughput.
fn points(sweep: &Sweep, point: impl Fn(u32, &[Report], f64) -> (f64, f64)) -> Series {
    let line = |row: &Vec<Vec<Report>>| {
        let most = best(row).1;
        WINDOWS.iter().zip(row).map(|(&w, r)| point(w, r, most)).collect()
    };
    WORKLOADS
        .iter()
        .zip(sweep)
        .map(|(workload, row)| (workload.name.to_string(), line(row)))
        .collect()
}

fn one(setup: &Setup, sweep: &Sweep) -> Figure {
    let title = format!("Throughput, 1000 operations/s, by window\n{}", setup.host(setup.vms));
    let mut table = Table::new(&title, &columns("window"));
    for (i, window) in WINDOWS.iter().enumerate() {
        let cells = sweep.iter().map(|row| thousands(throughput(&row[i]).median));
        table.rows.push(std::iter::once(window.to_string()).chain(cells).collect());
    }
    let bests = sweep.iter().map(|row| best(row).0.to_string());
    table.rows.push(std::iter::once("best".to_string()).chain(bests).collect());
    let spreads = sweep.iter().map(|row| format!("{:.0}%", 100.0 * spread(row)));
    table.rows.push(std::iter::once("spread".to_string()).chain(spreads).collect());
    table.note = "spread: of the seeds, at the window where it is largest".into();
    let plot = Plot {
        name: "kvm-figure-1",
        title: format!("Throughput by PLE window ({})", setup.host(setup.vms)),
        x: "fixed PLE window, cycles",
        y: "throughput, % of the best window's",
        shape: Shape::Windows,
        series: points(sweep, |w, r, most| (f64::from(w), 100.0 * throughput(r).median / most)),
    };
    Figure { figure: "1", tables: vec![table], plots: vec![plot] }
}

fn three(setup: &Setup, sweep: &Sweep) -> Figure {
    let title = format!("Inefficiency, % of CPU time, by window\n{}", setup.host(setup.vms));
    let mut table = Table::new(&title, &columns("window"));
    for (i, window) in WINDOWS.iter().enumerate() {
        let cells = sweep.iter().map(|row| format!("{:.1}", 100.0 * inefficiency(&row[i]).median));
        table.rows.push(std::iter::once(window.to_string()).chain(cells).collect());
    }
    let least = |row: &Vec<Vec<Report>>| {
        let all = WINDOWS.iter().zip(row).map(|(w, r)| (w, inefficiency(r).median));
        all.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(w, _)| *w)
    };
    let mut last = |name: &str, cell: &dyn Fn(&Vec<Vec<Report>>) -> String| {
        table.rows.push(std::iter::once(name.to_string()).chain(sweep.iter().map(cell)).collect());
    };
    last("least at", &|row| least(row).to_string());
    last("% of best", &|row| {
        let i = WINDOWS.iter().position(|&w| w == least(row)).unwrap_or(0);
        percent(throughput(&row[i]).median, best(row).1)
    });
    last("rank corr.", &|row| {
        let a: Vec<f64> = row.iter().map(|r| inefficiency(r).median).collect();
        let b: Vec<f64> = row.iter().map(|r| throughput(r).median).collect();
        format!("{:.2}", rank_correlation(&a, &b))
    });
    table.note = "% of best: throughput where inefficiency is least, of the best window's\n\
                  rank corr.: of inefficiency and throughput; -1 is what APPLE counts on"
        .into();
    let by_window = Plot {
        name: "kvm-figure-3-windows",
        title: format!("Inefficiency by PLE window ({})", setup.host(setup.vms)),
        x: "fixed PLE window, cycles",
        y: "inefficiency, % of CPU time",
        shape: Shape::Windows,
        series: points(sweep, |w, r, _| (f64::from(w), 100.0 * inefficiency(r).median)),
    };
    let by_throughput = Plot {
        name: "kvm-figure-3-throughput",
        title: format!("Throughput and inefficiency ({})", setup.host(setup.vms)),
        x: "inefficiency, % of CPU time",
        y: "throughput, % of the best window's",
        shape: Shape::Points,
        series: points(sweep, |_, r, most| {
            (100.0 * inefficiency(r).median, 100.0 * throughput(r).median / most)
        }),
    };
    Figure { figure: "3", tables: vec![table], plots: vec![by_window, by_throughput] }
}

/// Spearman's.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let rank = |all: &[f64], x: f64| all.iter().filter(|&&y| y < x).count() as f64;
    let n = a.len() as f64;
    let distance: f64 = a.iter().zip(b).map(|(&x, &y)| (rank(a, x) - rank(b, y)).powi(2)).sum();
    1.0 - 6.0 * distance / (n * (n * n - 1.0))
}

fn four(setup: &Setup, sweep: &Sweep) -> Figure {
    let ways: Vec<Way> = APPLES.iter().map(|&(_, apple)| Way::Apple(apple)).collect();
    let found = setup.measure(setup.vms, &ways);
    let title = format!("APPLE, % of the best window's throughput\n{}", setup.host(setup.vms));
    let mut table =
        Table::new(&title, &["workload", "best", "paper", "window", "steady", "window"]);
    table.columns.extend(["seeing", "window"].map(String::from));
    let mut series: Series =
        APPLES.iter().map(|(name, _)| ((*name).to_string(), Vec::new())).collect();
    for (i, (row, apples)) in sweep.iter().zip(&found).enumerate() {
        let (window, most) = best(row);
        let mut cells = vec![WORKLOADS[i].name.to_string(), window.to_string()];
        for (reports, (_, points)) in apples.iter().zip(&mut series) {
            let share = throughput(reports).median / most;
            points.push((i as f64, 100.0 * share));
            let ends = reports.iter().flat_map(|r| &r.vms).filter_map(|vm| vm.window_at_end);
            cells.extend([
                percent(share, 1.0),
                format!("{:.0}", middle(ends.map(f64::from)).median),
            ]);
        }
        table.rows.push(cells);
    }
    table.note = "paper: step 512, no margin, epochs of 1000 exits\n\
                  steady: margin 5 %, epochs of 4000 exits\n\
                  seeing: as paper, but spins cut short by the scheduler count as wasted, too,\n\
                  which KVM could not know\n\
                  window: the median of the VMs' at the end"
        .into();
    let plot = bars(setup, "kvm-figure-4", "APPLE against the best fixed window", series);
    Figure { figure: "4", tables: vec![table], plots: vec![plot] }
}

fn bars(setup: &Setup, name: &'static str, title: &str, series: Series) -> Plot {
    Plot {
        name,
        title: format!("{title} ({})", setup.host(setup.vms)),
        x: "workload",
        y: "throughput, % of the best fixed window's",
        shape: Shape::Bars(names()),
        series,
    }
}

fn five(setup: &Setup, sweep: &Sweep) -> Figure {
    let policies = [Policy::Kvm, Policy::Fixed(4096), Policy::Off];
    let found = setup.measure(setup.vms, &policies.map(Way::Policy));
    let title = format!("KVM, % of the best window's throughput\n{}", setup.host(setup.vms));
    let mut table =
        Table::new(&title, &["workload", "best", "kvm's default", "fixed 4096", "PLE off"]);
    let mut series: Series =
        ["kvm's default", "fixed 4096", "PLE off"].map(|n| (n.to_string(), Vec::new())).into();
    for (i, (row, others)) in sweep.iter().zip(&found).enumerate() {
        let (window, most) = best(row);
        let mut cells = vec![WORKLOADS[i].name.to_string(), window.to_string()];
        for (reports, (_, points)) in others.iter().zip(&mut series) {
            let share = throughput(reports).median / most;
            points.push((i as f64, 100.0 * share));
            cells.push(percent(share, 1.0));
        }
        table.rows.push(cells);
    }
    let plot = bars(setup, "kvm-figure-5", "KVM's default against the best fixed window", series);
    Figure { figure: "5", tables: vec![table], plots: vec![plot] }
}

fn six(setup: &Setup) -> Figure {
    let policies = [
        ("512", Way::Policy(Policy::Fixed(512))),
        ("4096", Way::Policy(Policy::Fixed(4096))),
        ("32768", Way::Policy(Policy::Fixed(32_768))),
        ("kvm", Way::Policy(Policy::Kvm)),
        ("apple", Way::Apple(AppleSetup::PAPER)),
        ("off", Way::Policy(Policy::Off)),
    ];
    let ways: Vec<Way> = policies.iter().map(|p| p.1).collect();
    let found = setup.measure(1, &ways);
    let title = format!("Throughput, 1000 operations/s, by window\n{}", setup.host(1));
    let mut table = Table::new(&title, &["workload"]);
    table.columns.extend(policies.iter().map(|p| p.0.to_string()));
    table.columns.extend(["range", "yields"].map(String::from));
    let mut series: Series = policies.iter().map(|p| (p.0.to_string(), Vec::new())).collect();
    for (i, row) in found.iter().enumerate() {
        let values: Vec<f64> = row.iter().map(|r| throughput(r).median).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let yields: u64 =
            row.iter().flatten().flat_map(|r| &r.vms).map(|vm| vm.yields_successful).sum();
        let mut cells = vec![WORKLOADS[i].name.to_string()];
        for (value, (_, points)) in values.iter().zip(&mut series) {
            cells.push(thousands(*value));
            points.push((i as f64, 100.0 * value / most));
        }
        cells.extend([format!("{:.1}%", 100.0 * (most - least) / most), yields.to_string()]);
        table.rows.push(cells);
    }
    let plot = Plot {
        name: "kvm-figure-6",
        title: format!("Without overcommitment ({})", setup.host(1)),
        x: "workload",
        y: "throughput, % of the best one's",
        shape: Shape::Bars(names()),
        series,
    };
    Figure { figure: "6", tables: vec![table], plots: vec![plot] }
}

fn seven(setup: &Setup) -> Figure {
    let (path, path_plot) = change(setup);
    let (vms, vms_plot) = by_vms(setup);
    Figure { figure: "7", tables: vec![path, vms], plots: vec![path_plot, vms_plot] }
}

/// Two workloads in turns whose best windows are far apart.
fn change(setup: &Setup) -> (Table, Plot) {
    let third = setup.seconds / 3.0;
    let phases = ["ebizzy", "hackbench", "ebizzy"].into_iter().enumerate();
    let phases: Vec<_> = phases.filter_map(|(i, n)| Some((third * i as f64, named(n)?))).collect();
    let samples = 120;
    let configs = APPLES.iter().map(|&(_, apple)| Config {
        phases: phases.clone(),
        samples,
        warm_up: 0.0,
        ..setup.config(phases[0].1, setup.vms, Way::Apple(apple), 0)
    });
    let reports = run_all(configs.collect());
    let title =
        format!("The first VM's window\n{} pCPUs, {} VMs, one seed", setup.pcpus, setup.vms);
    let mut table = Table::new(&title, &["second", "workload", "paper", "steady", "seeing"]);
    for i in (9..samples as usize).step_by(10) {
        let at = reports[0].path[i].seconds;
        let workload = phases.iter().rev().find(|(from, _)| *from < at).map_or("", |(_, w)| w.name);
        let windows =
            reports.iter().map(|r| r.path[i].window.map_or("-".into(), |w| w.to_string()));
        table
            .rows
            .push([format!("{at:.2}"), workload.to_string()].into_iter().chain(windows).collect());
    }
    table.note = "What paper, steady and seeing are: figure 4".into();
    let series = APPLES.iter().zip(&reports).map(|((name, _), report)| {
        let points = report.path.iter().filter_map(|p| Some((p.seconds, f64::from(p.window?))));
        ((*name).to_string(), points.collect())
    });
    let plot = Plot {
        name: "kvm-figure-7-path",
        title: format!("APPLE's window: ebizzy, hackbench, ebizzy ({} VMs)", setup.vms),
        x: "simulated time, s",
        y: "window of the first VM, cycles",
        shape: Shape::Lines,
        series: series.collect(),
    };
    (table, plot)
}

fn by_vms(setup: &Setup) -> (Table, Plot) {
    let counts = [1, 2, 4];
    let ways: Vec<Way> = fixed().into_iter().chain([Way::Policy(Policy::Kvm)]).collect();
    let found = counts.map(|n| setup.measure(n, &ways));
    let title = format!("Best fixed window by the number of VMs. {} pCPUs", setup.pcpus);
    let mut table = Table::new(&title, &["workload", "1 VM", "2 VMs", "4 VMs"]);
    table.columns.extend(["loss at 4096: 1", "2", "4"].map(String::from));
    let mut series: Series =
        counts.map(|n| (format!("{n} VM{}", if n == 1 { "" } else { "s" }), Vec::new())).into();
    for i in 0..IN_FIGURES {
        let mut cells = vec![WORKLOADS[i].name.to_string()];
        let rows = found.iter().map(|f| &f[i]);
        cells.extend(rows.clone().map(|row| best(row).0.to_string()));
        for (row, (_, points)) in rows.zip(&mut series) {
            let at = WINDOWS.iter().position(|&w| w == 4096).unwrap_or(0);
            let loss = 1.0 - throughput(&row[at]).median / best(row).1;
            cells.push(format!("{:.0}%", 100.0 * loss));
            points.push((i as f64, 100.0 - 100.0 * loss));
        }
        table.rows.push(cells);
    }
    table.note = format!("Overcommitment 1, 2 and 4. {} seeds", setup.seeds);
    let plot = Plot {
        name: "kvm-figure-7-vms",
        title: format!("A window of 4096 by the number of VMs ({} pCPUs)", setup.pcpus),
        x: "workload",
        y: "throughput at 4096, % of the best window's",
        shape: Shape::Bars(names()),
        series,
    };
    (table, plot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks() {
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]), 1.0);
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
    }
}
