//! Programs that share the CPUs, and the manager that divides these.

use serde_json::Value;

use super::super::panel::{Panel, Scale, Shape};
use super::super::read::{list, spread, text};
use super::View::Json;
use super::{Figure, Published};
use ui::number::Spread;

const DIFFERS: &str = "The programs are ours, written from the specifications of their suites. But \
                       blastn is NCBI's BLAST+, and fft3d uses FFTW. 2 CPUs, not 16.";

const FIGURE: Figure = Figure {
    measurement: "profiles",
    differs: DIFFERS,
    elsewhere: "The vector has an element for each number of runnable threads: three elements on 2 \
                CPUs. There, a program that always has a runnable thread leaves at most half of \
                the machine idle. With more CPUs, more can be shared.",
    ..Figure::EMPTY
};

pub const FIGURES: &[Figure] = &[
    Figure {
        name: "em-fig2",
        paper: "share of the time with i runnable threads, 8 threads",
        title: "Activity vectors",
        shows: "The share of the time for which a program has 0, 1, 2 ... runnable threads. It \
                runs alone, with a thread for each CPU. Other programs can use the CPUs that it \
                leaves idle.",
        stated: "blackscholes, BLAST, FFTW3D and pathfinder have one runnable thread for more than \
                 40 % of the time; EP and particlefilter nearly always have all.",
        published: &[Published {
            columns: &[("time by runnable threads", "published, 1 runnable (at least)")],
            rows: &[
                ("blackscholes", &[40.0]),
                ("blastn", &[40.0]),
                ("fft3d", &[40.0]),
                ("pathfinder", &[40.0]),
            ],
        }],
        view: Json(profiles),
        ..FIGURE
    },
    Figure {
        name: "em-fig3",
        paper: "speed-up of OpenMP programs, 1 to 16 threads",
        title: "Scaling",
        shows: "How much faster a program gets with more threads, up to one for each CPU, \
                natively.",
        view: Json(scaling),
        ..FIGURE
    },
    Figure {
        name: "em-fig4",
        paper: "24 mixes of a non-malleable (N) and a malleable (M) program: speed of each, and \
                system throughput (STP). Both are relative to stock: each program with half of the \
                threads, pinned to half of the CPUs",
        title: "Pairs of programs, relative to fixed halves",
        measurement: "mixes",
        shows: "Speed of each program of a mix, and the mean of both (STP). 1 is the speed on a \
                fixed half of the CPUs (stock).",
        stated: "With the manager, STP gains 24.5 % on average and 43 % at most. M gains up to 83 \
                 % (mix M4). N mostly stays within 1.7 %, and loses 16.6 % at worst (FFTW3D with \
                 sradv2). With oversubscription, N loses 21 % in mix M19.",
        published: &[
            Published {
                columns: &[("system throughput", "published, manager")],
                rows: &[("geometric mean", &[1.245])],
            },
            Published {
                columns: &[("the non-malleable program (N)", "published, manager")],
                rows: &[("fft3d + srad", &[0.834])],
            },
            Published {
                columns: &[("the malleable program (M)", "published, manager")],
                rows: &[("pathfinder + ep", &[1.83])],
            },
        ],
        differs: "The first eight of 24 mixes, on 2 CPUs. M's loops without a schedule clause \
                  adapt only through slots: their threads take turns \
                  (docs/design/malleable-openmp.md). freqmine replaces RNASeq.",
        elsewhere: "The scenarios are real, on the CPUs of this machine. With 2 CPUs, N has one \
                    thread, which always runs. So its half is never idle, and there is nothing to \
                    gain. `lissom bench mixes --mix paper` measures all 24 mixes on a larger \
                    machine.",
        view: Json(relative),
    },
    Figure {
        name: "em-fig5",
        paper: "mix M7 (FFTW3D with sradv2), with M capped at 16 to 11 threads",
        title: "A cap on the malleable program",
        measurement: "caps",
        shows: "Speed of both programs and their mean (STP), by the cap: the maximum number of \
                CPUs that the manager gives to M.",
        stated: "A lower cap spares N and costs STP.",
        differs: "On 2 CPUs there are two caps, and N's one thread leaves M only one CPU anyway.",
        elsewhere: "Real. On 16 CPUs, `lissom bench mixes --mix fft3d+srad --scenario \
                    stock,manager --cap 16,15,14,13,12,11` measures the paper's caps.",
        view: Json(caps),
        ..FIGURE
    },
];

pub const OWN: &[Figure] = &[Figure {
    name: "own-mixes",
    title: "Pairs of programs, against each of them alone",
    measurement: "mixes",
    shows: "How many times as long each program of a pair takes as alone with all CPUs. STP is the \
            sum of both speeds relative to alone: 2 is as if each had the machine for itself.",
    elsewhere: "As in em-fig4.",
    view: Json(alone),
    ..FIGURE
}];

fn profiles(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panel = Panel::new("time by runnable threads", "program", "% of the time", false);
    for program in list(report, "profile") {
        let share = |(i, share): (usize, &Value)| {
            (format!("{i} runnable"), share.as_f64().unwrap_or(0.0) * 100.0)
        };
        let shares = list(program, "shares").iter().enumerate().map(share);
        panel.row(text(&program["program"]), shares);
    }
    Ok(vec![panel])
}

fn scaling<'a>(report: &'a Value) -> anyhow::Result<Vec<Panel>> {
    let programs = list(report, "scaling");
    let mut panel = Panel::new("speed-up", "threads", "x the speed with 1 thread", false)
        .with(Shape::Lines, Scale::Linear);
    let longest = programs.iter().map(|p| list(p, "points")).max_by_key(|p| p.len());
    for (i, point) in longest.unwrap_or_default().iter().enumerate() {
        let speedup = |p: &'a Value| {
            Some((text(&p["program"]), spread(&list(p, "points").get(i)?["speedup"])?))
        };
        panel.row(&point["threads"].to_string(), programs.iter().filter_map(speedup));
    }
    Ok(vec![panel])
}

/// Return "N + M", the names of both programs.
fn name(mix: &Value) -> String {
    format!("{} + {}", text(&mix["rigid"]), text(&mix["malleable"]))
}

/// Return what `read` finds in the result of each cell, with the cell's scenario.
fn results<'a>(
    mix: &'a Value,
    read: impl Fn(&Value) -> Option<Spread>,
) -> impl Iterator<Item = (&'a str, Spread)> {
    let cell = move |c: &'a Value| Some((text(&c["scenario"]), read(&c["result"])?));
    list(mix, "cells").iter().filter_map(cell)
}

fn alone(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let panel = |title, y, field: &str, scale| {
        let mut panel = Panel::new(title, "pair", y, true).with(Shape::Bars, scale);
        for mix in list(report, "mixes") {
            panel.row(&name(mix), results(mix, |result| spread(&result[field])));
        }
        panel
    };
    Ok(vec![
        panel("both programs together", "system throughput (STP)", "stp", Scale::Linear),
        panel("the non-malleable program (N)", "x alone", "rigid_slowdown", Scale::Log),
        panel("the malleable program (M)", "x alone", "malleable_slowdown", Scale::Log),
    ])
}

/// Title, unit and field of `Relative` in the benchmark's report.
const SPEEDS: [(&str, &str, &str); 3] = [
    ("system throughput", "STP, stock = 1", "stp"),
    ("the non-malleable program (N)", "speed, stock = 1", "rigid"),
    ("the malleable program (M)", "speed, stock = 1", "malleable"),
];
const STOCK: &str = "stock";

/// Fig. 4. Returns speeds relative to stock, and their means.
fn relative<'a>(report: &'a Value) -> anyhow::Result<Vec<Panel>> {
    let panel = |(title, y, field): (&str, &str, &str)| {
        let mut panel = Panel::new(title, "mix", y, true).with(Shape::Bars, Scale::Linear);
        for mix in list(report, "mixes") {
            let speeds = results(mix, |result| spread(&result["to_stock"][field]));
            panel.row(&name(mix), speeds.filter(|(scenario, _)| *scenario != STOCK));
        }
        let of_all = |s: &&Value| s["idle_at_least"] == 0.0 && s["scenario"] != STOCK;
        let mean = |s: &'a Value| Some((text(&s["scenario"]), s["to_stock"][field].as_f64()?));
        let means = list(report, "summary").iter().filter(of_all).filter_map(mean);
        panel.row("geometric mean", means);
        panel
    };
    Ok(SPEEDS.map(panel).into())
}

/// Fig. 5. Returns speeds of one mix, by the cap on the malleable program.
fn caps(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panel = Panel::new("speed by the cap", "CPUs for M, at most", "speed, stock = 1", true)
        .with(Shape::Bars, Scale::Linear);
    let cells = list(report, "mixes").first().map(|m| list(m, "cells")).unwrap_or_default();
    for cell in cells {
        let Some((_, cap)) = text(&cell["scenario"]).split_once("cap ") else { continue };
        let speed = |(title, _, field)| Some((title, spread(&cell["result"]["to_stock"][field])?));
        panel.row(cap, SPEEDS.into_iter().filter_map(speed));
    }
    Ok(vec![panel])
}
