//! Tables 2 and 3: how often busy-waiting detection is right.

use super::super::panel::{Panel, Scale, Shape};
use super::super::read::{Report, Watched};
use super::View::Groups;
use super::{Figure, Published};

const WAITING: &str = "scans of waiting threads";
const WORKING: &str = "scans of working threads";
const TRIES: &str = "tries";

pub const TABLE_2: Figure = Figure {
    name: "hpdc-table2",
    paper: "sensitivity of busy-waiting detection: two threads on one core, one of which holds the \
            lock for ever",
    title: "Sensitivity of busy-waiting detection",
    measurement: "sensitivity",
    shows: "How many scans of a thread that waits for a lock detect the wait, and how many waits \
            of 10 ms are detected. *bare*: the lock's loop has no `pause` instruction, unlike the \
            paper's.",
    published: &[Published {
        columns: &[
            (WAITING, "published tries"),
            (WAITING, "published true positives"),
            (WAITING, "published sensitivity %"),
        ],
        rows: &[
            ("array", &[55_991.0, 55_860.0, 99.76]),
            ("clh", &[55_859.0, 55_795.0, 99.88]),
            ("malthusian", &[55_740.0, 55_676.0, 99.86]),
            ("mcs", &[55_718.0, 55_665.0, 99.90]),
            ("partitioned", &[55_763.0, 55_686.0, 99.86]),
            ("pthread", &[55_777.0, 55_699.0, 99.86]),
            ("ticket", &[55_769.0, 55_690.0, 99.85]),
            ("ttas", &[55_738.0, 55_664.0, 99.86]),
            ("cna", &[55_785.0, 55_724.0, 99.89]),
            ("aqs", &[55_702.0, 55_635.0, 99.88]),
        ],
    }],
    differs: "A try is a scan. Every 100 us, a signal stops the waiting thread, and an interpreter \
              runs its code ahead to prove that it waits. The paper reads 16 branch records \
              instead. The holder of the lock sleeps, so the waiting thread has the CPU.",
    elsewhere: "Real. The detection interprets code and needs no hardware support.",
    view: Groups(sensitivity),
    ..Figure::EMPTY
};

pub const TABLE_3: Figure = Figure {
    name: "hpdc-table3",
    paper: "specificity of busy-waiting detection and its overhead, eight programs of NPB",
    title: "Specificity of busy-waiting detection",
    measurement: "specificity",
    shows: "How many scans of working threads take them for waiting ones (false positives). The \
            aim is none. Overhead: how much longer a round takes with `--spin=auto` than with \
            `--spin=off`.",
    published: &[Published {
        columns: &[
            (WORKING, "published tries"),
            (WORKING, "published false positives"),
            (WORKING, "published specificity %"),
            (WORKING, "published overhead %"),
        ],
        rows: &[
            ("npb-is", &[613_136.0, 3742.0, 99.38, 0.9]),
            ("npb-ep", &[3_538_136.0, 2965.0, 99.92, 0.0]),
            ("npb-cg", &[4_893_039.0, 27_209.0, 99.44, 0.0]),
            ("npb-mg", &[1_326_357.0, 3520.0, 99.73, 0.99]),
            ("npb-ft", &[3_857_623.0, 572.0, 99.99, 0.26]),
            ("npb-sp", &[15_075_600.0, 508.0, 99.99, 0.19]),
            ("npb-bt", &[10_640_650.0, 9856.0, 99.91, 0.0]),
            ("npb-ua", &[12_332_790.0, 2734.0, 99.98, 0.0043]),
        ],
    }],
    differs: "The programs are ours, written from the specifications, with 4 threads a CPU. A try \
              is a scan: every 100 us, a signal stops each CPU's running thread, and an \
              interpreter runs its code ahead. The paper reads branch records and cache misses. \
              The overhead is that of the usual rate of scans. OpenMP blocks at once \
              (OMP_WAIT_POLICY=passive), because its spinning would be a true wait.",
    elsewhere: "Real.",
    view: Groups(specificity),
    ..Figure::EMPTY
};

pub const OWN_SPECIFICITY: Figure = Figure {
    name: "own-specificity",
    title: "Specificity among programs that people run",
    measurement: "specificity-programs",
    shows: "How many scans take working threads for waiting ones (false positives). The aim is \
            none. The programs are compressors, sorters, a compiler, Python, and loops of ours \
            that look like waiting.",
    elsewhere: TABLE_3.elsewhere,
    view: TABLE_3.view,
    ..Figure::EMPTY
};

fn watched(
    report: &Report,
    what: &str,
    title: &str,
    x: &str,
    columns: fn(&Watched) -> Vec<(&'static str, f64)>,
) -> Panel {
    let mut panel = Panel::new(title, x, "scans, and %", false).with(Shape::Table, Scale::Linear);
    for one in report.watched.iter().filter(|w| w.what == what && w.state == "ok") {
        // The first way of switching represents lissom.
        if !panel.names().contains(&one.name) {
            panel.row(&one.name, columns(one));
        }
    }
    panel
}

fn percent(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all.max(1) as f64
}

fn sensitivity(report: &Report) -> Vec<Panel> {
    let columns = |w: &Watched| {
        vec![
            (TRIES, w.samples as f64),
            ("true positives", w.waits as f64),
            ("sensitivity %", percent(w.waits, w.samples)),
        ]
    };
    vec![
        watched(report, "sensitivity", WAITING, "lock", columns),
        watched(report, "waits", "waits of 10 ms", "lock", columns),
    ]
}

fn specificity(report: &Report) -> Vec<Panel> {
    let columns = |w: &Watched| {
        let mut list = vec![
            (TRIES, w.samples as f64),
            ("false positives", w.waits as f64),
            ("specificity %", 100.0 - percent(w.waits, w.samples)),
        ];
        list.extend(w.overhead.map(|o| ("overhead %", o.median)));
        list
    };
    vec![watched(report, "specificity", WORKING, "program", columns)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_the_papers() {
        let one = |what: &str, name: &str, samples: u64, waits: u64| {
            json!({ "what": what, "name": name, "switch": "auto", "state": "ok",
                    "samples": samples, "waits": waits })
        };
        let mut is = one("specificity", "npb-is", 500_000, 5);
        is["overhead"] = json!({ "median": 0.5, "least": 0.0, "most": 1.0 });
        let report = Report::of(&json!({ "watched": [
            one("sensitivity", "mcs", 50_000, 49_990), one("waits", "mcs", 100, 100), is
        ] }));
        let report = report.expect("a report");
        let values = |panel: &Panel| -> Vec<(String, f64)> {
            panel.series.iter().map(|s| (s.name.clone(), s.points[0].median)).collect()
        };
        let panels = sensitivity(&report);
        assert_eq!(values(&panels[0])[2], ("sensitivity %".into(), 99.98));
        assert_eq!(values(&panels[1])[2].1, 100.0);
        let panels = specificity(&report);
        let expected = [("tries", 500_000.0), ("false positives", 5.0), ("specificity %", 99.999)];
        let mut expected: Vec<(String, f64)> = expected.map(|(n, v)| (n.to_string(), v)).to_vec();
        expected.push(("overhead %".into(), 0.5));
        assert_eq!(values(&panels[0]), expected);
    }
}
