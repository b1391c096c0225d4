//! Panels of the figures in hpdc.rs.

use super::super::panel::{Panel, Places, Point, Scale, Shape};
use super::super::read::{Cell, Group, Of, Report};
use crate::format::{BOUND, KINDS, NATIVE};

/// Return a panel for each kind of program: time with more threads than CPUs, relative to the
/// bound.
fn by_kind(report: &Report, wanted: &[&str]) -> Vec<Panel> {
    let kinds = &report.parameters["kinds"];
    let wanted = KINDS.iter().filter(|(name, _)| wanted.contains(name));
    let panel = |(name, title): &(&str, &str)| {
        report.by_workload(&format!("programs that {title}"), "program", Of::ToBound, |g| {
            kinds[&g.workload] == *name
        })
    };
    wanted.map(panel).collect()
}

pub fn oversubscribed(report: &Report) -> Vec<Panel> {
    let mut panels = by_kind(report, &["none", "blocking", "mixed", "spinning"]);
    for panel in &mut panels {
        panel.series.retain(|s| s.name == NATIVE);
    }
    panels
}

pub fn blocking(report: &Report) -> Vec<Panel> {
    by_kind(report, &["none", "blocking", "mixed"])
}

pub fn spinning(report: &Report) -> Vec<Panel> {
    vec![report.by_workload("8 threads", "program", Of::ToBound, |_| true)]
}

pub fn spinlocks(report: &Report) -> Vec<Panel> {
    let mut panel = report.by_workload("a token among 8 threads", "lock", Of::ToBound, |_| true);
    if let Places::Names(names) = &mut panel.places {
        names.iter_mut().for_each(|n| *n = n.trim_start_matches("lock-pipeline-").into());
    }
    vec![panel]
}

pub fn by_threads(report: &Report) -> Vec<Panel> {
    report.by_threads(Of::Value, |_| true)
}

/// Fig. 10. A group's workload is a primitive, followed by ", 1 CPU" or ", 2 CPUs".
pub fn gains(report: &Report) -> Vec<Panel> {
    const THREADS: u32 = 32;
    let gain = |title: &str, is_one: bool| {
        let title = format!("gain over native, {THREADS} threads, {title}");
        let mut panel = Panel::new(&title, "primitive", "x native's speed", true);
        let wanted = |g: &&Group| g.threads == THREADS && g.workload.ends_with(", 1 CPU") == is_one;
        let median = |c: &Cell| c.value.map(|v| v.median);
        for group in report.groups.iter().filter(wanted) {
            let Some(native) = group.cell(NATIVE).and_then(median) else { continue };
            let name = group.workload.split(", ").next().unwrap_or_default();
            let gains = group.each(|c| Some(native / median(c)?));
            panel.row(name, gains.filter(|(scenario, _)| ![NATIVE, BOUND].contains(scenario)));
        }
        panel
    };
    let mut panels = vec![gain("one CPU", true), gain("all CPUs", false)];
    panels.extend(report.by_threads(Of::ToBound, |_| true));
    panels
}

/// Fig. 15. Returns panels of programs of suites, whose names contain a dash, and of patterns.
pub fn locks(report: &Report) -> Vec<Panel> {
    let is_program = |g: &Group| g.workload.contains('-');
    let mut panels = vec![report.by_workload("programs", "program", Of::ToBound, is_program)];
    panels.extend(report.by_threads(Of::ToBound, |w| !w.contains('-')));
    panels
}

/// Return the CPU time between two waits, by the runtime's counters.
pub fn intervals(report: &Report) -> Vec<Panel> {
    let mut panel =
        Panel::new("CPU time for each wait", "program", "us", false).with(Shape::Bars, Scale::Log);
    for group in &report.groups {
        let mut intervals = group.each(|c| c.counted?.interval_us()).peekable();
        if intervals.peek().is_some() {
            panel.row(&group.workload, intervals);
        }
    }
    vec![panel]
}

pub fn locality(report: &Report) -> Vec<Panel> {
    by_places(report, "array")
}

pub fn cores(report: &Report) -> Vec<Panel> {
    by_places(report, "CPUs")
}

/// Return a panel for each `what` of workloads called `what, where`, over the places.
fn by_places(report: &Report, x: &str) -> Vec<Panel> {
    report.by_parts(x, |group| {
        let (what, place) = group.workload.split_once(", ")?;
        let place = place.trim_end_matches(" CPUs").trim_end_matches(" CPU");
        Some((what.into(), place.into()))
    })
}

pub fn utilization(report: &Report) -> Vec<Panel> {
    fn table<P: Into<Point>>(
        report: &Report,
        title: &str,
        y: &str,
        read: impl Fn(&Cell) -> Option<P>,
    ) -> Panel {
        let mut panel = Panel::new(title, "program", y, false).with(Shape::Table, Scale::Linear);
        for group in &report.groups {
            panel.row(&group.workload, group.each(&read));
        }
        panel
    }
    let used = |c: &Cell| c.over_samples(|s| s.process["cpus_used"].as_f64());
    let switches = |c: &Cell| {
        c.over_samples(|s| {
            let seconds = s.process["seconds"].as_f64().filter(|s| *s > 0.0)?;
            Some(s.process["context_switches"].as_f64()? / seconds)
        })
    };
    let migrations = |c: &Cell| Some(c.counted?.migrations? as f64);
    vec![
        table(report, "CPU utilization", "CPUs used", used),
        table(report, "context switches", "a second", switches),
        table(report, "migrations", "in a run", migrations),
    ]
}
