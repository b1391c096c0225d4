//! The report of a single benchmark, such as `lissom bench -- CMD --json=FILE`, as a figure.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::figures::{Figure, View};
use super::panel::Panel;
use super::read::{Of, Report};
use super::shown::Shown;
use super::store::{Measured, State};

static FIGURE: Figure = Figure {
    name: "bench",
    title: "A benchmark",
    shows: "Medians with the least and the most, by the ways of running.",
    elsewhere: "The numbers are of this machine.",
    view: View::Groups(view),
    ..Figure::EMPTY
};

/// Read the JSON of one benchmark. None: the file contains something else.
pub fn read(path: &Path) -> Option<Measured> {
    let report: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    let benchmark = report["benchmark"].as_str()?;
    report["groups"].as_array()?;
    let command = match report["parameters"]["command"].as_array() {
        Some(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            format!("lissom bench -- {}", words.join(" "))
        }
        None => format!("lissom bench {benchmark}"),
    };
    Some(Measured {
        command,
        quick: false,
        version: report["version"].as_str().unwrap_or("?").into(),
        commit: None,
        dirty: false,
        time: report["time"].as_u64().unwrap_or(0),
        seconds: 0.0,
        machine: report["machine"].clone(),
        state: if report["interrupted"].is_null() { State::Ok } else { State::Interrupted },
        error: None,
        report,
    })
}

pub fn shown(measured: &Measured) -> anyhow::Result<Vec<Shown<'_>>> {
    let panels = FIGURE.panels(&measured.report).context("cannot read the benchmark's report")?;
    Ok(vec![Shown { figure: &FIGURE, measured: Some(measured), panels }])
}

/// Return a panel for each unit, and one of the times relative to the bound.
fn view(report: &Report) -> Vec<Panel> {
    let mut units: Vec<&str> = report.groups.iter().map(|g| g.metric.unit.as_str()).collect();
    units.dedup();
    let of_unit = |unit| report.by_workload(unit, "program", Of::Value, |g| g.metric.unit == unit);
    let mut panels: Vec<Panel> = units.into_iter().map(of_unit).collect();
    panels.push(report.by_workload("against the bound", "program", Of::ToBound, |_| true));
    panels
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::report;
    use super::*;

    #[test]
    fn one_benchmark_is_a_figure() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let mut json = report(&["app"], &[0]);
        json["benchmark"] = "program".into();
        json["parameters"]["command"] = serde_json::json!(["./app", "-x"]);
        let path = write("report.json", &json.to_string());
        let measured = read(&path).expect("a report");
        assert_eq!(measured.command, "lissom bench -- ./app -x");
        let list = shown(&measured).expect("a figure");
        let titles: Vec<&str> = list[0].panels.iter().map(|p| p.title.as_str()).collect();
        assert_eq!(titles, ["s", "against the bound"]);
        assert!(list[0].warnings().is_empty(), "{:?}", list[0].warnings());
        let other = write("other.json", "{}");
        assert!(read(&other).is_none());
    }
}
