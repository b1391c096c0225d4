//! Policies for idle CPUs, by synchronization patterns (smt.rs: by applications).

use serde_json::Value;

use super::super::panel::{Panel, Shape};
use super::super::read::{list, spread, text};
use super::Figure;
use super::View::Json;
use ui::number::Spread;

const FIGURE: Figure = Figure {
    measurement: "idle",
    elsewhere: "Real: policies, switches and throughput of processes on the CPUs of this machine. \
                If SMT siblings share a core, polling costs the neighbour more than here.",
    ..Figure::EMPTY
};

pub const OWN: &[Figure] = &[
    Figure {
        name: "own-idle-pairs",
        title: "Patterns beside a program that computes",
        shows: "Throughput of a program that blocks, and of a program that computes beside it. 1 \
                is the throughput of the same pair natively.",
        view: Json(pairs),
        ..FIGURE
    },
    Figure {
        name: "own-idle-both",
        title: "Patterns: throughput by idle policy",
        shows: "For two programs that share the CPUs: the geometric mean of both throughputs. For \
                a program alone: its throughput. Native is 1, and more is better.",
        view: Json(throughput),
        ..FIGURE
    },
    Figure {
        name: "own-idle-cpu",
        title: "Patterns: energy and CPU time by idle policy",
        shows: "Power of the processor in watts, if RAPL can be read, and the CPU time of programs \
                that have nothing to do. `poll` keeps a CPU busy for ever; `haltpoll` must not.",
        view: Json(energy),
        ..FIGURE
    },
    Figure {
        name: "own-idle-cs",
        title: "Patterns: context switches by idle policy",
        shows: "Context switches a second. Polling instead of sleeping avoids most switches of \
                programs that block and wake often.",
        view: Json(switches),
        ..FIGURE
    },
];

/// Return a panel with a point for each group of `kind` and each policy.
fn panel(
    report: &Value,
    kind: &str,
    (title, y): (&str, &str),
    is_ratio: bool,
    read: impl Fn(&Value) -> Option<Spread>,
) -> Panel {
    let mut panel = Panel::new(title, "program, threads", y, is_ratio);
    for group in list(report, "groups").iter().filter(|g| g["kind"] == kind) {
        let shown = |f: &&Value| !(is_ratio && f["scenario"] == "native");
        let figures = list(group, "figures").iter().filter(shown);
        let points = figures.filter_map(|f| Some((text(&f["scenario"]), read(f)?)));
        panel.row(&format!("{}, {}", text(&group["workload"]), group["threads"]), points);
    }
    panel
}

/// Return a reader of a field in the figures of a group.
fn field(name: &str) -> impl Fn(&Value) -> Option<Spread> {
    move |figures| spread(&figures[name])
}

const PAIR: (&str, &str) = ("pair", "beside a program that computes");
const ALONE: (&str, &str) = ("alone", "alone");
const THROUGHPUT: &str = "throughput, native = 1";

fn switches(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let both = |f: &Value| {
        let (a, b) = (spread(&f["voluntary"])?, spread(&f["involuntary"])?);
        Some(Spread {
            median: a.median + b.median,
            least: a.least + b.least,
            most: a.most + b.most,
        })
    };
    let of = |(kind, title)| panel(report, kind, (title, "context switches a second"), false, both);
    Ok(vec![of(PAIR), of(ALONE)])
}

fn throughput(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of = |(kind, title), name| panel(report, kind, (title, THROUGHPUT), true, field(name));
    Ok(vec![of(PAIR, "both"), of(ALONE, "program")])
}

fn energy(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let percent = |f: &Value| {
        let Spread { median, least, most } = spread(&f["cpus"])?;
        Some(Spread { median: median * 100.0, least: least * 100.0, most: most * 100.0 })
    };
    let of = |kind, title, unit, name| panel(report, kind, (title, unit), false, field(name));
    Ok(vec![
        of("pair", "power, beside a program that computes", "W", "watts"),
        of("alone", "power, alone", "W", "watts"),
        panel(report, "idle", ("programs with nothing to do", "% of a CPU"), false, percent),
        of("pair", "CPUs used by the program that blocks", "CPUs", "cpus"),
    ])
}

fn pairs(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of = |title, name| {
        let panel = panel(report, "pair", (title, THROUGHPUT), true, field(name));
        Panel { shape: Shape::Table, ..panel }
    };
    Ok(vec![of("the program that blocks", "program"), of("the one that computes", "computes")])
}
