//! Render a report as text, with one line per program.

use super::super::columns::{Field, Table};
use super::super::harness::{BOUND, Cell, Measured, State};
use super::super::report::Report;
use super::super::table::{close, notes, number, one_sided};
use study::format::KINDS;
use ui::text::wrap;

/// Maximum length of a program's name.
const NAME: usize = 23;
/// Maximum number of columns that show spreads, besides the bound.
const WIDE: usize = 2;

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
        let columns: Vec<&str> =
            first.cells.iter().map(|c| c.scenario).filter(|s| *s != BOUND).collect();
        let rows = groups.iter().map(|group| row(group, &columns)).collect();
        let head = [title, "threads", BOUND];
        lines.extend(Table::plain("", &[&head, &columns[..]].concat(), rows).text());
    }
    close(lines, &notes(report))
}

fn row<'a>(group: &Measured, columns: &[&str]) -> Vec<Field<'a>> {
    let find = |name: &str| group.cells.iter().find(|c| c.scenario == name);
    let unit = if group.metric.unit.starts_with("us") { " us" } else { "" };
    let bound = find(BOUND).and_then(|c| Some(number(c.value?.median) + unit));
    let name: String = group.workload.chars().take(NAME).collect();
    let is_wide = columns.len() <= WIDE;
    let cells = columns.iter().map(|name| match find(name) {
        Some(c) => cell(c, group, is_wide),
        None => "".into(),
    });
    [name, group.threads.to_string(), bound.unwrap_or("-".into())]
        .map(Field::from)
        .into_iter()
        .chain(cells)
        .collect()
}

fn cell<'a>(cell: &Cell, group: &Measured, is_wide: bool) -> Field<'a> {
    let value: Field = match (cell.state, cell.to_bound) {
        (State::Failed, _) => "failed".into(),
        (State::Timeout, None) => "timeout".into(),
        (_, None) => "-".into(),
        (_, Some(ratio)) => match one_sided(&ratio, cell, group, BOUND) {
            Some(limit) => limit.into(),
            None if is_wide => Field::Spread(Some(ratio)),
            None => Field::Median(Some(ratio)),
        },
    };
    if cell.native_because.is_some() { (value.text() + "*").into() } else { value }
}
