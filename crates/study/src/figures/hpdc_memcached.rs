//! Fig. 12: memcached with few and many workers.

use serde_json::Value;

use super::super::panel::{Panel, Places, Point, Scale, Shape, Side};
use super::super::read::{Cell, Group, Report};
use super::{Figure, Paper, Published, Source};
use ui::number::Spread;

use crate::format::NATIVE;

const FEW: u32 = 4;
const MANY: u32 = 16;
const RELATIVE: &str = "16 workers against 4 native ones";

pub const FIG_12: Figure = Figure {
    name: "hpdc-fig12",
    source: Source::Hpdc,
    paper: Some(Paper {
        number: "Fig. 12",
        shows: "memcached, 4 and 16 workers on 4, 8 and 16 cores: mean, 95th and 99th percentile, \
                throughput",
    }),
    title: "memcached",
    measurement: "server",
    shows: "Requests a second (more is better), and mean and percentiles of the time to the answer \
            (less is better). *max*: each of 64 connections sends its next request when it has its \
            answer. *load*: requests come at random moments, at 80 % of the rate that 4 workers \
            reach natively.",
    stated: "With 16 workers on vanilla, the mean rises by 6 %, throughput falls by 5.6 %, and p95 \
             and p99 are 8 times as long. Virtual blocking cuts p95 and p99 by 92 % and 60 %.",
    published: &[
        Published {
            panel: RELATIVE,
            series: "published, vanilla",
            points: &[("mean", 1.06), ("throughput", 0.944), ("p95", 8.0), ("p99", 8.0)],
        },
        Published {
            panel: RELATIVE,
            series: "published, virtual blocking",
            points: &[("p95", 0.64), ("p99", 3.2)],
        },
    ],
    differs: "A load generator of ours runs on the same machine. memcached has 1 and 2 CPUs, so 16 \
              workers are 16 and 8 a CPU. In the paper they are 1 to 4 a core.",
    elsewhere: "Real, on 1 and 2 CPUs. Throughput is lower than with a separate client machine.",
    view,
};

/// Name, field in the load generator's output, and unit.
type Number = (&'static str, &'static str, &'static str);
const NUMBERS: [Number; 4] = [
    ("mean", "mean_us", "us"),
    ("p95", "p95_us", "us"),
    ("p99", "p99_us", "us"),
    ("throughput", "throughput", "requests a second"),
];

fn number(cell: &Cell, field: &str) -> Option<Spread> {
    cell.over_samples(|s| s.output[field].as_f64())
}

fn view(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let report = Report::of(report)?;
    let workloads = || report.workloads().into_iter().filter(|w| w.starts_with("memcached"));
    let of = |workload: &str| -> Vec<&Group> {
        report.groups.iter().filter(|g| g.workload == workload).collect()
    };
    let most_cpus = workloads().rfind(|w| w.starts_with("memcached-max"));
    let mut panels: Vec<Panel> = most_cpus.map(|w| relative(&of(w))).into_iter().collect();
    for workload in workloads() {
        // For other loads, the load generator determines the throughput.
        let fields = if workload.starts_with("memcached-max") { 4 } else { 3 };
        panels.extend(NUMBERS[..fields].iter().map(|n| by_workers(workload, n, &of(workload))));
    }
    Ok(panels)
}

fn by_workers(workload: &str, (name, field, unit): &Number, groups: &[&Group]) -> Panel {
    let names = groups.iter().map(|g| g.threads.to_string()).collect();
    let mut panel = Panel::named(&format!("{workload}: {name}"), "workers", unit, names, false);
    panel.scale = Scale::Log;
    panel.shape = if groups.len() > 1 { Shape::Lines } else { Shape::Bars };
    for (i, group) in groups.iter().enumerate() {
        for cell in &group.cells {
            if let Some(value) = number(cell, field) {
                panel.add(&cell.scenario, Point::new(i, value, Side::Exact));
            }
        }
    }
    panel
}

fn relative(groups: &[&Group]) -> Panel {
    let mut panel = Panel::named(RELATIVE, "number", "x 4 workers natively", vec![], true);
    let with = |threads| groups.iter().find(|g| g.threads == threads);
    let (Some(few), Some(many)) = (with(FEW), with(MANY)) else { return panel };
    panel.places = Places::Names(NUMBERS.iter().map(|n| n.0.into()).collect());
    let Some(base) = few.cells.iter().find(|c| c.scenario == NATIVE) else { return panel };
    for (i, (_, field, _)) in NUMBERS.iter().enumerate() {
        for cell in many.cells.iter().filter(|c| c.scenario != "bound") {
            if let Some((value, base)) = number(cell, field).zip(number(base, field)) {
                panel.add(&cell.scenario, Point::one(i as f64, value.median / base.median));
            }
        }
    }
    panel
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn group(workload: &str, threads: u32, p95: [f64; 2]) -> Value {
        let sample = |v: f64| json!([{ "output": { "p95_us": v, "throughput": 1e6 / v } }]);
        let cell = |(scenario, v)| json!({ "scenario": scenario, "samples": sample(v) });
        let cells: Vec<Value> = ["native", "auto"].into_iter().zip(p95).map(cell).collect();
        json!({ "workload": workload, "threads": threads, "metric": { "unit": "us" },
                "cells": cells })
    }

    #[test]
    fn panels_of_both_patterns_and_one_that_compares() {
        let report = json!({ "groups": [
            group("memcached-max, 2 CPUs", 4, [100.0, 100.0]),
            group("memcached-max, 2 CPUs", 16, [800.0, 50.0]),
            group("memcached-load, 2 CPUs", 16, [9.0, 9.0]),
            group("postgres-max, 2 CPUs", 16, [9.0, 9.0]),
        ] });
        let panels = view(&report).expect("panels");
        let shown: Vec<&Panel> = panels.iter().filter(|p| !p.is_empty()).collect();
        let titles: Vec<&str> = shown.iter().map(|p| p.title.as_str()).collect();
        let expected = [
            RELATIVE,
            "memcached-max, 2 CPUs: p95",
            "memcached-max, 2 CPUs: throughput",
            "memcached-load, 2 CPUs: p95",
        ];
        assert_eq!(titles, expected);
        let values = |series: usize| -> Vec<f64> {
            shown[0].series[series].points.iter().map(|p| p.median).collect()
        };
        assert_eq!((values(0), values(1)), (vec![8.0, 0.125], vec![0.5, 2.0]));
    }
}
