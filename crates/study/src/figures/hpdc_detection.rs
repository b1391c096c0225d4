//! Tables 2 and 3: how often busy-waiting detection is right.

use serde_json::Value;

use super::super::panel::{Panel, Places, Point, Shape};
use super::super::read::{Report, Watched};
use super::{Figure, Paper, Published, Source};

const WAITING: &str = "scans of waiting threads";
const WORKING: &str = "scans of working threads";
const TRIES: &str = "tries";

pub const TABLE_2: Figure = Figure {
    name: "hpdc-table2",
    source: Source::Hpdc,
    paper: Some(Paper {
        number: "Table 2",
        shows: "sensitivity of busy-waiting detection: two threads on one core, one of which holds \
                the lock for ever",
    }),
    title: "Sensitivity of busy-waiting detection",
    measurement: "sensitivity",
    shows: "How many scans of a thread that waits for a lock detect the wait, and how many waits \
            of 10 ms are detected. *bare*: the lock's loop has no `pause` instruction, unlike the \
            paper's.",
    stated: "",
    published: &[
        Published { panel: WAITING, series: "published tries", points: TRIES_2 },
        Published { panel: WAITING, series: "published true positives", points: FOUND_2 },
        Published { panel: WAITING, series: "published sensitivity %", points: SENSITIVITY },
    ],
    differs: "A try is a scan. Every 100 us, a signal stops the waiting thread, and an interpreter \
              runs its code ahead to prove that it waits. The paper reads 16 branch records \
              instead. The holder of the lock sleeps, so the waiting thread has the CPU.",
    elsewhere: "Real. The detection interprets code and needs no hardware support.",
    view: sensitivity,
};

pub const TABLE_3: Figure = Figure {
    name: "hpdc-table3",
    paper: Some(Paper {
        number: "Table 3",
        shows: "specificity of busy-waiting detection and its overhead, eight programs of NPB",
    }),
    title: "Specificity of busy-waiting detection",
    measurement: "specificity",
    shows: "How many scans of working threads take them for waiting ones (false positives). The \
            aim is none. Overhead: how much longer a round takes with `--spin=auto` than with \
            `--spin=off`.",
    published: &[
        Published { panel: WORKING, series: "published tries", points: TRIES_3 },
        Published { panel: WORKING, series: "published false positives", points: FALSE_3 },
        Published { panel: WORKING, series: "published specificity %", points: SPECIFICITY },
        Published { panel: WORKING, series: "published overhead %", points: OVERHEAD },
    ],
    differs: "The programs are ours, written from the specifications, with 4 threads a CPU. A try \
              is a scan: every 100 us, a signal stops each CPU's running thread, and an \
              interpreter runs its code ahead. The paper reads branch records and cache misses. \
              The overhead is that of the usual rate of scans. OpenMP blocks at once \
              (OMP_WAIT_POLICY=passive), because its spinning would be a true wait.",
    elsewhere: "Real.",
    view: specificity,
    ..TABLE_2
};

pub const OWN_SPECIFICITY: Figure = Figure {
    name: "own-specificity",
    source: Source::Own,
    paper: None,
    title: "Specificity among programs that people run",
    measurement: "specificity-programs",
    shows: "How many scans take working threads for waiting ones (false positives). The aim is \
            none. The programs are compressors, sorters, a compiler, Python, and loops of ours \
            that look like waiting.",
    published: &[],
    differs: "",
    ..TABLE_3
};

fn watched(
    report: &Value,
    what: &str,
    title: &str,
    x: &str,
    columns: fn(&Watched) -> Vec<(&'static str, f64)>,
) -> anyhow::Result<Panel> {
    let report = Report::of(report)?;
    let mut panel = Panel::named(title, x, "scans, and %", vec![], false);
    panel.shape = Shape::Table;
    let mut names: Vec<String> = Vec::new();
    for one in report.watched.iter().filter(|w| w.what == what && w.state == "ok") {
        // The first way of switching represents lissom.
        if names.contains(&one.name) {
            continue;
        }
        for (column, value) in columns(one) {
            panel.add(column, Point::one(names.len() as f64, value));
        }
        names.push(one.name.clone());
    }
    panel.places = Places::Names(names);
    Ok(panel)
}

fn percent(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all.max(1) as f64
}

fn sensitivity(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let columns = |w: &Watched| {
        vec![
            (TRIES, w.samples as f64),
            ("true positives", w.waits as f64),
            ("sensitivity %", percent(w.waits, w.samples)),
        ]
    };
    Ok(vec![
        watched(report, "sensitivity", WAITING, "lock", columns)?,
        watched(report, "waits", "waits of 10 ms", "lock", columns)?,
    ])
}

fn specificity(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let columns = |w: &Watched| {
        let mut list = vec![
            (TRIES, w.samples as f64),
            ("false positives", w.waits as f64),
            ("specificity %", 100.0 - percent(w.waits, w.samples)),
        ];
        list.extend(w.overhead.map(|o| ("overhead %", o.median)));
        list
    };
    Ok(vec![watched(report, "specificity", WORKING, "program", columns)?])
}

type Points = &'static [(&'static str, f64)];

const TRIES_2: Points = &[
    ("array", 55_991.0),
    ("clh", 55_859.0),
    ("malthusian", 55_740.0),
    ("mcs", 55_718.0),
    ("partitioned", 55_763.0),
    ("pthread", 55_777.0),
    ("ticket", 55_769.0),
    ("ttas", 55_738.0),
    ("cna", 55_785.0),
    ("aqs", 55_702.0),
];
const FOUND_2: Points = &[
    ("array", 55_860.0),
    ("clh", 55_795.0),
    ("malthusian", 55_676.0),
    ("mcs", 55_665.0),
    ("partitioned", 55_686.0),
    ("pthread", 55_699.0),
    ("ticket", 55_690.0),
    ("ttas", 55_664.0),
    ("cna", 55_724.0),
    ("aqs", 55_635.0),
];
const SENSITIVITY: Points = &[
    ("array", 99.76),
    ("clh", 99.88),
    ("malthusian", 99.86),
    ("mcs", 99.90),
    ("partitioned", 99.86),
    ("pthread", 99.86),
    ("ticket", 99.85),
    ("ttas", 99.86),
    ("cna", 99.89),
    ("aqs", 99.88),
];
const TRIES_3: Points = &[
    ("npb-is", 613_136.0),
    ("npb-ep", 3_538_136.0),
    ("npb-cg", 4_893_039.0),
    ("npb-mg", 1_326_357.0),
    ("npb-ft", 3_857_623.0),
    ("npb-sp", 15_075_600.0),
    ("npb-bt", 10_640_650.0),
    ("npb-ua", 12_332_790.0),
];
const FALSE_3: Points = &[
    ("npb-is", 3742.0),
    ("npb-ep", 2965.0),
    ("npb-cg", 27_209.0),
    ("npb-mg", 3520.0),
    ("npb-ft", 572.0),
    ("npb-sp", 508.0),
    ("npb-bt", 9856.0),
    ("npb-ua", 2734.0),
];
const SPECIFICITY: Points = &[
    ("npb-is", 99.38),
    ("npb-ep", 99.92),
    ("npb-cg", 99.44),
    ("npb-mg", 99.73),
    ("npb-ft", 99.99),
    ("npb-sp", 99.99),
    ("npb-bt", 99.91),
    ("npb-ua", 99.98),
];
const OVERHEAD: Points = &[
    ("npb-is", 0.9),
    ("npb-ep", 0.0),
    ("npb-cg", 0.0),
    ("npb-mg", 0.99),
    ("npb-ft", 0.26),
    ("npb-sp", 0.19),
    ("npb-bt", 0.0),
    ("npb-ua", 0.0043),
];

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
        let report = json!({ "watched": [
            one("sensitivity", "mcs", 50_000, 49_990), one("waits", "mcs", 100, 100), is
        ] });
        let values = |panel: &Panel| -> Vec<(String, f64)> {
            panel.series.iter().map(|s| (s.name.clone(), s.points[0].median)).collect()
        };
        let panels = sensitivity(&report).expect("panels");
        assert_eq!(values(&panels[0])[2], ("sensitivity %".into(), 99.98));
        assert_eq!(values(&panels[1])[2].1, 100.0);
        let panels = specificity(&report).expect("panels");
        let expected = [("tries", 500_000.0), ("false positives", 5.0), ("specificity %", 99.999)];
        let mut expected: Vec<(String, f64)> = expected.map(|(n, v)| (n.to_string(), v)).to_vec();
        expected.push(("overhead %".into(), 0.5));
        assert_eq!(values(&panels[0]), expected);
    }
}
