//! Our own figures of the simulation; figures.rs has APPLE's.

use ui::number::Spread;
use ui::text::plural;

use super::figures::{
    HostOf, Setup, Sweep, WINDOWS, fixed, groups, inefficiency, series, throughput, two_digits,
};
use super::host::Config;
use super::plot::{Plot, Series, Shape};
use super::run::{run_all, spread};
use super::stats::Report;
use super::table::{Figure, Table};
use super::window::{AppleSetup, Policy};
use super::workload::{OWN, all_named};

const SETTINGS: [&str; 4] = ["paper", "low", "steady", "seeing"];
const APPLES: [Policy; 4] = [
    Policy::Apple(AppleSetup::PAPER),
    Policy::Apple(AppleSetup::LOW),
    Policy::Apple(AppleSetup::STEADY),
    Policy::Apple(AppleSetup::SEEING),
];

/// Returns the best fixed window of a workload, and its throughput.
fn best(row: &[Vec<Report>]) -> (u32, f64) {
    let all = WINDOWS.iter().zip(row).map(|(&w, reports)| (w, throughput(reports).median));
    all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

/// Returns the window with the least inefficiency, and its throughput.
fn least_wasteful(row: &[Vec<Report>]) -> (u32, f64) {
    let all = WINDOWS.iter().zip(row);
    let least = all.min_by(|a, b| inefficiency(a.1).median.total_cmp(&inefficiency(b.1).median));
    least.map_or((0, 0.0), |(&w, reports)| (w, throughput(reports).median))
}

fn percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

fn thousands(value: f64) -> String {
    format!("{:.1}", value / 1e3)
}

/// The fixed windows for all of our workloads.
pub fn sweep(host: &HostOf) -> Sweep {
    host.measure(&all_named(&OWN), &fixed(&WINDOWS))
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

/// Begin a table with a row for each window and a column for each workload.
fn by_window(title: &str, sweep: &Sweep, cell: impl Fn(&[Report]) -> String) -> Table {
    let mut table = Table::new(title, ["window"].iter().chain(&OWN).copied());
    for (i, window) in WINDOWS.iter().enumerate() {
        table.row(window.to_string(), sweep.iter().map(|row| cell(&row[i])));
    }
    table
}

pub fn windows(host: &HostOf, sweep: &Sweep) -> Figure {
    let plot = |name, title: &str, x, y, shape, series| {
        let title = format!("{title} ({})", host.text());
        Plot { name, title, x, y, shape, series }
    };
    let (window, of_best) = ("fixed PLE window, cycles", "throughput, % of the best window's");
    let wasted = "inefficiency, % of CPU time";
    let plots = vec![
        plot(
            "kvm-windows-throughput",
            "Throughput by PLE window",
            window,
            of_best,
            Shape::Windows,
            points(sweep, |w, r, most| (f64::from(w), 100.0 * throughput(r).median / most)),
        ),
        plot(
            "kvm-windows-inefficiency",
            "Inefficiency by PLE window",
            window,
            wasted,
            Shape::Windows,
            points(sweep, |w, r, _| (f64::from(w), 100.0 * inefficiency(r).median)),
        ),
        plot(
            "kvm-windows-both",
            "Throughput and inefficiency",
            wasted,
            of_best,
            Shape::Points,
            points(sweep, |_, r, most| {
                (100.0 * inefficiency(r).median, 100.0 * throughput(r).median / most)
            }),
        ),
    ];
    let tables = vec![throughputs(host, sweep), inefficiencies(host, sweep)];
    Figure { figure: "windows", tables, plots }
}

fn throughputs(host: &HostOf, sweep: &Sweep) -> Table {
    let title = format!("Throughput, 1000 operations/s, by window\n{}", host.text());
    let mut table = by_window(&title, sweep, |r| thousands(throughput(r).median));
    table.row("best", sweep.iter().map(|row| best(row).0.to_string()));
    let spreads = |row: &Vec<Vec<Report>>| {
        row.iter().map(|r| throughput(r)).map(|s| s.relative()).fold(0.0, f64::max)
    };
    table.row("spread", sweep.iter().map(|row| percent(spreads(row)) + "%"));
    table.note = "spread: of the seeds, at the window where it is largest".into();
    table
}

fn inefficiencies(host: &HostOf, sweep: &Sweep) -> Table {
    let title = format!("Inefficiency, % of CPU time, by window\n{}", host.text());
    let mut table = by_window(&title, sweep, |r| format!("{:.1}", 100.0 * inefficiency(r).median));
    table.row("least at", sweep.iter().map(|row| least_wasteful(row).0.to_string()));
    let of_best = |row: &Vec<Vec<Report>>| percent(least_wasteful(row).1 / best(row).1);
    table.row("% of best", sweep.iter().map(of_best));
    let correlation = |row: &Vec<Vec<Report>>| {
        let medians = |of: fn(&[Report]) -> Spread| row.iter().map(|r| of(r).median).collect();
        let (wasted, speeds): (Vec<f64>, Vec<f64>) = (medians(inefficiency), medians(throughput));
        two_digits(rank_correlation(&wasted, &speeds))
    };
    table.row("rank corr.", sweep.iter().map(correlation));
    table.note = "% of best: throughput where inefficiency is least, of the best window's\n\
                  rank corr.: of inefficiency and throughput; APPLE assumes -1"
        .into();
    table
}

/// Spearman's rank correlation, exact if there are no ties.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let rank = |all: &[f64], x: f64| all.iter().filter(|&&y| y < x).count() as f64;
    let n = a.len() as f64;
    let distance: f64 = a.iter().zip(b).map(|(&x, &y)| (rank(a, x) - rank(b, y)).powi(2)).sum();
    1.0 - 6.0 * distance / (n * (n * n - 1.0))
}

/// Throughput of each rule relative to the best fixed window.
pub fn rules(host: &HostOf, sweep: &Sweep) -> Figure {
    let others = [Policy::Kvm, Policy::Fixed(4096), Policy::Off];
    let found = host.measure(&all_named(&OWN), &[APPLES.to_vec(), others.to_vec()].concat());
    let names = || SETTINGS.into_iter().chain(["KVM's default", "fixed 4096", "PLE off"]);
    let title = format!("Throughput, % of the best window's\n{}", host.text());
    let mut table = Table::new(&title, ["workload", "best"].into_iter().chain(names()));
    let title = "The median of the VMs' windows at the end";
    let mut windows = Table::new(title, ["workload"].iter().chain(&SETTINGS).copied());
    let mut rows = Vec::new();
    for ((name, row), of_rules) in OWN.iter().zip(sweep).zip(&found) {
        let (window, most) = best(row);
        let shares: Vec<f64> = of_rules.iter().map(|r| throughput(r).median / most).collect();
        let cells = shares.iter().map(|share| percent(*share));
        table.row(*name, [window.to_string()].into_iter().chain(cells));
        let ends = of_rules[..APPLES.len()].iter().map(|reports| {
            let vms = reports.iter().flat_map(|r| &r.vms).filter_map(|vm| vm.window_at_end);
            format!("{:.0}", spread(vms.map(f64::from)).median)
        });
        windows.row(*name, ends);
        rows.push(shares.iter().map(|share| 100.0 * share).collect());
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
        series: series(names(), &groups(rows)),
    };
    Figure { figure: "rules", tables: vec![table, windows], plots: vec![plot] }
}

pub fn one_vm(host: &HostOf) -> Figure {
    let fixed = fixed(&[512, 4096, 32_768]);
    let others = [Policy::Kvm, Policy::Apple(AppleSetup::PAPER), Policy::Off];
    let policies = [fixed, others.to_vec()].concat();
    let found = host.measure(&all_named(&OWN), &policies);
    let names = || policies.iter().map(Policy::to_string);
    let title = format!("Throughput, 1000 operations/s, by window\n{}", host.text());
    let columns = ["workload".into()].into_iter().chain(names());
    let mut table = Table::new(&title, columns.chain(["range".into(), "yields".into()]));
    let mut rows = Vec::new();
    for (name, row) in OWN.iter().zip(&found) {
        let values: Vec<f64> = row.iter().map(|r| throughput(r).median).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let vms = row.iter().flatten().flat_map(|r| &r.vms);
        let yields: u64 = vms.map(|vm| vm.yields_successful).sum();
        let range = format!("{:.1}%", 100.0 * (most - least) / most);
        let cells = values.iter().copied().map(thousands);
        table.row(*name, cells.chain([range, yields.to_string()]));
        rows.push(values.iter().map(|value| 100.0 * value / most).collect());
    }
    let plot = Plot {
        name: "kvm-one-vm",
        title: format!("Without overcommitment ({})", host.text()),
        x: "workload",
        y: "throughput, % of the best one's",
        shape: Shape::Bars(OWN.to_vec()),
        series: series(names(), &groups(rows)),
    };
    Figure { figure: "one-vm", tables: vec![table], plots: vec![plot] }
}

/// Two workloads by turns, whose best windows are far apart.
pub fn change(host: &HostOf) -> Figure {
    let third = host.base.seconds / 3.0;
    let workloads = all_named(&["ebizzy", "hackbench", "ebizzy"]);
    let phases: Vec<_> =
        workloads.into_iter().enumerate().map(|(i, w)| (third * i as f64, w)).collect();
    let samples = 120;
    let configs = APPLES.map(|policy| Config {
        phases: phases.clone(),
        samples,
        warm_up: 0.0,
        ..host.config(phases[0].1, policy)
    });
    let reports = run_all(configs.to_vec());
    let title = format!("The first VM's window, one seed\n{}", host.text());
    let mut table = Table::new(&title, ["second", "workload"].iter().chain(&SETTINGS).copied());
    for i in (9..samples as usize).step_by(10) {
        let at = reports[0].path[i].seconds;
        let workload = phases.iter().rev().find(|(from, _)| *from < at).map_or("", |(_, w)| w.name);
        let windows =
            reports.iter().map(|r| r.path[i].window.map_or("-".into(), |w| w.to_string()));
        table.row(format!("{at:.2}"), [workload.to_string()].into_iter().chain(windows));
    }
    table.note = "The settings are those of `rules`".into();
    let series = SETTINGS.iter().zip(&reports).map(|(name, report)| {
        let points = report.path.iter().filter_map(|p| Some((p.seconds, f64::from(p.window?))));
        ((*name).to_string(), points.collect())
    });
    let plot = Plot {
        name: "kvm-change",
        title: format!("APPLE's window: ebizzy, hackbench, ebizzy ({} VMs)", host.base.vms),
        x: "simulated time, s",
        y: "window of the first VM, cycles",
        shape: Shape::Lines,
        series: series.collect(),
    };
    Figure { figure: "change", tables: vec![table], plots: vec![plot] }
}

pub fn by_vms(setup: &Setup) -> Figure {
    let counts = [1, 2, 4];
    let found = counts.map(|n| sweep(&setup.ours(n)));
    let pcpus = setup.base.pcpus;
    let title = format!("Best fixed window by the number of VMs. {pcpus} pCPUs");
    let columns = ["workload", "1 VM", "2 VMs", "4 VMs", "loss at 4096: 1", "2", "4"];
    let mut table = Table::new(&title, columns);
    let mut rows = Vec::new();
    let at = WINDOWS.iter().position(|&w| w == 4096).expect("it is one of them");
    for (i, name) in OWN.iter().enumerate() {
        let loss = |row: &Vec<Vec<Report>>| 1.0 - throughput(&row[at]).median / best(row).1;
        let bests = found.iter().map(|of_count| best(&of_count[i]).0.to_string());
        let losses: Vec<f64> = found.iter().map(|of_count| loss(&of_count[i])).collect();
        table.row(*name, bests.chain(losses.iter().map(|loss| percent(*loss) + "%")));
        rows.push(losses.iter().map(|loss| 100.0 - 100.0 * loss).collect());
    }
    table.note = format!("Overcommitment 1, 2 and 4. {} seeds", setup.seeds);
    let plot = Plot {
        name: "kvm-vms",
        title: format!("A window of 4096 by the number of VMs ({pcpus} pCPUs)"),
        x: "workload",
        y: "throughput at 4096, % of the best window's",
        shape: Shape::Bars(OWN.to_vec()),
        series: series(counts.map(|n| plural(n as u64, "VM")), &groups(rows)),
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
