//! Fig. 12: memcached with few and many workers.

use super::super::panel::Panel;
use super::super::read::{Cell, Group, Report, over_threads};
use super::View::Groups;
use super::{Figure, Published};
use crate::format::{BOUND, NATIVE};
use ui::number::Spread;

const FEW: u32 = 4;
const MANY: u32 = 16;
const RELATIVE: &str = "16 workers against 4 native ones";

pub const FIG_12: Figure = Figure {
    name: "hpdc-fig12",
    paper: "memcached, 4 and 16 workers on 4, 8 and 16 cores: mean, 95th and 99th percentile, \
            throughput",
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
            columns: &[(RELATIVE, "published, vanilla")],
            rows: &[("mean", &[1.06]), ("throughput", &[0.944]), ("p95", &[8.0]), ("p99", &[8.0])],
        },
        Published {
            columns: &[(RELATIVE, "published, virtual blocking")],
            rows: &[("p95", &[0.64]), ("p99", &[3.2])],
        },
    ],
    differs: "A load generator of ours runs on the same machine. memcached has 1 and 2 CPUs, so 16 \
              workers are 16 and 8 a CPU. In the paper they are 1 to 4 a core.",
    elsewhere: "Real, on 1 and 2 CPUs. Throughput is lower than with a separate client machine.",
    view: Groups(view),
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

fn view<'a>(report: &'a Report) -> Vec<Panel> {
    let workloads = || report.workloads().into_iter().filter(|w| w.starts_with("memcached"));
    let of = |workload: &str| -> Vec<&Group> {
        report.groups.iter().filter(|g| g.workload == workload).collect()
    };
    let most_cpus = workloads().rfind(|w| w.starts_with("memcached-max"));
    let mut panels: Vec<Panel> = most_cpus.map(|w| relative(&of(w))).into_iter().collect();
    for workload in workloads() {
        // For other loads, the load generator determines the throughput.
        let fields = if workload.starts_with("memcached-max") { 4 } else { 3 };
        panels.extend(NUMBERS[..fields].iter().map(|(name, field, unit)| {
            let title = format!("{workload}: {name}");
            let points = |g: &'a Group| g.each(|c| number(c, field));
            over_threads(&title, "workers", unit, false, &of(workload), points)
        }));
    }
    panels
}

fn relative(groups: &[&Group]) -> Panel {
    let mut panel = Panel::new(RELATIVE, "number", "x 4 workers natively", true);
    let with = |threads| groups.iter().find(|g| g.threads == threads);
    let (Some(few), Some(many)) = (with(FEW), with(MANY)) else { return panel };
    let Some(base) = few.cell(NATIVE) else { return panel };
    for (name, field, _) in NUMBERS {
        let ratios = many.each(|c| Some(number(c, field)?.median / number(base, field)?.median));
        panel.row(name, ratios.filter(|(scenario, _)| *scenario != BOUND));
    }
    panel
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
        let report = Report::of(&report).expect("a report");
        let panels = view(&report);
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
