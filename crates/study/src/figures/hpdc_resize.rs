//! Fig. 11: programs whose number of CPUs changes while they run.

use super::super::panel::Panel;
use super::super::read::{Cell, Group, Report};
use super::View::Groups;
use super::{Figure, Published};

const GROWN: &str = "speed against few threads, more CPUs";
const SHRUNK: &str = "speed against few threads, fewer CPUs";

pub const FIG_11: Figure = Figure {
    name: "hpdc-fig11",
    paper: "ep, streamcluster, ocean, cg and facesim, started on 8 cores and continued on 2 to 32: \
            8 threads, 32 threads, 32 pinned threads, 32 with virtual blocking",
    title: "CPUs that change while a program runs",
    measurement: "adapt-cpus",
    shows: "Seconds from start to end, by the number of CPUs after the change. *fewer* has a \
            thread for each CPU of the start, natively. The others have 4 times as many threads: \
            *native*; *pinned* (natively, each thread bound to a CPU of the start); *auto* (under \
            lissom).",
    stated: "With 32 threads, ep gains 51 % and facesim 34 % on 32 cores. Pinning is always worse \
             than virtual blocking, and pinned programs crash when cores are removed.",
    published: &[Published {
        columns: &[(GROWN, "published, virtual blocking")],
        rows: &[("npb-ep", &[1.51]), ("facesim", &[1.34])],
    }],
    differs: "The programs are ours, written from the specifications, without facesim. The number \
              of CPUs doubles or halves once, a quarter of a second after the start, by affinity \
              masks. A pinned thread whose CPU is removed moves to a remaining CPU, as Linux moves \
              it when a cpuset shrinks. It does not crash. As root, `lissom bench elastic --by \
              cpuset,quota` changes a container's limits instead.",
    elsewhere: "Real, from 1 to 2 CPUs and back. On a machine with more than 8 CPUs, programs \
                start on 8 and have 32 threads, as in the paper.",
    view: Groups(view),
};

/// Parse a group's workload: "npb-ep, 1 to 2 CPUs", or "npb-ep by quota, 1 to 2 CPUs". Returns the
/// program and both numbers.
fn change(group: &Group) -> Option<(&str, u32, u32)> {
    let (program, change) = group.workload.split_once(", ")?;
    let (from, to) = change.split_once(" to ")?;
    Some((program, from.parse().ok()?, to.split(' ').next()?.parse().ok()?))
}

fn view(report: &Report) -> Vec<Panel> {
    let mut panels = vec![
        speeds(report, GROWN, |from, to| (to > from).then(|| f64::from(to) / f64::from(from))),
        speeds(report, SHRUNK, |from, to| (to < from).then(|| f64::from(from) / f64::from(to))),
    ];
    panels.extend(report.by_parts("CPUs", |group| {
        let (program, from, to) = change(group)?;
        let several = if from == 1 { "CPU" } else { "CPUs" };
        Some((format!("{program}, from {from} {several}"), to.to_string()))
    }));
    panels
}

/// Return speeds relative to a thread for each CPU of the start, of the groups whose number of CPUs
/// changes most. `by` returns the factor of a change, or None if it goes in the other direction.
fn speeds(report: &Report, title: &str, by: impl Fn(u32, u32) -> Option<f64>) -> Panel {
    let size = |g: &Group| change(g).and_then(|(_, from, to)| by(from, to));
    let most = report.groups.iter().filter_map(size).fold(0.0, f64::max);
    let mut panel = Panel::new(title, "program", "x the speed of fewer", true);
    for group in report.groups.iter().filter(|g| size(g) == Some(most)) {
        let few = group.cell("fewer").and_then(Cell::exact);
        let (Some((program, ..)), Some(few)) = (change(group), few) else { continue };
        let speeds = group.each(|c| Some(few / c.exact()?));
        panel.row(program, speeds.filter(|(scenario, _)| *scenario != "fewer"));
    }
    panel
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn group(workload: &str, seconds: [f64; 3]) -> Value {
        let spread = |m: f64| json!({ "median": m, "least": m, "most": m });
        let cell = |(scenario, m): (&str, f64)| json!({ "scenario": scenario, "value": spread(m) });
        let cells: Vec<Value> =
            ["fewer", "pinned", "auto"].into_iter().zip(seconds).map(cell).collect();
        json!({ "workload": workload, "threads": 4, "metric": { "unit": "s" }, "cells": cells })
    }

    #[test]
    fn a_panel_for_each_start_and_one_for_each_direction() {
        let report = json!({ "groups": [
            group("npb-ep, 1 to 1 CPU", [4.0, 4.0, 4.0]),
            group("npb-ep, 1 to 2 CPUs", [4.0, 4.0, 2.5]),
            group("npb-ep, 2 to 1 CPU", [4.0, 8.0, 4.0]),
            group("npb-ep, 2 to 2 CPUs", [2.0, 2.0, 2.0]),
        ] });
        let panels = view(&Report::of(&report).expect("a report"));
        let titles: Vec<&str> = panels.iter().map(|p| p.title.as_str()).collect();
        assert_eq!(titles, [GROWN, SHRUNK, "npb-ep, from 1 CPU", "npb-ep, from 2 CPUs"]);
        let medians = |p: usize, s: usize| -> Vec<f64> {
            panels[p].series[s].points.iter().map(|p| p.median).collect()
        };
        assert_eq!((medians(0, 0), medians(0, 1)), (vec![1.0], vec![1.6]));
        assert_eq!(medians(1, 0), [0.5]);
        assert_eq!(medians(2, 2), [4.0, 2.5]);
        assert_eq!(panels[3].names(), ["1", "2"]);
    }
}
