//! Our own figures of the simulation; figures.rs has APPLE's.

use super::figures::{HostOf, Name, Setup, Sweep, WINDOWS, Way, fixed, inefficiency, throughput};
use super::host::Config;
use super::plot::{Plot, Series, Shape};
use super::run::{middle, run_all};
use super::stats::Report;
use super::table::{Figure, Table};
use super::window::{AppleSetup, Policy};
use super::workload::{OWN, all_named, named};

const APPLES: [(&str, AppleSetup); 4] = [
    ("paper", AppleSetup::PAPER),
    ("low", AppleSetup::LOW),
    ("steady", AppleSetup::STEADY),
    ("seeing", AppleSetup::SEEING),
];

/// Returns the best fixed window of a workload, and its throughput.
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

fn columns(first: &'static str) -> Vec<&'static str> {
    std::iter::once(first).chain(OWN).collect()
}

/// The largest difference between seeds, as a part of their median.
fn spread(cells: &[Vec<Report>]) -> f64 {
    let one = |reports: &Vec<Report>| {
        let m = throughput(reports);
        (m.most - m.least) / m.median.max(1e-9)
    };
    cells.iter().map(one).fold(0.0, f64::max)
}

pub fn make(wants: impl Fn(Name) -> bool, setup: &Setup) -> Vec<Figure> {
    let mut figures = Vec::new();
    let host = setup.ours(4);
    if wants(Name::Windows) || wants(Name::Rules) {
        let sweep = host.measure(&all_named(&OWN), &fixed(&WINDOWS));
        if wants(Name::Windows) {
            figures.push(windows(host, &sweep));
        }
        if wants(Name::Rules) {
            figures.push(rules(host, &sweep));
        }
    }
    if wants(Name::OneVm) {
        figures.push(one_vm(setup.ours(1)));
    }
    if wants(Name::Change) {
        figures.push(change(host));
    }
    if wants(Name::Vms) {
        figures.push(by_vms(setup));
    }
    figures
}

/// A line for each workload, with a point for each window. The last argument of `point` is the best
/// window's throughput.
fn points(sweep: &Sweep, point: impl Fn(u32, &[Report], f64) -> (f64, f64)) -> Series {
    let line = |row: &Vec<Vec<Report>>| {
        let most = best(row).1;
        WINDOWS.iter().zip(row).map(|(&w, r)| point(w, r, most)).collect()
    };
    OWN.iter().zip(sweep).map(|(name, row)| ((*name).to_string(), line(row))).collect()
}

fn windows(host: HostOf, sweep: &Sweep) -> Figure {
    let (speeds, mut plots) = throughputs(host, sweep);
    let (wasted, others) = inefficiencies(host, sweep);
    plots.extend(others);
    Figure { figure: "windows", tables: vec![speeds, wasted], plots }
}

fn throughputs(host: HostOf, sweep: &Sweep) -> (Table, Vec<Plot>) {
    let title = format!("Throughput, 1000 operations/s, by window\n{}", host.text());
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
        name: "kvm-windows-throughput",
        title: format!("Throughput by PLE window ({})", host.text()),
        x: "fixed PLE window, cycles",
        y: "throughput, % of the best window's",
        shape: Shape::Windows,
        series: points(sweep, |w, r, most| (f64::from(w), 100.0 * throughput(r).median / most)),
    };
    (table, vec![plot])
}

fn inefficiencies(host: HostOf, sweep: &Sweep) -> (Table, Vec<Plot>) {
    let title = format!("Inefficiency, % of CPU time, by window\n{}", host.text());
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
                  rank corr.: of inefficiency and throughput; APPLE assumes -1"
        .into();
    let by_window = Plot {
        name: "kvm-windows-inefficiency",
        title: format!("Inefficiency by PLE window ({})", host.text()),
        x: "fixed PLE window, cycles",
        y: "inefficiency, % of CPU time",
        shape: Shape::Windows,
        series: points(sweep, |w, r, _| (f64::from(w), 100.0 * inefficiency(r).median)),
    };
    let by_throughput = Plot {
        name: "kvm-windows-both",
        title: format!("Throughput and inefficiency ({})", host.text()),
        x: "inefficiency, % of CPU time",
        y: "throughput, % of the best window's",
        shape: Shape::Points,
        series: points(sweep, |_, r, most| {
            (100.0 * inefficiency(r).median, 100.0 * throughput(r).median / most)
        }),
    };
    (table, vec![by_window, by_throughput])
}

/// Spearman's rank correlation, exact if there are no ties.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let rank = |all: &[f64], x: f64| all.iter().filter(|&&y| y < x).count() as f64;
    let n = a.len() as f64;
    let distance: f64 = a.iter().zip(b).map(|(&x, &y)| (rank(a, x) - rank(b, y)).powi(2)).sum();
    1.0 - 6.0 * distance / (n * (n * n - 1.0))
}

/// Throughput of each way relative to the best fixed window.
fn rules(host: HostOf, sweep: &Sweep) -> Figure {
    let others = [
        ("KVM's default", Policy::Kvm),
        ("fixed 4096", Policy::Fixed(4096)),
        ("PLE off", Policy::Off),
    ];
    let ways: Vec<Way> = APPLES
        .iter()
        .map(|a| Way::Apple(a.1))
        .chain(others.iter().map(|o| Way::Policy(o.1)))
        .collect();
    let names = || APPLES.iter().map(|a| a.0).chain(others.iter().map(|o| o.0));
    let found = host.measure(&all_named(&OWN), &ways);
    let title = format!("Throughput, % of the best window's\n{}", host.text());
    let mut table = Table::new(&title, &["workload", "best"]);
    table.columns.extend(names().map(String::from));
    let mut windows = Table::new("The median of the VMs' windows at the end", &["workload"]);
    windows.columns.extend(APPLES.iter().map(|a| a.0.to_string()));
    let mut series: Series = names().map(|n| (n.to_string(), Vec::new())).collect();
    for (i, (row, others)) in sweep.iter().zip(&found).enumerate() {
        let (window, most) = best(row);
        let mut cells = vec![OWN[i].to_string(), window.to_string()];
        for (reports, (_, points)) in others.iter().zip(&mut series) {
            let share = throughput(reports).median / most;
            points.push((i as f64, 100.0 * share));
            cells.push(percent(share, 1.0));
        }
        table.rows.push(cells);
        let ends = others.iter().take(APPLES.len()).map(|reports| {
            let vms = reports.iter().flat_map(|r| &r.vms).filter_map(|vm| vm.window_at_end);
            format!("{:.0}", middle(vms.map(f64::from)).median)
        });
        windows.rows.push(std::iter::once(OWN[i].to_string()).chain(ends).collect());
    }
    table.note = "paper: from 8192, 4096 to 32768, step 1024, no margin, epochs of 1000 exits\n\
                  low: from 4096, 512 to 32768, step 512\n\
                  steady: as paper, with a margin of 5 % and epochs of 4000 exits\n\
                  seeing: as paper, but spins cut short by the scheduler count as wasted, too;\n\
                  KVM cannot know them"
        .into();
    let plot = Plot {
        name: "kvm-rules",
        title: format!("Rules for the window ({})", host.text()),
        x: "workload",
        y: "throughput, % of the best fixed window's",
        shape: Shape::Bars(OWN.to_vec()),
        series,
    };
    Figure { figure: "rules", tables: vec![table, windows], plots: vec![plot] }
}

fn one_vm(host: HostOf) -> Figure {
    let policies = [
        ("512", Way::Policy(Policy::Fixed(512))),
        ("4096", Way::Policy(Policy::Fixed(4096))),
        ("32768", Way::Policy(Policy::Fixed(32_768))),
        ("kvm", Way::Policy(Policy::Kvm)),
        ("apple", Way::Apple(AppleSetup::PAPER)),
        ("off", Way::Policy(Policy::Off)),
    ];
    let ways: Vec<Way> = policies.iter().map(|p| p.1).collect();
    let found = host.measure(&all_named(&OWN), &ways);
    let title = format!("Throughput, 1000 operations/s, by window\n{}", host.text());
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
        let mut cells = vec![OWN[i].to_string()];
        for (value, (_, points)) in values.iter().zip(&mut series) {
            cells.push(thousands(*value));
            points.push((i as f64, 100.0 * value / most));
        }
        cells.extend([format!("{:.1}%", 100.0 * (most - least) / most), yields.to_string()]);
        table.rows.push(cells);
    }
    let plot = Plot {
        name: "kvm-one-vm",
        title: format!("Without overcommitment ({})", host.text()),
        x: "workload",
        y: "throughput, % of the best one's",
        shape: Shape::Bars(OWN.to_vec()),
        series,
    };
    Figure { figure: "one-vm", tables: vec![table], plots: vec![plot] }
}

/// Two workloads by turns, whose best windows are far apart.
fn change(host: HostOf) -> Figure {
    let third = host.setup.seconds / 3.0;
    let phases = ["ebizzy", "hackbench", "ebizzy"].into_iter().enumerate();
    let phases: Vec<_> = phases.filter_map(|(i, n)| Some((third * i as f64, named(n)?))).collect();
    let samples = 120;
    let configs = APPLES.iter().map(|&(_, apple)| Config {
        phases: phases.clone(),
        samples,
        warm_up: 0.0,
        ..host.config(phases[0].1, Way::Apple(apple), 0)
    });
    let reports = run_all(configs.collect());
    let title = format!("The first VM's window, one seed\n{}", host.text());
    let mut table = Table::new(&title, &["second", "workload", "paper", "low", "steady", "seeing"]);
    for i in (9..samples as usize).step_by(10) {
        let at = reports[0].path[i].seconds;
        let workload = phases.iter().rev().find(|(from, _)| *from < at).map_or("", |(_, w)| w.name);
        let windows =
            reports.iter().map(|r| r.path[i].window.map_or("-".into(), |w| w.to_string()));
        table
            .rows
            .push([format!("{at:.2}"), workload.to_string()].into_iter().chain(windows).collect());
    }
    table.note = "The settings are those of `rules`".into();
    let series = APPLES.iter().zip(&reports).map(|((name, _), report)| {
        let points = report.path.iter().filter_map(|p| Some((p.seconds, f64::from(p.window?))));
        ((*name).to_string(), points.collect())
    });
    let plot = Plot {
        name: "kvm-change",
        title: format!("APPLE's window: ebizzy, hackbench, ebizzy ({} VMs)", host.vms),
        x: "simulated time, s",
        y: "window of the first VM, cycles",
        shape: Shape::Lines,
        series: series.collect(),
    };
    Figure { figure: "change", tables: vec![table], plots: vec![plot] }
}

fn by_vms(setup: &Setup) -> Figure {
    let counts = [1, 2, 4];
    let found = counts.map(|n| setup.ours(n).measure(&all_named(&OWN), &fixed(&WINDOWS)));
    let title = format!("Best fixed window by the number of VMs. {} pCPUs", setup.pcpus);
    let mut table = Table::new(&title, &["workload", "1 VM", "2 VMs", "4 VMs"]);
    table.columns.extend(["loss at 4096: 1", "2", "4"].map(String::from));
    let mut series: Series =
        counts.map(|n| (format!("{n} VM{}", if n == 1 { "" } else { "s" }), Vec::new())).into();
    for (i, name) in OWN.iter().enumerate() {
        let mut cells = vec![name.to_string()];
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
        name: "kvm-vms",
        title: format!("A window of 4096 by the number of VMs ({} pCPUs)", setup.pcpus),
        x: "workload",
        y: "throughput at 4096, % of the best window's",
        shape: Shape::Bars(OWN.to_vec()),
        series,
    };
    Figure { figure: "vms", tables: vec![table], plots: vec![plot] }
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
