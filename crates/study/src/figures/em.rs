//! Programs that share the CPUs, and the manager that divides these.

use serde_json::Value;

use super::super::panel::{Panel, Point, Scale, Shape, Side};
use super::super::read::spread;
use super::{Figure, Paper, Published, Source};

const DIFFERS: &str = "The programs are ours, written from the specifications of their suites. But \
                       blastn is NCBI's BLAST+, and fft3d uses FFTW. 2 CPUs, not 16.";

const FIGURE: Figure = Figure {
    name: "em-fig2",
    source: Source::Em,
    paper: Some(Paper {
        number: "Fig. 2",
        shows: "share of the time with i runnable threads, 8 threads",
    }),
    title: "Activity vectors",
    measurement: "profiles",
    shows: "The share of the time for which a program has 0, 1, 2 ... runnable threads. It runs \
            alone, with a thread for each CPU. Other programs can use the CPUs that it leaves \
            idle.",
    stated: "blackscholes, BLAST, FFTW3D and pathfinder have one runnable thread for more than 40 \
             % of the time; EP and particlefilter nearly always have all.",
    published: &[Published {
        panel: "time by runnable threads",
        series: "published, 1 runnable (at least)",
        points: &[("blackscholes", 40.0), ("blastn", 40.0), ("fft3d", 40.0), ("pathfinder", 40.0)],
    }],
    differs: DIFFERS,
    elsewhere: "The vector has an element for each number of runnable threads: three elements on 2 \
                CPUs. There, a program that always has a runnable thread leaves at most half of \
                the machine idle. With more CPUs, more can be shared.",
    view: profiles,
};

pub const FIGURES: &[Figure] = &[
    FIGURE,
    Figure {
        name: "em-fig3",
        paper: Some(Paper {
            number: "Fig. 3",
            shows: "speed-up of OpenMP programs, 1 to 16 threads",
        }),
        title: "Scaling",
        shows: "How much faster a program gets with more threads, up to one for each CPU, \
                natively.",
        stated: "",
        published: &[],
        view: scaling,
        ..FIGURE
    },
    Figure {
        name: "em-fig4",
        paper: Some(Paper {
            number: "Fig. 4",
            shows: "24 mixes of a non-malleable (N) and a malleable (M) program: speed of each, \
                    and system throughput (STP). Both are relative to stock: each program with \
                    half of the threads, pinned to half of the CPUs",
        }),
        title: "Pairs of programs, relative to fixed halves",
        measurement: "mixes",
        shows: "Speed of each program of a mix, and the mean of both (STP). 1 is the speed on a \
                fixed half of the CPUs (stock).",
        stated: "With the manager, STP gains 24.5 % on average and 43 % at most. M gains up to 83 \
                 % (mix M4). N mostly stays within 1.7 %, and loses 16.6 % at worst (FFTW3D with \
                 sradv2). With oversubscription, N loses 21 % in mix M19.",
        published: &[
            Published {
                panel: "system throughput",
                series: "published, manager",
                points: &[("geometric mean", 1.245)],
            },
            Published {
                panel: "the non-malleable program (N)",
                series: "published, manager",
                points: &[("fft3d + srad", 0.834)],
            },
            Published {
                panel: "the malleable program (M)",
                series: "published, manager",
                points: &[("pathfinder + ep", 1.83)],
            },
        ],
        differs: "The first eight of 24 mixes, on 2 CPUs. M's loops without a schedule clause \
                  adapt only through slots: their threads take turns \
                  (docs/design/malleable-openmp.md). freqmine replaces RNASeq.",
        elsewhere: "The scenarios are real, on the CPUs of this machine. With 2 CPUs, N has one \
                    thread, which always runs. So its half is never idle, and there is nothing to \
                    gain. `lissom bench mixes --mix paper` measures all 24 mixes on a larger \
                    machine.",
        view: relative,
        ..FIGURE
    },
    Figure {
        name: "em-fig5",
        paper: Some(Paper {
            number: "Fig. 5",
            shows: "mix M7 (FFTW3D with sradv2), with M capped at 16 to 11 threads",
        }),
        title: "A cap on the malleable program",
        measurement: "caps",
        shows: "Speed of both programs and their mean (STP), by the cap: the maximum number of \
                CPUs that the manager gives to M.",
        stated: "A lower cap spares N and costs STP.",
        published: &[],
        differs: "On 2 CPUs there are two caps, and N's one thread leaves M only one CPU anyway.",
        elsewhere: "Real. On 16 CPUs, `lissom bench mixes --mix fft3d+srad --scenario \
                    stock,manager --cap 16,15,14,13,12,11` measures the paper's caps.",
        view: caps,
        ..FIGURE
    },
];

pub const OWN: &[Figure] = &[Figure {
    name: "own-mixes",
    source: Source::Own,
    paper: None,
    title: "Pairs of programs, against each of them alone",
    measurement: "mixes",
    shows: "How many times as long each program of a pair takes as alone with all CPUs. STP is the \
            sum of both speeds relative to alone: 2 is as if each had the machine for itself.",
    stated: "",
    published: &[],
    differs: "",
    elsewhere: "As in em-fig4.",
    view: alone,
}];

fn list<'a>(report: &'a Value, field: &str) -> &'a [Value] {
    report[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().into()
}

fn profiles(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let programs = list(report, "profile");
    let names = programs.iter().map(|p| text(&p["program"])).collect();
    let mut panel =
        Panel::named("time by runnable threads", "program", "% of the time", names, false);
    for (i, program) in programs.iter().enumerate() {
        for (runnable, share) in list(program, "shares").iter().enumerate() {
            let share = share.as_f64().unwrap_or(0.0);
            panel.add(&format!("{runnable} runnable"), Point::one(i as f64, share * 100.0));
        }
    }
    Ok(vec![panel])
}

fn scaling(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let programs = list(report, "scaling");
    let longest =
        programs.iter().map(|p| list(p, "points")).max_by_key(|p| p.len()).unwrap_or_default();
    let names = longest.iter().map(|p| p["threads"].to_string()).collect();
    let mut panel = Panel::named("speed-up", "threads", "x the speed with 1 thread", names, false);
    panel.shape = Shape::Lines;
    for program in programs {
        for (i, point) in list(program, "points").iter().enumerate() {
            if let Some(speedup) = spread(&point["speedup"]) {
                panel.add(&text(&program["program"]), Point::new(i, speedup, Side::Exact));
            }
        }
    }
    Ok(vec![panel])
}

fn of_mixes(report: &Value, title: &str, y: &str, field: &str) -> Panel {
    let mixes = list(report, "mixes");
    let names = mixes
        .iter()
        .map(|m| format!("{} + {}", text(&m["rigid"]), text(&m["malleable"])))
        .collect();
    let mut panel = Panel::named(title, "pair", y, names, false);
    for (i, mix) in mixes.iter().enumerate() {
        for cell in list(mix, "cells") {
            if let Some(value) = spread(&cell["result"][field]) {
                panel.add(&text(&cell["scenario"]), Point::new(i, value, Side::Exact));
            }
        }
    }
    panel
}

fn alone(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panels = vec![
        of_mixes(report, "both programs together", "system throughput (STP)", "stp"),
        of_mixes(report, "the non-malleable program (N)", "x alone", "rigid_slowdown"),
        of_mixes(report, "the malleable program (M)", "x alone", "malleable_slowdown"),
    ];
    for panel in &mut panels {
        (panel.reference, panel.scale) = (Some(1.0), Scale::Log);
    }
    panels[0].scale = Scale::Linear;
    Ok(panels)
}

/// Title, unit and field of `Relative` in the benchmark's report.
const SPEEDS: [(&str, &str, &str); 3] = [
    ("system throughput", "STP, stock = 1", "stp"),
    ("the non-malleable program (N)", "speed, stock = 1", "rigid"),
    ("the malleable program (M)", "speed, stock = 1", "malleable"),
];
const STOCK: &str = "stock";

/// Fig. 4. Returns speeds relative to stock, and their means.
fn relative(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mixes = list(report, "mixes");
    let name = |m: &Value| format!("{} + {}", text(&m["rigid"]), text(&m["malleable"]));
    let names: Vec<String> = mixes.iter().map(name).chain(["geometric mean".into()]).collect();
    let panel = |(title, y, field): (&str, &str, &str)| {
        let mut panel = Panel::named(title, "mix", y, names.clone(), true);
        panel.scale = Scale::Linear;
        for (i, mix) in mixes.iter().enumerate() {
            for cell in list(mix, "cells").iter().filter(|c| c["scenario"] != STOCK) {
                if let Some(value) = spread(&cell["result"]["to_stock"][field]) {
                    panel.add(&text(&cell["scenario"]), Point::new(i, value, Side::Exact));
                }
            }
        }
        for summary in list(report, "summary") {
            let is_of_all = summary["idle_at_least"] == 0.0 && summary["scenario"] != STOCK;
            if let Some(mean) = summary["to_stock"][field].as_f64().filter(|_| is_of_all) {
                panel.add(&text(&summary["scenario"]), Point::one(mixes.len() as f64, mean));
            }
        }
        panel
    };
    Ok(SPEEDS.map(panel).into())
}

/// Fig. 5. Returns speeds of one mix, by the cap on the malleable program.
fn caps(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let cells = list(report, "mixes").first().map(|m| list(m, "cells")).unwrap_or_default();
    let capped: Vec<(String, &Value)> = cells
        .iter()
        .filter_map(|c| Some((c["scenario"].as_str()?.split("cap ").nth(1)?.to_string(), c)))
        .collect();
    let names = capped.iter().map(|(cap, _)| cap.clone()).collect();
    let mut panel =
        Panel::named("speed by the cap", "CPUs for M, at most", "speed, stock = 1", names, true);
    panel.scale = Scale::Linear;
    for (title, _, field) in SPEEDS {
        for (i, (_, cell)) in capped.iter().enumerate() {
            if let Some(value) = spread(&cell["result"]["to_stock"][field]) {
                panel.add(title, Point::new(i, value, Side::Exact));
            }
        }
    }
    Ok(vec![panel])
}
