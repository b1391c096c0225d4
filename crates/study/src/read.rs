//! The parts of the benchmarks' JSON from which figures are made.

use itertools::Itertools as _;
use serde::Deserialize;
use serde_json::Value;

use ui::number::Spread;

use super::panel::{Panel, Point, Scale, Shape, Side};
use crate::format::{BOUND, Counted};

#[derive(Deserialize)]
pub struct Report {
    #[serde(default)]
    pub groups: Vec<Group>,
    #[serde(default)]
    pub watched: Vec<Watched>,
    #[serde(default)]
    pub parameters: Value,
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
        self.groups.iter().map(|g| g.workload.as_str()).unique().collect()
    }

    /// Return a panel for each wanted workload: lines over the numbers of threads.
    pub fn by_threads(&self, of: Of, wanted: impl Fn(&str) -> bool) -> Vec<Panel> {
        let wanted = self.workloads().into_iter().filter(|w| wanted(w));
        wanted.map(|workload| self.threads_of(workload, of)).collect()
    }

    fn threads_of(&self, workload: &str, of: Of) -> Panel {
        let groups: Vec<&Group> = self.groups.iter().filter(|g| g.workload == workload).collect();
        let unit = groups.first().map(|g| of.unit(g)).unwrap_or_default();
        over_threads(workload, "threads", &unit, of != Of::Value, &groups, |g| g.points(of))
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
        let unit = groups.first().map(|g| of.unit(g)).unwrap_or_default();
        let mut panel = Panel::new(title, x, &unit, of != Of::Value);
        let same = groups.iter().all(|g| g.threads == groups[0].threads);
        for group in groups {
            let threads = if same { String::new() } else { format!(", {}", group.threads) };
            panel.row(&(group.workload.clone() + &threads), group.points(of));
        }
        panel
    }

    /// Return a panel for each title, with a line over places. `part` returns the title and the
    /// place of a group. Groups with the same title are neighbours.
    pub fn by_parts(
        &self,
        x: &str,
        part: impl Fn(&Group) -> Option<(String, String)>,
    ) -> Vec<Panel> {
        let mut panels: Vec<Panel> = Vec::new();
        for group in &self.groups {
            let Some((title, place)) = part(group) else { continue };
            if panels.last().is_none_or(|p| p.title != title) {
                let panel = Panel::new(&title, x, &group.metric.unit, false);
                panels.push(panel.with(Shape::Lines, Scale::Log));
            }
            if let Some(panel) = panels.last_mut() {
                panel.row(&place, group.points(Of::Value));
            }
        }
        panels
    }
}

/// Return a panel with lines over the numbers of threads. A single number makes no line, but bars.
pub fn over_threads<'a, I: Iterator<Item = (&'a str, P)>, P: Into<Point>>(
    title: &str,
    x: &str,
    unit: &str,
    is_ratio: bool,
    groups: &[&'a Group],
    points: impl Fn(&'a Group) -> I,
) -> Panel {
    let shape = if groups.len() > 1 { Shape::Lines } else { Shape::Bars };
    let mut panel = Panel::new(title, x, unit, is_ratio).with(shape, Scale::Log);
    for group in groups {
        panel.row(&group.threads.to_string(), points(group));
    }
    panel
}

impl Group {
    /// Return a point for each cell that has the number.
    pub fn points(&self, of: Of) -> impl Iterator<Item = (&str, Point)> {
        self.each(move |c| Some(Point { side: self.side(c, of), ..c.number(of)?.into() }))
    }

    /// Return what `read` finds in each cell, with the cell's scenario.
    pub fn each<T>(&self, read: impl Fn(&Cell) -> Option<T>) -> impl Iterator<Item = (&str, T)> {
        self.cells.iter().filter_map(move |c| Some((c.scenario.as_str(), read(c)?)))
    }

    pub fn cell(&self, scenario: &str) -> Option<&Cell> {
        self.cells.iter().find(|c| c.scenario == scenario)
    }

    /// Return whether a number is exact or a limit, as table.rs does. It is a limit if the cell, or
    /// the one it is compared with, was not finished.
    fn side(&self, cell: &Cell, of: Of) -> Side {
        let is_limit = |cell: &Cell| cell.at_least.is_some();
        match of {
            _ if is_limit(cell) => Side::AtLeast,
            Of::ToBound if self.cell(BOUND).is_some_and(is_limit) => Side::AtMost,
            _ => Side::Exact,
        }
    }
}

impl Cell {
    fn number(&self, of: Of) -> Option<Spread> {
        match of {
            Of::Value => self.value,
            Of::ToBound => self.to_bound,
        }
    }

    /// Return the median, if the cell was finished.
    pub fn exact(&self) -> Option<f64> {
        self.value.filter(|_| self.at_least.is_none()).map(|v| v.median)
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

/// Return the elements of a field. Empty: it is no list.
pub fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
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
        assert_eq!(panel.names()[1], "a, 8");
    }
}
