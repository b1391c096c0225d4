//! Render a report as text, with one line per program.

use super::super::harness::{BOUND, Cell, Measured, State};
use super::super::report::Report;
use super::super::table::{close, notes, number, one_sided, spread};
use study::format::KINDS;
use ui::text::wrap;

const NAME: usize = 24;
const WIDTH: usize = 80;

/// Render the report, at most 80 columns wide.
pub fn text(report: &Report) -> String {
    let mut lines = wrap(&report.title(), "", 2);
    lines.extend(wrap(
        &format!(
            "Median, least-most of {} rounds. bound: natively with one thread per CPU, in seconds, or microseconds a \
             round (us). Other columns: time divided by the bound of the same round.",
            report.options.runs
        ),
        "",
        0,
    ));
    let kind = |group: &Measured| {
        report.parameters["kinds"][&group.workload].as_str().unwrap_or("none").to_string()
    };
    for (name, title) in KINDS {
        let groups: Vec<&Measured> = report.groups.iter().filter(|g| kind(g) == name).collect();
        let Some(first) = groups.first() else { continue };
        lines.push(String::new());
        let columns: Vec<&str> =
            first.cells.iter().map(|c| c.scenario).filter(|s| *s != BOUND).collect();
        // Show spreads if they fit.
        let wide = NAME + 8 + 12 + 18 * columns.len() <= WIDTH;
        let width = if wide { 18 } else { 9 };
        let heads: String = columns.iter().map(|c| format!("{c:>width$}")).collect();
        lines.push(format!("{:<NAME$}{:>8}{:>12}{heads}", cut(title), "threads", BOUND));
        for group in groups {
            lines.push(row(group, &columns, width));
        }
    }
    close(lines, &notes(report))
}

fn row(group: &Measured, columns: &[&str], width: usize) -> String {
    let find = |name: &str| group.cells.iter().find(|c| c.scenario == name);
    let bound = find(BOUND).and_then(|c| Some(number(c.value?.median)));
    let unit = if group.metric.unit.starts_with("us") { " us" } else { "" };
    let bound = bound.map_or("-".into(), |b| b + unit);
    let cells: String = columns
        .iter()
        .map(|name| {
            format!("{:>width$}", find(name).map(|c| cell(c, group, width > 9)).unwrap_or_default())
        })
        .collect();
    format!("{:<NAME$}{:>8}{bound:>12}{cells}", cut(&group.workload), group.threads)
}

fn cell(cell: &Cell, group: &Measured, wide: bool) -> String {
    let mark = if cell.native_because.is_some() { "*" } else { "" };
    let value = match (cell.state, cell.to_bound) {
        (State::Failed, _) => "failed".into(),
        (State::Timeout, None) => "timeout".into(),
        (_, None) => "-".into(),
        (_, Some(ratio)) => one_sided(&ratio, cell, group, BOUND)
            .unwrap_or_else(|| if wide { spread(&ratio) } else { number(ratio.median) }),
    };
    value + mark
}

fn cut(name: &str) -> String {
    name.chars().take(NAME - 1).collect()
}
