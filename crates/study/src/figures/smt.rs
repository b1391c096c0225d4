//! Policies for idle CPUs, measured with applications in pairs.

use serde_json::Value;

use super::super::panel::{Panel, Point, Scale, Side};
use super::super::read::spread;
use super::{Figure, Paper, Published, Source};

const ELSEWHERE: &str = "Real: policies, switches and throughput of processes on the CPUs of this \
                         machine. The paper runs virtual machines on SMT siblings. If siblings \
                         share a core, polling costs the neighbour more than here. `lissom kvm` \
                         measures and tunes hosts of virtual machines.";

const DIFFERS: &str = "Two programs, not four VMs. Vanilla is `lissom run --idle=sleep`; bare \
                       metal is the application alone, natively. Each run does the same work. \
                       Stand-ins: dbench for FileServer, ffmpeg for MediaTomb, MariaDB for MySQL, \
                       GraphicsMagick for PHP's watermarks, Redis for SSDB, Spark for Hadoop's \
                       TeraSort. Not measured: DBT1, HDFS, MongoDB. Processes with one thread \
                       (dbench, PostgreSQL) run natively, because lissom manages threads.";

const FIGURE: Figure = Figure {
    name: "smt-fig2",
    source: Source::Smt,
    paper: Some(Paper {
        number: "Fig. 2",
        shows: "throughput of dedup and volrend, the same program in all VMs: vanilla, IdlePoll \
                and bare metal",
    }),
    title: "Beside a second copy",
    measurement: "smt",
    shows: "Throughput of one of two copies of a program that run together, natively and with each \
            policy.",
    stated: "",
    published: &[Published {
        panel: AGAINST_VANILLA,
        series: "published, IdlePoll",
        points: &[("dedup", 1.536), ("volrend", 1.808)],
    }],
    differs: "Two copies, not four VMs. Vanilla is `lissom run --idle=sleep`; bare metal is the \
              program alone, natively. Both programs are written from their specifications.",
    elsewhere: ELSEWHERE,
    view: second_copy,
};

pub const FIGURES: &[Figure] = &[
    FIGURE,
    Figure {
        name: "smt-fig3",
        paper: Some(Paper {
            number: "Fig. 3",
            shows: "a synchronizing program in two VMs, matrix multiplication in the other two: \
                    throughput by policy",
        }),
        title: "Beside a program that computes",
        shows: "Throughput of an application, and of the matrix multiplication beside it. 1 is the \
                throughput of each alone, natively.",
        stated: "IdlePoll is best for the synchronizing programs; matrix multiplication loses.",
        published: &[],
        differs: DIFFERS,
        view: mixed,
        ..FIGURE
    },
    Figure {
        name: "smt-fig4",
        paper: Some(Paper {
            number: "Fig. 4",
            shows: "throughput of fourteen applications relative to bare metal, three policies",
        }),
        title: "Applications by idle policy",
        shows: "Throughput of an application beside matrix multiplication, and beside a second \
                copy. 1 is its throughput alone, natively.",
        stated: "HaltPoll is much better than IdlePoll for computing programs.",
        published: &[],
        differs: DIFFERS,
        view: applications,
        ..FIGURE
    },
    Figure {
        name: "smt-fig5",
        paper: Some(Paper {
            number: "Fig. 5",
            shows: "energy of kernbench, Exim and Metis by policy",
        }),
        title: "Energy and CPU time by idle policy",
        shows: "CPU time of an application for a unit of work, beside matrix multiplication, and \
                energy of the processors if RAPL can be read. 1 is vanilla (`sleep`).",
        stated: "Both policies save energy. HaltPoll does not save more than IdlePoll.",
        published: &[],
        differs: DIFFERS,
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
        shows: "Context switches of an application and its servers, from their start to their end, \
                beside matrix multiplication. The second panel is for a unit of work, relative to \
                vanilla.",
        stated: "IdlePoll has no context switches.",
        published: &[
            Published {
                panel: SWITCHES,
                series: "published, vanilla",
                points: &[
                    ("DBT1", 169_329_682.0),
                    ("dbench (FileServer)", 91_478_963.0),
                    ("HDFS", 5_135_702.0),
                    ("ffmpeg (MediaTomb)", 394_215.0),
                    ("MongoDB", 12_741_002.0),
                    ("mysql", 14_412_627.0),
                    ("pgsql", 1_904_564.0),
                    ("redis (SSDB)", 41_116_782.0),
                ],
            },
            Published {
                panel: SWITCHES,
                series: "published, HaltPoll",
                points: &[
                    ("DBT1", 91_744_198.0),
                    ("dbench (FileServer)", 20_359_352.0),
                    ("HDFS", 3_269_870.0),
                    ("ffmpeg (MediaTomb)", 184_126.0),
                    ("MongoDB", 9_241_032.0),
                    ("mysql", 7_254_103.0),
                    ("pgsql", 1_162_871.0),
                    ("redis (SSDB)", 30_576_993.0),
                ],
            },
            Published {
                panel: AGAINST_VANILLA,
                series: "published, HaltPoll",
                points: &[
                    ("DBT1", 0.542),
                    ("dbench (FileServer)", 0.223),
                    ("HDFS", 0.637),
                    ("ffmpeg (MediaTomb)", 0.467),
                    ("MongoDB", 0.725),
                    ("mysql", 0.503),
                    ("pgsql", 0.611),
                    ("redis (SSDB)", 0.744),
                ],
            },
        ],
        differs: DIFFERS,
        view: switches,
        ..FIGURE
    },
];

/// Titles of panels.
const AGAINST_VANILLA: &str = "against vanilla (sleep)";
const SWITCHES: &str = "context switches of a run";

/// The programs of Fig. 2, which are not among the fourteen.
const FIGURE_2: [&str; 2] = ["dedup", "volrend"];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Return our name, followed by the paper's in parentheses if that differs.
fn label(group: &Value) -> String {
    let (ours, paper) = (text(&group["workload"]), text(&group["paper"]));
    if ours == paper.to_lowercase() { ours.into() } else { format!("{ours} ({paper})") }
}

/// Return a panel with a point for each wanted application and each policy. `field` is a path in
/// the figures of a cell, separated by dots.
fn panel(
    report: &Value,
    pair: &str,
    (title, y): (&str, &str),
    is_ratio: bool,
    field: &str,
    wanted: impl Fn(&str) -> bool,
) -> Panel {
    let groups = report["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
    let groups: Vec<&Value> = groups.iter().filter(|g| wanted(text(&g["workload"]))).collect();
    let names = groups.iter().map(|g| label(g)).collect();
    let mut panel = Panel::named(title, "application", y, names, is_ratio);
    let pointer = format!("/{}", field.replace('.', "/"));
    for (i, group) in groups.iter().enumerate() {
        for figures in group["figures"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let value = figures.pointer(&pointer).and_then(spread);
            if let Some(value) = value.filter(|_| figures["pair"] == pair) {
                panel.add(text(&figures["policy"]), Point::new(i, value, Side::Exact));
            }
        }
    }
    panel
}

const THROUGHPUT: &str = "throughput, alone = 1";

fn is_of_figure_2(name: &str) -> bool {
    FIGURE_2.contains(&name)
}

fn full(panels: impl IntoIterator<Item = Panel>) -> anyhow::Result<Vec<Panel>> {
    Ok(panels.into_iter().filter(|p| !p.is_empty()).collect())
}

/// Remove `sleep`, which is 1.
fn without_base(mut panel: Panel) -> Panel {
    panel.series.retain(|s| s.name != "sleep");
    panel
}

fn second_copy(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of = |title, y, field| panel(report, "same", (title, y), true, field, is_of_figure_2);
    full([
        of("one of two copies", THROUGHPUT, "program"),
        without_base(of(AGAINST_VANILLA, "throughput, vanilla = 1", "to_sleep.program")),
    ])
}

fn mixed(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of = |title, field| panel(report, "mixed", (title, THROUGHPUT), true, field, |_| true);
    full([of("the application", "program"), of("the one that computes", "beside")])
}

fn applications(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of = |pair, title| {
        panel(report, pair, (title, THROUGHPUT), true, "program", |n| !is_of_figure_2(n))
    };
    full([of("mixed", "beside matrix multiplication"), of("same", "beside a second copy")])
}

fn energy(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of =
        |title, y, is_ratio, field| panel(report, "mixed", (title, y), is_ratio, field, |_| true);
    full([
        of("power", "W", false, "watts"),
        without_base(of("energy", "joules, vanilla = 1", true, "to_sleep.joules")),
        without_base(of("CPU time", "CPU seconds, vanilla = 1", true, "to_sleep.cpu")),
    ])
}

fn switches(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of =
        |title, y, is_ratio, field| panel(report, "mixed", (title, y), is_ratio, field, |_| true);
    let mut total = of(SWITCHES, "context switches", false, "switches");
    total.scale = Scale::Log;
    let ratio = of(AGAINST_VANILLA, "context switches, vanilla = 1", true, "to_sleep.switches");
    full([total, without_base(ratio)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn policies_are_series_and_applications_places() {
        let spread = |m: f64| json!({ "median": m, "least": m, "most": m });
        let cell = |policy: &str, value: f64| {
            json!({ "pair": "mixed", "policy": policy, "program": spread(value),
                    "switches": spread(100.0 * value), "to_sleep": { "switches": spread(value) } })
        };
        let group = |name: &str, paper: &str| {
            json!({ "workload": name, "paper": paper,
                    "figures": [{ "pair": null, "policy": "native", "switches": spread(1.0) },
                                cell("sleep", 1.0), cell("haltpoll", 0.5)] })
        };
        let report = json!({ "groups": [group("dedup", "dedup"), group("redis", "SSDB")] });
        let panels = switches(&report).expect("panels");
        let names: Vec<&str> = panels[0].series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!((panels.len(), names), (2, vec!["sleep", "haltpoll"]));
        assert_eq!(panels[1].series.len(), 1);
        assert!(panels[1].series[0].points.iter().all(|p| p.median == 0.5));
        let panels = applications(&report).expect("panels");
        assert_eq!(panels.len(), 1);
        assert!(matches!(&panels[0].places, super::super::super::panel::Places::Names(n)
            if n[..] == ["redis (SSDB)"]));
    }
}
