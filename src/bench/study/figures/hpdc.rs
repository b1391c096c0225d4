//! Virtual blocking and busy-waiting detection: the figures and tables of the paper.

use serde_json::Value;

use super::super::panel::{Panel, Places, Point, Scale, Shape, Side};
use super::super::read::{Cell, Of, Report};
use super::{Figure, Source};
use crate::bench::programs::KINDS;

const SWITCHES: &str = "One CPU only is used: as real here as anywhere. A virtual machine and mitigations make a switch \
                        dearer than on bare metal.";
const PROGRAMS: &str = "Real: the programs, their threads and their CPUs. With more CPUs each wake-up may go further \
                        (another cache, another NUMA node), so natively more threads cost more there than here.";

const FIGURE: Figure = Figure {
    name: "hpdc-fig1",
    source: Source::Hpdc,
    number: "Fig. 1",
    title: "Programs with four times as many threads as CPUs",
    measurement: "programs",
    shows: "Natively, against the same program with as many threads as CPUs: those that hardly synchronize do not mind, \
            those that block or spin get slower.",
    published: "Three groups: not affected, faster, and slower, by up to 25 times (32 threads on 8 cores).",
    elsewhere: PROGRAMS,
    view: oversubscribed,
};

pub const FIGURES: &[Figure] = &[
    FIGURE,
    Figure {
        name: "hpdc-fig2",
        number: "Fig. 2",
        title: "What a context switch costs by itself",
        measurement: "switch",
        shows: "A fixed amount of work by more and more threads on one CPU, and the time of a hand-over: switching as \
                such is not what makes programs slow.",
        published: "1-2 us a switch, and no noticeable slowdown from time slices, with or without a shared atomic.",
        elsewhere: SWITCHES,
        view: by_threads,
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig3",
        number: "Fig. 3",
        title: "Time between two synchronizations",
        shows: "CPU time for each wait, with four times as many threads as CPUs, by our own counters of futexes and \
                spins: the shorter, the more a program suffers from a dear wait.",
        published: "",
        view: intervals,
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig4",
        number: "Fig. 4",
        title: "What a switch costs by the caches that others have used",
        measurement: "locality",
        shows: "Beyond the switch itself, by the size of what is walked over: below zero where half of the array fits \
                into a cache or a TLB that all of it does not fit into.",
        published: "Both signs: constructive where the working set of a thread fits, destructive above.",
        elsewhere: "Real here: sizes at which the sign changes are those of this CPU's caches and TLBs. Other CPUs move \
                    the points, not the shape.",
        view: locality,
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig9",
        number: "Fig. 9",
        title: "Programs that block",
        shows: "With four times as many threads as CPUs, against as many as CPUs: lissom's bar should reach 1.",
        published: "An efficiency close to that with as many threads as cores.",
        view: blocking,
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig10",
        number: "Fig. 10",
        title: "As CPUs become more",
        measurement: "cores",
        shows: "Time with 8 threads, natively and under lissom, against a program started with as many threads as CPUs.",
        published: "More threads than cores keep the ability to expand to many more CPUs.",
        elsewhere: "The axis of CPUs ends where this machine ends: on 2, the gain of more threads than CPUs once more CPUs \
                    come is shown from 1 to 2 only.",
        view: cores,
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig11",
        number: "Fig. 11",
        title: "Barrier, condition variable, mutex by themselves",
        measurement: "primitives",
        shows: "The same work by more threads: the bound is as many as CPUs.",
        published: "The sleep and wake-up of threads in the kernel is inefficient with more threads than cores.",
        elsewhere: "Real. On more CPUs, a mutex's cache line travels further, and wake-ups natively are dearer.",
        view: to_bound,
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig12",
        number: "Fig. 12",
        title: "memcached",
        measurement: "server",
        shows: "Requests a second (more is better), and the time until 99 % are answered at a fixed load (less is better).",
        published: "",
        elsewhere: "The load comes from the same machine: throughput is lower than with a client of its own. More CPUs for \
                    the server are not shown.",
        view: memcached,
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig13",
        number: "Fig. 13",
        title: "Spin locks",
        measurement: "spinlocks",
        shows: "A token passed on among 8 threads by each kind of lock. Natively, a queue of spinners may wait a time slice \
                for each hand-over; what took too long says at least how much.",
        published: "Busy-waiting starves threads that others wait for, in locks of many kinds.",
        elsewhere: "Real. More CPUs keep more of the waiters running, so natively the collapse is less deep there.",
        view: spinlocks,
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig14",
        number: "Fig. 14",
        title: "Programs with spin loops of their own",
        measurement: "spinning",
        shows: "Flags, barriers and OpenMP's own waiting, 8 threads.",
        published: "",
        elsewhere: "As in Fig. 13.",
        view: spinning,
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig15",
        number: "Fig. 15",
        title: "Against locks of the literature",
        measurement: "locks",
        shows: "The same unmodified program with glibc's mutex replaced by Mutexee, MCS-TP and SHFLLOCK (written from \
                their papers, workloads/locks), and under lissom with glibc's.",
        published: "",
        elsewhere: "SHFLLOCK's shuffling by NUMA node shows on machines with several nodes only.",
        view: to_bound,
        ..FIGURE
    },
    Figure {
        name: "hpdc-table1",
        number: "Table 1",
        title: "CPU utilization, context switches and migrations",
        shows: "By the kernel's own counters, per second of the program's run. Migrations are those between CPUs.",
        published: "",
        elsewhere: "Migrations across NUMA nodes need a machine with several nodes: with one, all are within it.",
        view: utilization,
        ..FIGURE
    },
    Figure {
        name: "hpdc-table2",
        number: "Table 2",
        title: "Sensitivity of busy-waiting detection",
        measurement: "sensitivity",
        shows: "Of looks at threads that wait in a loop, and of waits of 10 ms, how many are recognised.",
        published: "",
        elsewhere: "Real; the detection interprets code and needs no hardware support.",
        view: sensitivity,
        ..FIGURE
    },
    Figure {
        name: "hpdc-table3",
        number: "Table 3",
        title: "Specificity of busy-waiting detection",
        measurement: "specificity",
        shows: "Of looks at threads that work, how many are taken for waiting ones: none is the aim.",
        published: "",
        elsewhere: "Real.",
        view: specificity,
        ..FIGURE
    },
];

/// A panel for each kind of programs: those with more threads than CPUs, against the bound.
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

fn oversubscribed(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panels = by_kind(report, &["none", "blocking", "mixed", "spinning"])?;
    for panel in &mut panels {
        panel.series.retain(|s| s.name == "native");
    }
    Ok(panels)
}

fn blocking(report: &Value) -> anyhow::Result<Vec<Panel>> {
    by_kind(report, &["none", "blocking", "mixed"])
}

fn spinning(report: &Value) -> anyhow::Result<Vec<Panel>> {
    Ok(vec![Report::of(report)?.by_workload("8 threads", "program", Of::ToBound, |_| true)])
}

fn spinlocks(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mut panel =
        Report::of(report)?.by_workload("a token among 8 threads", "lock", Of::ToBound, |_| true);
    if let Places::Names(names) = &mut panel.places {
        names.iter_mut().for_each(|n| *n = n.trim_start_matches("lock-pipeline-").into());
    }
    Ok(vec![panel])
}

fn by_threads(report: &Value) -> anyhow::Result<Vec<Panel>> {
    Ok(Report::of(report)?.by_threads(Of::Value, |_| true))
}

fn to_bound(report: &Value) -> anyhow::Result<Vec<Panel>> {
    Ok(Report::of(report)?.by_threads(Of::ToBound, |_| true))
}

fn memcached(report: &Value) -> anyhow::Result<Vec<Panel>> {
    Ok(Report::of(report)?.by_threads(Of::Value, |w| w.starts_with("memcached")))
}

/// CPU time between two waits, as the runtime has counted.
fn intervals(report: &Value) -> anyhow::Result<Vec<Panel>> {
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

fn locality(report: &Value) -> anyhow::Result<Vec<Panel>> {
    parted(report, "array")
}

fn cores(report: &Value) -> anyhow::Result<Vec<Panel>> {
    parted(report, "CPUs")
}

/// Workloads are called `what, where`: a panel for each, over the places.
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

fn process(cell: &Cell, field: &str, per_second: bool) -> Option<crate::bench::harness::Spread> {
    cell.over_samples(|s| {
        let value = s.process[field].as_f64()?;
        let seconds = if per_second { s.process["seconds"].as_f64()? } else { 1.0 };
        (seconds > 0.0).then(|| value / seconds)
    })
}

fn utilization(report: &Value) -> anyhow::Result<Vec<Panel>> {
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
    let mut migrations = Panel::named("migrations", "program", "a second", vec![], false);
    let mut names = Vec::new();
    migrations.shape = Shape::Table;
    for (i, group) in report.groups.iter().enumerate() {
        names.push(group.workload.clone());
        for cell in &group.cells {
            if let Some((counted, count)) = cell.counted.and_then(|c| Some((c, c.migrations?))) {
                migrations.add(
                    &cell.scenario,
                    Point::one(i as f64, count as f64 / counted.seconds.max(1e-9)),
                );
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

fn watched(
    report: &Value,
    what: &str,
    title: &str,
    y: &str,
    percent: impl Fn(u64, u64) -> f64,
) -> anyhow::Result<Panel> {
    let report = Report::of(report)?;
    let all: Vec<_> = report.watched.iter().filter(|w| w.what == what && w.state == "ok").collect();
    let mut names: Vec<String> = Vec::new();
    for one in &all {
        if !names.contains(&one.name) {
            names.push(one.name.clone());
        }
    }
    let mut panel = Panel::named(
        title,
        if what == "specificity" { "program" } else { "lock" },
        y,
        vec![],
        false,
    );
    panel.shape = Shape::Table;
    for one in all {
        let place = names.iter().position(|n| *n == one.name).unwrap_or(0);
        let value = Point::one(place as f64, percent(one.waits, one.samples));
        panel.add(&one.switch, value);
        panel.add("looks", Point::one(place as f64, one.samples as f64));
    }
    panel.places = Places::Names(names);
    Ok(panel)
}

fn share(found: u64, looks: u64) -> f64 {
    found as f64 * 100.0 / looks.max(1) as f64
}

fn sensitivity(report: &Value) -> anyhow::Result<Vec<Panel>> {
    Ok(vec![
        watched(report, "sensitivity", "looks at waiting threads", "% recognised", share)?,
        watched(report, "waits", "waits of 10 ms", "% recognised", share)?,
    ])
}

fn specificity(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let mistaken = |found, _| found as f64;
    Ok(vec![watched(
        report,
        "specificity",
        "looks at working threads",
        "taken for waiting ones",
        mistaken,
    )?])
}
