//! The parts of the benchmarks' JSON from which figures are made.

use serde::Deserialize;
use serde_json::Value;

use ui::number::Spread;

use super::panel::{Panel, Point, Shape, Side};
use crate::format::{BOUND, Counted};

#[derive(Deserialize)]
pub struct Report {
    #[serde(default)]
    pub groups: Vec<Group>,
    #[serde(default)]
    pub watched: Vec<Watched>,
}

#[derive(Deserialize)]
pub struct Group {
    pub workload: String,
    pub threads: u32,
    pub metric: Metric,
    pub cells: Vec<Cell>,
}

#[derive(Deserialize)]
pub struct Metric {
    pub unit: String,
}

#[derive(Deserialize)]
pub struct Cell {
    pub scenario: String,
    pub at_least: Option<f64>,
    pub value: Option<Spread>,
    pub to_bound: Option<Spread>,
    #[serde(default)]
    pub samples: Vec<Sample>,
    pub counted: Option<Counted>,
}

#[derive(Deserialize)]
pub struct Sample {
    /// Counters of the kernel.
    #[serde(default)]
    pub process: Value,
    /// Output of the program.
    #[serde(default)]
    pub output: Value,
}

#[derive(Deserialize)]
pub struct Watched {
    pub what: String,
    pub name: String,
    pub state: String,
    pub samples: u64,
    pub waits: u64,
    pub overhead: Option<Spread>,
}

/// Selects one of a cell's numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Value,
    ToBound,
}

impl Of {
    fn unit(self, group: &Group) -> String {
        match self {
            Of::Value => group.metric.unit.clone(),
            Of::ToBound => "x bound".into(),
        }
    }
}

impl Report {
    pub fn of(report: &Value) -> anyhow::Result<Report> {
        Ok(Report::deserialize(report)?)
    }

    /// Return each workload once, in order.
    pub fn workloads(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for group in &self.groups {
            if !names.contains(&group.workload.as_str()) {
                names.push(&group.workload);
            }
        }
        names
    }

    /// Return a panel for each wanted workload: lines over the numbers of threads.
    pub fn by_threads(&self, of: Of, wanted: impl Fn(&str) -> bool) -> Vec<Panel> {
        let wanted = self.workloads().into_iter().filter(|w| wanted(w));
        wanted.map(|workload| self.threads_of(workload, of)).filter(|p| !p.is_empty()).collect()
    }

    fn threads_of(&self, workload: &str, of: Of) -> Panel {
        let groups: Vec<&Group> = self.groups.iter().filter(|g| g.workload == workload).collect();
        let names = groups.iter().map(|g| g.threads.to_string()).collect();
        let unit = groups.first().map(|g| of.unit(g)).unwrap_or_default();
        let mut panel = Panel::named(workload, "threads", &unit, names, of != Of::Value);
        panel.scale = super::panel::Scale::Log;
        // A single number of threads makes no line.
        panel.shape = if groups.len() > 1 { Shape::Lines } else { Shape::Bars };
        for (i, group) in groups.iter().enumerate() {
            group.add_to(&mut panel, i, of);
        }
        panel
    }

    /// Return one panel with bars for each wanted group. If these have different numbers of
    /// threads, a bar's name includes the number.
    pub fn by_workload(
        &self,
        title: &str,
        x: &str,
        of: Of,
        wanted: impl Fn(&Group) -> bool,
    ) -> Panel {
        let groups: Vec<&Group> = self.groups.iter().filter(|g| wanted(g)).collect();
        let threads = groups.first().map_or(0, |g| g.threads);
        let same = groups.iter().all(|g| g.threads == threads);
        let name = |g: &&Group| {
            if same { g.workload.clone() } else { format!("{}, {}", g.workload, g.threads) }
        };
        let unit = groups.first().map(|g| of.unit(g)).unwrap_or_default();
        let mut panel =
            Panel::named(title, x, &unit, groups.iter().map(name).collect(), of != Of::Value);
        for (i, group) in groups.iter().enumerate() {
            group.add_to(&mut panel, i, of);
        }
        panel
    }
}

impl Group {
    /// Add a point for each cell that has the number.
    pub fn add_to(&self, panel: &mut Panel, place: usize, of: Of) {
        for cell in &self.cells {
            if let Some(value) = cell.number(of) {
                panel.add(&cell.scenario, Point::new(place, value, self.side(cell, of)));
            }
        }
    }

    /// Return whether a number is exact or a limit, as table.rs does. It is a limit if the cell, or
    /// the one it is compared with, was not finished.
    pub fn side(&self, cell: &Cell, of: Of) -> Side {
        let base = match of {
            Of::Value => None,
            Of::ToBound => Some(BOUND),
        };
        let base_unknown = base.is_some_and(|base| {
            self.cells.iter().any(|c| c.scenario == base && c.at_least.is_some())
        });
        match (cell.at_least.is_some(), base_unknown) {
            (true, _) => Side::AtLeast,
            (false, true) => Side::AtMost,
            (false, false) => Side::Exact,
        }
    }
}

impl Cell {
    pub fn number(&self, of: Of) -> Option<Spread> {
        match of {
            Of::Value => self.value,
            Of::ToBound => self.to_bound,
        }
    }

    /// Return the spread of a value over all samples.
    pub fn over_samples(&self, read: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.samples.iter().filter_map(read).collect();
        Spread::of(&values)
    }
}

/// Read a field that was written from a `Spread`.
pub fn spread(value: &Value) -> Option<Spread> {
    Spread::deserialize(value).ok()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    fn cell(scenario: &str, median: f64, to_bound: Option<f64>) -> Value {
        let spread = |m: f64| json!({ "median": m, "least": m, "most": m });
        let mut cell =
            json!({ "scenario": scenario, "state": "ok", "value": spread(median), "samples": [] });
        if let Some(ratio) = to_bound {
            cell["to_bound"] = spread(ratio);
        }
        cell
    }

    /// Create a report. For each workload and number of threads, native takes 4 x bound and is not
    /// finished, and user takes 1.5 x bound.
    pub fn report(workloads: &[&str], threads: &[u32]) -> Value {
        let group = |workload: &str, threads: u32| {
            let mut native = cell("native", 4.0, Some(4.0));
            native["at_least"] = json!(4.0);
            json!({ "workload": workload, "threads": threads, "metric": { "unit": "s" },
                    "cells": [cell("bound", 1.0, None), native, cell("user", 1.5, Some(1.5))] })
        };
        let groups: Vec<Value> =
            workloads.iter().flat_map(|w| threads.iter().map(move |t| group(w, *t))).collect();
        json!({ "groups": groups })
    }

    #[test]
    fn groups_become_lines_and_bars() {
        let report = Report::of(&report(&["a", "b"], &[2, 8])).expect("a report");
        let panels = report.by_threads(Of::ToBound, |w| w == "b");
        assert_eq!((panels.len(), panels[0].title.as_str(), panels[0].series.len()), (1, "b", 2));
        assert_eq!(panels[0].series[0].points[1].side, Side::AtLeast);
        assert!(panels[0].shape == Shape::Lines && panels[0].reference == Some(1.0));
        let panel = report.by_workload("t", "program", Of::Value, |g| g.threads == 8);
        assert_eq!(panel.series.len(), 3);
        assert!(panel.reference.is_none());
        let panel = report.by_workload("t", "program", Of::Value, |_| true);
        assert!(matches!(&panel.places, super::super::panel::Places::Names(n) if n[1] == "a, 8"));
    }
}
