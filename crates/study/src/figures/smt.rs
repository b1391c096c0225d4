//! What an idle CPU had better do, at the level of processes.

use serde_json::Value;

use super::super::panel::{Panel, Point, Shape, Side};
use super::super::read::spread;
use super::{Figure, Paper, Source};

const ELSEWHERE: &str = "Real here: policies, switches and throughput of processes on the CPUs \
                         there are. The paper's are virtual machines on SMT siblings; where \
                         siblings share a core, polling costs the neighbour more than here. \
                         `lissom kvm` has the host's side.";

const DIFFERS: &str = "Synchronization patterns, not the fourteen applications; processes and \
                       lissom's idle slots, not VMs.";

const FIGURE: Figure = Figure {
    name: "smt-fig3",
    source: Source::Smt,
    paper: Some(Paper {
        number: "Fig. 3",
        shows: "a synchronizing program in two VMs, matrix multiplication in the other two: \
                throughput by policy",
    }),
    title: "Beside a program that computes",
    measurement: "idle",
    shows: "Throughput of the program that blocks and of the program that computes beside it, \
            against both natively.",
    stated: "IdlePoll is best for the synchronizing programs; matrix multiplication loses.",
    published: &[],
    differs: DIFFERS,
    elsewhere: ELSEWHERE,
    view: pairs,
};

pub const FIGURES: &[Figure] = &[
    FIGURE,
    Figure {
        name: "smt-fig4",
        paper: Some(Paper {
            number: "Fig. 4",
            shows: "throughput of fourteen applications relative to bare metal, three policies",
        }),
        title: "Throughput by idle policy",
        shows: "Of two programs that share the CPUs, both together (their geometric mean), and of \
                each alone: natively 1, more is better.",
        stated: "HaltPoll is much better than IdlePoll for computing programs.",
        view: throughput,
        ..FIGURE
    },
    Figure {
        name: "smt-fig5",
        paper: Some(Paper {
            number: "Fig. 5",
            shows: "energy of kernbench, Exim and Metis by policy",
        }),
        title: "What polling costs: energy and CPU time",
        shows: "Watts of the processor where RAPL may be read; in any case the CPU time of \
                programs that have nothing to do: polling for ever burns a CPU, HaltPoll must not.",
        stated: "Both save energy; HaltPoll not more than IdlePoll.",
        view: energy,
        ..FIGURE
    },
    Figure {
        name: "smt-table2",
        paper: Some(Paper {
            number: "Table 2",
            shows: "context switches of eight applications, vanilla and HaltPoll",
        }),
        title: "Context switches by idle policy",
        shows: "Polling instead of sleeping avoids most switches of programs that block and wake \
                often.",
        stated: "HaltPoll has 46 % fewer switches in DBT1, 78 % in a file server, 36 % in HDFS, 53 \
                 % in MediaTomb, 27 % in MongoDB, 49 % in MySQL, 39 % in PostgreSQL, 26 % in SSDB. \
                 IdlePoll has none.",
        view: switches,
        ..FIGURE
    },
];

fn groups(report: &Value) -> &[Value] {
    report["groups"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Of the groups of a kind, a panel with a point for each of the policies.
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
