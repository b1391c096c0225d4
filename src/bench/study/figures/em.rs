//! Programs that share the CPUs, and the manager between them.

use serde_json::Value;

use super::super::panel::{Panel, Point, Scale, Shape, Side};
use super::super::read::spread;
use super::{Figure, Source};

const FIGURE: Figure = Figure {
    name: "em-fig2",
    source: Source::Em,
    number: "Fig. 2",
    title: "Activity vectors",
    measurement: "profiles",
    shows: "For which part of the time a program has how many runnable threads, alone and with a thread for each CPU: \
            what it leaves is what another one may have.",
    published: "Programs cannot always use all cores: limited parallelism, imbalance, other bottlenecks.",
    elsewhere: "The vector is as long as there are CPUs: on 2 there are three places, and a program that always has one \
                thread to run leaves half of the machine at most. More CPUs mean more to be given away.",
    view: profiles,
};

pub const FIGURES: &[Figure] = &[
    FIGURE,
    Figure {
        name: "em-fig3",
        number: "Fig. 3",
        title: "Scaling",
        shows: "How much faster a program gets with more threads, up to one for each CPU, natively.",
        published: "",
        view: scaling,
        ..FIGURE
    },
    Figure {
        name: "em-fig4",
        number: "Fig. 4",
        title: "System throughput of pairs",
        measurement: "mixes",
        shows: "Two programs together: 2 is as if each had the machine for itself. The manager should be above both \
                fixed halves and plain oversubscription.",
        published: "Idle CPU periods of unmodified programs are used by others, which raises utilization.",
        elsewhere: "Real: the scenarios, on the CPUs there are. On 2 CPUs fixed halves are hard to beat, because a \
                    program that is given one of them has all that it can use in its sequential phases \
                    (docs/results-mixes.md); with 8 and more, idle CPUs can be given away one by one.",
        view: throughput,
        ..FIGURE
    },
    Figure {
        name: "em-fig5",
        number: "Fig. 5",
        title: "What the rigid program of a pair pays",
        measurement: "mixes",
        shows: "How many times as long the one that is not malleable takes as alone: 1 is the aim.",
        published: "",
        elsewhere: "As in Fig. 4.",
        view: slowdown,
        ..FIGURE
    },
];

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

fn throughput(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panel = of_mixes(report, "both programs together", "system throughput (STP)", "stp");
    // Compared with one program at a time.
    (panel.reference, panel.scale) = (Some(1.0), Scale::Linear);
    Ok(vec![panel])
}

fn slowdown(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panels = vec![
        of_mixes(report, "the rigid program", "x alone", "rigid_slowdown"),
        of_mixes(report, "the malleable program", "x alone", "malleable_slowdown"),
    ];
    for panel in &mut panels {
        (panel.reference, panel.scale) = (Some(1.0), Scale::Log);
    }
    Ok(panels)
}
