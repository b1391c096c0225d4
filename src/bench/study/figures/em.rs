//! Programs that share the CPUs, and the manager between them.

use serde_json::Value;

use super::super::panel::{Panel, Places, Point, Scale, Shape, Side};
use super::super::read::spread;
use super::{Figure, Paper, Published, Source};

const DIFFERS: &str = "Programs: ours, FFTW, BLAST+, LightGBM and scikit-learn. 2 CPUs, not 16.";

const FIGURE: Figure = Figure {
    name: "em-fig2",
    source: Source::Em,
    paper: Some(Paper {
        number: "Fig. 2",
        shows: "share of the time with i runnable threads, 8 threads",
    }),
    title: "Activity vectors",
    measurement: "profiles",
    shows: "For which share of the time a program has how many runnable threads, alone and with a \
            thread for each CPU: other programs may have what it leaves.",
    stated: "blackscholes, BLAST, FFTW3D and pathfinder have one runnable thread for more than 40 \
             % of the time; EP and particlefilter nearly always have all.",
    published: &[Published {
        panel: "time by runnable threads",
        series: "published, 1 runnable (at least)",
        points: &[("blackscholes", 40.0), ("blastn", 40.0), ("fft3d", 40.0), ("pathfinder", 40.0)],
    }],
    differs: DIFFERS,
    elsewhere: "The vector is as long as there are CPUs: on 2 there are three places, and a \
                program that always has one thread to run leaves half of the machine at most. More \
                CPUs mean more to be given away.",
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
                    and system throughput (STP), relative to stock: each with half of the threads, \
                    pinned to half of the CPUs",
        }),
        title: "Pairs of programs, relative to fixed halves",
        measurement: "mixes",
        shows: "Speed of each program of a pair, and their mean (STP): 1 is what each does on its \
                half of the CPUs.",
        stated: "Manager: STP +24.5 % on average, +43 % at most; M up to +83 %, N within 1.7 % \
                 mostly, at worst -16.6 % (FFTW3D with sradv2). Oversubscription: N -21 % in one \
                 mix.",
        published: &[Published {
            panel: "system throughput",
            series: "published, manager",
            points: &[("geometric mean", 1.245)],
        }],
        differs: "Four pairs, not 24. M has four threads a CPU under lissom. Ours shows the \
                  manager where its programs run under lissom.",
        elsewhere: "Real: the scenarios, on the CPUs there are. On 2 CPUs fixed halves are hard to \
                    beat, because a program that is given one of them has all that it can use in \
                    its sequential phases (docs/results-mixes.md); with 8 and more, idle CPUs can \
                    be given away one by one.",
        view: relative,
        ..FIGURE
    },
];

pub const OWN: &[Figure] = &[Figure {
    name: "own-mixes",
    source: Source::Own,
    paper: None,
    title: "Pairs of programs, against each of them alone",
    measurement: "mixes",
    shows: "How many times as long each of a pair takes as alone with all CPUs, and both together \
            (STP): 2 is as if each had the machine for itself.",
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
        of_mixes(report, "the rigid program", "x alone", "rigid_slowdown"),
        of_mixes(report, "the malleable program", "x alone", "malleable_slowdown"),
    ];
    for panel in &mut panels {
        (panel.reference, panel.scale) = (Some(1.0), Scale::Log);
    }
    panels[0].scale = Scale::Linear;
    Ok(panels)
}

/// The way that the paper calls stock.
const STOCK: &str = "halves";

/// Fig. 4: speeds relative to stock, and their mean.
fn relative(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let fields = ["rigid_slowdown", "malleable_slowdown"];
    let [rigid, malleable] = fields.map(|field| of_mixes(report, "", "", field));
    let slowdown = |panel: &Panel, scenario: &str, place: usize| {
        let series = panel.series.iter().find(|s| s.name == scenario)?;
        panel.at(series, place).map(|p| p.median)
    };
    let Places::Names(names) = &rigid.places else { return Ok(vec![]) };
    let names: Vec<String> = names.iter().cloned().chain(["geometric mean".to_string()]).collect();
    let panel = |title: &str, y: &str| {
        let mut panel = Panel::named(title, "pair", y, names.clone(), true);
        panel.scale = Scale::Linear;
        panel
    };
    let mut panels = [
        panel("system throughput", "STP, halves = 1"),
        panel("the rigid program (N)", "speed, halves = 1"),
        panel("the malleable program (M)", "speed, halves = 1"),
    ];
    for series in rigid.series.iter().filter(|s| s.name != STOCK) {
        let mut logarithms = [0.0; 3];
        let mut mixes = 0.0;
        for place in 0..names.len() - 1 {
            let speed = |panel: &Panel| {
                Some(slowdown(panel, STOCK, place)? / slowdown(panel, &series.name, place)?)
            };
            let (Some(n), Some(m)) = (speed(&rigid), speed(&malleable)) else { continue };
            for (i, value) in [(n + m) / 2.0, n, m].into_iter().enumerate() {
                panels[i].add(&series.name, Point::one(place as f64, value));
                logarithms[i] += value.ln();
            }
            mixes += 1.0;
        }
        if mixes > 0.0 {
            for (panel, sum) in panels.iter_mut().zip(logarithms) {
                let at = (names.len() - 1) as f64;
                panel.add(&series.name, Point::one(at, (sum / mixes).exp()));
            }
        }
    }
    Ok(panels.into())
}
