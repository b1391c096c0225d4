//! Render a report as a table in Markdown.

use super::harness::{BOUND, Cell, Compare, Measured, NATIVE, Spread, State};
use super::report::Report;
use super::table::{number, one_sided};
use super::watch;
pub use ui::markdown::{head, line};

pub fn render(report: &Report) -> String {
    let mut text = report.title() + ".";
    if !report.groups.is_empty() {
        text.push_str(&format!(
            " Median (least-most) of {} rounds; ratios compare runs of the same round.",
            report.options.runs
        ));
    }
    text.push('\n');
    let mut columns = Vec::new();
    for group in &report.groups {
        let names: Vec<&str> = group.cells.iter().map(|c| c.scenario).collect();
        if columns != names {
            text.push_str(&heading(group));
            columns = names;
        }
        text.push_str(&row(group));
    }
    text.push_str(&watch::markdown(&report.watched));
    for line in &report.noise {
        text.push_str(&format!("\n{line}\n"));
    }
    if let Some(advice) = &report.advice {
        advice.lines.iter().for_each(|line| text.push_str(&format!("\n{line}\n")));
    }
    text
}

fn managed(group: &Measured) -> impl Iterator<Item = &Cell> {
    group.cells.iter().filter(|c| c.managed)
}

fn heading(group: &Measured) -> String {
    let mut names = vec!["pattern".to_string(), "unit".into(), "threads".into()];
    names.extend(group.cells.iter().map(|c| c.scenario.into()));
    for base in [NATIVE, BOUND] {
        if group.cell(base).is_some() {
            names.extend(managed(group).map(|c| format!("{} / {base}", c.scenario)));
        }
    }
    head(&names)
}

fn row(group: &Measured) -> String {
    let mut fields =
        vec![group.workload.clone(), group.metric.unit.into(), group.threads.to_string()];
    fields.extend(group.cells.iter().map(value));
    let compares = group.metric.compare != Compare::Nothing;
    for base in [NATIVE, BOUND] {
        if group.cell(base).is_some() {
            fields.extend(managed(group).map(|c| match c.to(base) {
                Some(s) if compares => one_sided(&s, c, group, base).unwrap_or_else(|| spread(&s)),
                _ => String::new(),
            }));
        }
    }
    line(&fields)
}

pub fn value(cell: &Cell) -> String {
    match (cell.state, &cell.value) {
        (State::Timeout, Some(value)) if cell.at_least.is_some() => {
            format!(">={}", number(value.median))
        }
        (State::Timeout, _) => "timeout".into(),
        (State::Failed, _) => "failed".into(),
        (State::Ok, Some(value)) => spread(value),
        (State::Ok, None) => String::new(),
    }
}

pub fn spread(s: &Spread) -> String {
    format!("{} ({}-{})", number(s.median), number(s.least), number(s.most))
}
