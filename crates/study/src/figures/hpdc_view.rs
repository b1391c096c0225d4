//! Panels of the figures in hpdc.rs.

use serde_json::Value;

use super::super::panel::{Panel, Places, Point, Scale, Shape, Side};
use super::super::read::{Cell, Group, Of, Report};
use crate::format::BOUND;
use crate::format::KINDS;

/// Return a panel for each kind of program: time with more threads than CPUs, relative to the
/// bound.
fn by_kind(report: &Value, wanted: &[&str]) -> anyhow::Result<Vec<Panel>> {
    let kinds = &report["parameters"]["kinds"];
    let read = Report::of(report)?;
    let wanted = KINDS.iter().filter(|(name, _)| wanted.contains(name));
    let panel = |(name, title): &(&str, &str)| {
        read.by_workload(&format!("programs that {title}"), "program", Of::ToBound, |g| {
            kinds[&g.workload] == *name
        })
    };
    Ok(wanted.map(panel).collect())
}

pub fn oversubscribed(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panels = by_kind(report, &["none", "blocking", "mixed", "spinning"])?;
    for panel in &mut panels {
        panel.series.retain(|s| s.name == "native");
    }
    Ok(panels)
}

pub fn blocking(report: &Value) -> anyhow::Result<Vec<Panel>> {
    by_kind(report, &["none", "blocking", "mixed"])
}

pub fn spinning(report: &Value) -> anyhow::Result<Vec<Panel>> {
    Ok(vec![Report::of(report)?.by_workload("8 threads", "program", Of::ToBound, |_| true)])
}

pub fn spinlocks(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panel =
        Report::of(report)?.by_workload("a token among 8 threads", "lock", Of::ToBound, |_| true);
    if let Places::Names(names) = &mut panel.places {
        names.iter_mut().for_each(|n| *n = n.trim_start_matches("lock-pipeline-").into());
    }
    Ok(vec![panel])
}

pub fn by_threads(report: &Value) -> anyhow::Result<Vec<Panel>> {
    Ok(Report::of(report)?.by_threads(Of::Value, |_| true))
}

pub fn to_bound(report: &Value) -> anyhow::Result<Vec<Panel>> {
    Ok(Report::of(report)?.by_threads(Of::ToBound, |_| true))
}

/// Fig. 10. A group's workload is a primitive, followed by ", 1 CPU" or ", 2 CPUs".
pub fn gains(report: &Value) -> anyhow::Result<Vec<Panel>> {
    const THREADS: u32 = 32;
    let read = Report::of(report)?;
    let mut panels: Vec<Panel> = Vec::new();
    let named = |g: &Group| g.workload.split_once(", ").map_or(g.workload.clone(), |w| w.0.into());
    for (title, one) in [("one CPU", true), ("all CPUs", false)] {
        let title = format!("gain over native, {THREADS} threads, {title}");
        let mut panel = Panel::named(&title, "primitive", "x native's speed", vec![], true);
        let mut names: Vec<String> = Vec::new();
        let wanted = |g: &&Group| g.threads == THREADS && g.workload.ends_with(", 1 CPU") == one;
        for group in read.groups.iter().filter(wanted) {
            let median = |cell: &Cell| cell.value.map(|v| v.median);
            let of = |s: &str| group.cells.iter().find(|c| c.scenario == s).and_then(median);
            let Some(native) = of("native") else { continue };
            for cell in group.cells.iter().filter(|c| !["native", BOUND].contains(&&*c.scenario)) {
                if let Some(value) = median(cell) {
                    panel.add(&cell.scenario, Point::one(names.len() as f64, native / value));
                }
            }
            names.push(named(group));
        }
        panel.places = Places::Names(names);
        panels.push(panel);
    }
    panels.extend(read.by_threads(Of::ToBound, |_| true));
    Ok(panels)
}

/// Fig. 15. Returns panels of programs of suites, whose names contain a dash, and of patterns.
pub fn locks(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let read = Report::of(report)?;
    let is_program = |g: &Group| g.workload.contains('-');
    let mut panels = vec![read.by_workload("programs", "program", Of::ToBound, is_program)];
    panels.extend(read.by_threads(Of::ToBound, |w| !w.contains('-')));
    Ok(panels)
}

/// Return the CPU time between two waits, by the runtime's counters.
pub fn intervals(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let report = Report::of(report)?;
    let mut panel = Panel::named("CPU time for each wait", "program", "us", vec![], false);
    panel.scale = Scale::Log;
    let mut names = Vec::new();
    for group in &report.groups {
        let interval = |c: &Cell| Some((c.scenario.clone(), c.counted?.interval_us()?));
        let found: Vec<(String, f64)> = group.cells.iter().filter_map(interval).collect();
        if !found.is_empty() {
            for (scenario, interval) in found {
                panel.add(&scenario, Point::one(names.len() as f64, interval));
            }
            names.push(group.workload.clone());
        }
    }
    panel.places = Places::Names(names);
    Ok(vec![panel])
}

pub fn locality(report: &Value) -> anyhow::Result<Vec<Panel>> {
    parted(report, "array")
}

pub fn cores(report: &Value) -> anyhow::Result<Vec<Panel>> {
    parted(report, "CPUs")
}

/// Return a panel for each `what` of workloads called `what, where`, over the places.
fn parted(report: &Value, x: &str) -> anyhow::Result<Vec<Panel>> {
    let report = Report::of(report)?;
    let mut panels: Vec<Panel> = Vec::new();
    for group in &report.groups {
        let Some((what, place)) = group.workload.split_once(", ") else { continue };
        if panels.last().is_none_or(|p| p.title != what) {
            let mut panel = Panel::named(what, x, &group.metric.unit, vec![], false);
            (panel.shape, panel.scale) = (Shape::Lines, Scale::Log);
            panels.push(panel);
        }
        let Some(panel) = panels.last_mut() else { continue };
        let Places::Names(names) = &mut panel.places else { continue };
        let at = names.len();
        names.push(place.trim_end_matches(" CPUs").trim_end_matches(" CPU").into());
        group.add_to(panel, at, Of::Value);
    }
    Ok(panels)
}

fn process(cell: &Cell, field: &str, per_second: bool) -> Option<ui::number::Spread> {
    cell.over_samples(|s| {
        let value = s.process[field].as_f64()?;
        let seconds = if per_second { s.process["seconds"].as_f64()? } else { 1.0 };
        (seconds > 0.0).then(|| value / seconds)
    })
}

pub fn utilization(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let report = Report::of(report)?;
    let table = |title: &str, y: &str, field: &str, per_second: bool| {
        let names = report.groups.iter().map(|g| g.workload.clone()).collect();
        let mut panel = Panel::named(title, "program", y, names, false);
        panel.shape = Shape::Table;
        for (i, group) in report.groups.iter().enumerate() {
            for cell in &group.cells {
                if let Some(value) = process(cell, field, per_second) {
                    panel.add(&cell.scenario, Point::new(i, value, Side::Exact));
                }
            }
        }
        panel
    };
    let mut migrations = Panel::named("migrations", "program", "in a run", vec![], false);
    let mut names = Vec::new();
    migrations.shape = Shape::Table;
    for (i, group) in report.groups.iter().enumerate() {
        names.push(group.workload.clone());
        for cell in &group.cells {
            if let Some(count) = cell.counted.and_then(|c| c.migrations) {
                migrations.add(&cell.scenario, Point::one(i as f64, count as f64));
            }
        }
    }
    migrations.places = Places::Names(names);
    Ok(vec![
        table("CPU utilization", "CPUs used", "cpus_used", false),
        table("context switches", "a second", "context_switches", true),
        migrations,
    ])
}
