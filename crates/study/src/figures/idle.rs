//! Policies for idle CPUs, by synchronization patterns (smt.rs: by applications).

use serde_json::Value;

use super::super::panel::{Panel, Point, Shape, Side};
use super::super::read::spread;
use super::{Figure, Source};

const FIGURE: Figure = Figure {
    name: "own-idle-pairs",
    source: Source::Own,
    paper: None,
    title: "Patterns beside a program that computes",
    measurement: "idle",
    shows: "Throughput of a program that blocks, and of a program that computes beside it. 1 is \
            the throughput of the same pair natively.",
    stated: "",
    published: &[],
    differs: "",
    elsewhere: "Real: policies, switches and throughput of processes on the CPUs of this machine. \
                If SMT siblings share a core, polling costs the neighbour more than here.",
    view: pairs,
};

pub const OWN: &[Figure] = &[
    FIGURE,
    Figure {
        name: "own-idle-both",
        title: "Patterns: throughput by idle policy",
        shows: "For two programs that share the CPUs: the geometric mean of both throughputs. For \
                a program alone: its throughput. Native is 1, and more is better.",
        view: throughput,
        ..FIGURE
    },
    Figure {
        name: "own-idle-cpu",
        title: "Patterns: energy and CPU time by idle policy",
        shows: "Power of the processor in watts, if RAPL can be read, and the CPU time of programs \
                that have nothing to do. `poll` keeps a CPU busy for ever; `haltpoll` must not.",
        view: energy,
        ..FIGURE
    },
    Figure {
        name: "own-idle-cs",
        title: "Patterns: context switches by idle policy",
        shows: "Context switches a second. Polling instead of sleeping avoids most switches of \
                programs that block and wake often.",
        view: switches,
        ..FIGURE
    },
];

fn groups(report: &Value) -> &[Value] {
    report["groups"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Return a panel with a point for each group of `kind` and each policy.
fn panel(
    report: &Value,
    kind: &str,
    title: &str,
    y: &str,
    is_ratio: bool,
    read: impl Fn(&Value) -> Option<ui::number::Spread>,
) -> Panel {
    let groups: Vec<&Value> = groups(report).iter().filter(|g| g["kind"] == kind).collect();
    let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
    let names =
        groups.iter().map(|g| format!("{}, {}", text(&g["workload"]), g["threads"])).collect();
    let mut panel = Panel::named(title, "program, threads", y, names, is_ratio);
    for (i, group) in groups.iter().enumerate() {
        for figures in group["figures"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let scenario = text(&figures["scenario"]);
            if let Some(value) = read(figures).filter(|_| !(is_ratio && scenario == "native")) {
                panel.add(&scenario, Point::new(i, value, Side::Exact));
            }
        }
    }
    panel
}

const KINDS: [(&str, &str); 2] = [("pair", "beside a program that computes"), ("alone", "alone")];

fn switches(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let both = |f: &Value| {
        let (a, b) = (spread(&f["voluntary"])?, spread(&f["involuntary"])?);
        Some(ui::number::Spread {
            median: a.median + b.median,
            least: a.least + b.least,
            most: a.most + b.most,
        })
    };
    let panels = KINDS
        .map(|(kind, title)| panel(report, kind, title, "context switches a second", false, both));
    Ok(panels.into_iter().filter(|p| !p.is_empty()).collect())
}

fn throughput(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let panels = KINDS.map(|(kind, title)| {
        let field = if kind == "pair" { "both" } else { "program" };
        panel(report, kind, title, "throughput, native = 1", true, |f| spread(&f[field]))
    });
    Ok(panels.into_iter().filter(|p| !p.is_empty()).collect())
}

fn energy(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panels = vec![
        panel(report, "pair", "power, beside a program that computes", "W", false, |f| {
            spread(&f["watts"])
        }),
        panel(report, "alone", "power, alone", "W", false, |f| spread(&f["watts"])),
    ];
    let cpus = panel(report, "idle", "programs with nothing to do", "% of a CPU", false, |f| {
        spread(&f["cpus"]).map(|s| ui::number::Spread {
            median: s.median * 100.0,
            least: s.least * 100.0,
            most: s.most * 100.0,
        })
    });
    panels.push(cpus);
    panels.push(panel(
        report,
        "pair",
        "CPUs used by the program that blocks",
        "CPUs",
        false,
        |f| spread(&f["cpus"]),
    ));
    Ok(panels.into_iter().filter(|p| !p.is_empty()).collect())
}

fn pairs(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panels = vec![
        panel(report, "pair", "the program that blocks", "throughput, native = 1", true, |f| {
            spread(&f["program"])
        }),
        panel(report, "pair", "the one that computes", "throughput, native = 1", true, |f| {
            spread(&f["computes"])
        }),
    ];
    panels.iter_mut().for_each(|p| p.shape = Shape::Table);
    Ok(panels.into_iter().filter(|p| !p.is_empty()).collect())
}
