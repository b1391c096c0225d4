//! Policies for idle CPUs, measured with applications in pairs.

use serde_json::Value;

use super::super::panel::{Panel, Scale};
use super::super::read::{list, spread, text};
use super::View::Json;
use super::{Figure, Published};

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

const FIGURE: Figure =
    Figure { measurement: "smt", differs: DIFFERS, elsewhere: ELSEWHERE, ..Figure::EMPTY };

pub const FIGURES: &[Figure] = &[
    Figure {
        name: "smt-fig2",
        paper: "throughput of dedup and volrend, the same program in all VMs: vanilla, IdlePoll \
                and bare metal",
        title: "Beside a second copy",
        shows: "Throughput of one of two copies of a program that run together, natively and with \
                each policy.",
        published: &[Published {
            columns: &[(AGAINST_VANILLA, "published, IdlePoll")],
            rows: &[("dedup", &[1.536]), ("volrend", &[1.808])],
        }],
        differs: "Two copies, not four VMs. Vanilla is `lissom run --idle=sleep`; bare metal is \
                  the program alone, natively. Both programs are written from their \
                  specifications.",
        view: Json(second_copy),
        ..FIGURE
    },
    Figure {
        name: "smt-fig3",
        paper: "a synchronizing program in two VMs, matrix multiplication in the other two: \
                throughput by policy",
        title: "Beside a program that computes",
        shows: "Throughput of an application, and of the matrix multiplication beside it. 1 is the \
                throughput of each alone, natively.",
        stated: "IdlePoll is best for the synchronizing programs; matrix multiplication loses.",
        view: Json(mixed),
        ..FIGURE
    },
    Figure {
        name: "smt-fig4",
        paper: "throughput of fourteen applications relative to bare metal, three policies",
        title: "Applications by idle policy",
        shows: "Throughput of an application beside matrix multiplication, and beside a second \
                copy. 1 is its throughput alone, natively.",
        stated: "HaltPoll is much better than IdlePoll for computing programs.",
        view: Json(applications),
        ..FIGURE
    },
    Figure {
        name: "smt-fig5",
        paper: "energy of kernbench, Exim and Metis by policy",
        title: "Energy and CPU time by idle policy",
        shows: "CPU time of an application for a unit of work, beside matrix multiplication, and \
                energy of the processors if RAPL can be read. 1 is vanilla (`sleep`).",
        stated: "Both policies save energy. HaltPoll does not save more than IdlePoll.",
        view: Json(energy),
        ..FIGURE
    },
    Figure {
        name: "smt-table2",
        paper: "context switches of eight applications, vanilla and HaltPoll",
        title: "Context switches by idle policy",
        shows: "Context switches of an application and its servers, from their start to their end, \
                beside matrix multiplication. The second panel is for a unit of work, relative to \
                vanilla.",
        stated: "IdlePoll has no context switches.",
        published: &[Published {
            columns: &[
                (SWITCHES, "published, vanilla"),
                (SWITCHES, "published, HaltPoll"),
                (AGAINST_VANILLA, "published, HaltPoll"),
            ],
            rows: &[
                ("DBT1", &[169_329_682.0, 91_744_198.0, 0.542]),
                ("dbench (FileServer)", &[91_478_963.0, 20_359_352.0, 0.223]),
                ("HDFS", &[5_135_702.0, 3_269_870.0, 0.637]),
                ("ffmpeg (MediaTomb)", &[394_215.0, 184_126.0, 0.467]),
                ("MongoDB", &[12_741_002.0, 9_241_032.0, 0.725]),
                ("mysql", &[14_412_627.0, 7_254_103.0, 0.503]),
                ("pgsql", &[1_904_564.0, 1_162_871.0, 0.611]),
                ("redis (SSDB)", &[41_116_782.0, 30_576_993.0, 0.744]),
            ],
        }],
        view: Json(switches),
        ..FIGURE
    },
];

/// Titles of panels.
const AGAINST_VANILLA: &str = "against vanilla (sleep)";
const SWITCHES: &str = "context switches of a run";

/// The programs of Fig. 2, which are not among the fourteen.
const FIGURE_2: [&str; 2] = ["dedup", "volrend"];

/// Return our name, followed by the paper's in parentheses if that differs.
fn label(group: &Value) -> String {
    let (ours, paper) = (text(&group["workload"]), text(&group["paper"]));
    if ours == paper.to_lowercase() { ours.into() } else { format!("{ours} ({paper})") }
}

/// Return a panel with a point for each wanted application and each policy. `field` is a path in
/// the figures of a cell, separated by dots.
fn panel<'a>(
    report: &'a Value,
    pair: &str,
    (title, y): (&str, &str),
    is_ratio: bool,
    field: &str,
    wanted: impl Fn(&str) -> bool,
) -> Panel {
    let pointer = format!("/{}", field.replace('.', "/"));
    let mut panel = Panel::new(title, "application", y, is_ratio);
    for group in list(report, "groups").iter().filter(|g| wanted(text(&g["workload"]))) {
        let figures = list(group, "figures").iter().filter(|f| f["pair"] == pair);
        let point = |f: &'a Value| Some((text(&f["policy"]), spread(f.pointer(&pointer)?)?));
        panel.row(&label(group), figures.filter_map(point));
    }
    panel
}

const THROUGHPUT: &str = "throughput, alone = 1";

fn is_of_figure_2(name: &str) -> bool {
    FIGURE_2.contains(&name)
}

/// Remove `sleep`, which is 1.
fn without_base(mut panel: Panel) -> Panel {
    panel.series.retain(|s| s.name != "sleep");
    panel
}

fn second_copy(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of = |title, y, field| panel(report, "same", (title, y), true, field, is_of_figure_2);
    Ok(vec![
        of("one of two copies", THROUGHPUT, "program"),
        without_base(of(AGAINST_VANILLA, "throughput, vanilla = 1", "to_sleep.program")),
    ])
}

fn mixed(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of = |title, field| panel(report, "mixed", (title, THROUGHPUT), true, field, |_| true);
    Ok(vec![of("the application", "program"), of("the one that computes", "beside")])
}

fn applications(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of = |pair, title| {
        panel(report, pair, (title, THROUGHPUT), true, "program", |n| !is_of_figure_2(n))
    };
    Ok(vec![of("mixed", "beside matrix multiplication"), of("same", "beside a second copy")])
}

fn energy(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let of =
        |title, y, is_ratio, field| panel(report, "mixed", (title, y), is_ratio, field, |_| true);
    Ok(vec![
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
    Ok(vec![total, without_base(ratio)])
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
        assert_eq!(panels[0].names(), ["redis (SSDB)"]);
        assert!(panels[1].is_empty());
    }
}
