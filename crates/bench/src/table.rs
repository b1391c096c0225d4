//! Render a report as text, at most 80 columns wide.

use super::harness::{BOUND, Cell, Compare, Measured, NATIVE, Spread, State};
use super::report::Report;
use super::watch;
pub use ui::number::{number, spread};
use ui::text::{plural, wrap};

const LABEL: usize = 8;
const COLUMN: usize = 18;
/// Maximum number of columns side by side. Further scenarios go into blocks below.
const ABREAST: usize = 4;

pub fn render(report: &Report) -> String {
    let mut lines = wrap(&report.title(), "", 2);
    if !report.groups.is_empty() {
        lines.extend(wrap(
            &format!(
                "Median, least-most of {} rounds.{} x bound, x native: ratio to that run of the same round.",
                report.options.runs,
                bound(report)
            ),
            "",
            0,
        ));
    }
    let mut previous = None;
    for group in &report.groups {
        let title = (&group.workload, group.metric.unit);
        if previous != Some(title) {
            previous = Some(title);
            lines.push(String::new());
            lines.push(format!("{}: {}", group.workload, group.metric.unit));
            lines.push(heading(group));
        }
        rows(group, &mut lines);
    }
    lines.extend(watch::table(&report.watched));
    close(lines, &notes(report))
}

/// Explain the column `bound`, if there is one.
fn bound(report: &Report) -> String {
    let has_bound = report.groups.iter().any(|g| g.cell(BOUND).is_some());
    match (has_bound, report.benchmark) {
        (false, _) => String::new(),
        (true, "switch") => " bound: natively with 1 thread.".into(),
        (true, _) => format!(" bound: natively with {} threads.", report.machine.cpus),
    }
}

/// Append the notes, and join all lines.
pub fn close(mut lines: Vec<String>, notes: &[String]) -> String {
    if !notes.is_empty() {
        lines.push(String::new());
        lines.extend(notes.iter().flat_map(|n| wrap(n, "", 2)));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn heading(group: &Measured) -> String {
    let names = group.cells.iter().take(ABREAST).map(|c| format!("{:>COLUMN$}", c.scenario));
    format!("{:>LABEL$}{}", "threads", names.collect::<String>())
}

fn rows(group: &Measured, lines: &mut Vec<String>) {
    for (block, cells) in group.cells.chunks(ABREAST).enumerate() {
        let names: Vec<&str> = cells.iter().map(|c| c.scenario).collect();
        if block > 0 {
            let names: String = names.iter().map(|n| format!("{n:>COLUMN$}")).collect();
            lines.push(format!("{:LABEL$}{names}", ""));
        }
        let label = if block == 0 { group.threads.to_string() } else { String::new() };
        lines.push(row(&label, cells, |c| Some(value(c))));
        let (to_bound, to_native) = match group.metric.compare {
            Compare::Ratio => ("x bound", "x native"),
            Compare::Difference => ("- bound", "- native"),
            Compare::Nothing => continue,
        };
        for (label, base) in [(to_bound, BOUND), (to_native, NATIVE)] {
            let row = row(label, cells, |c| {
                c.to(base).map(|s| one_sided(&s, c, group, base).unwrap_or_else(|| spread(&s)))
            });
            if group.cell(base).is_some() && row.trim() != label {
                lines.push(row);
            }
        }
    }
}

fn row(label: &str, cells: &[Cell], show: impl Fn(&Cell) -> Option<String>) -> String {
    let shown = cells.iter().map(|c| {
        let text = show(c).unwrap_or_default();
        // Separate text that is too wide for its column from the column before it.
        if text.chars().count() > COLUMN { format!(" {text}") } else { format!("{text:>COLUMN$}") }
    });
    format!("{label:>LABEL$}{}", shown.collect::<String>()).trim_end().to_string()
}

pub fn value(cell: &Cell) -> String {
    let mark = if cell.native_because.is_some() { "*" } else { "" };
    match (cell.state, &cell.value) {
        (State::Timeout, Some(value)) if cell.at_least.is_some() => {
            format!("{mark}>={}", number(value.median))
        }
        (State::Timeout, _) => format!("timeout{mark}"),
        (State::Failed, _) => format!("failed{mark}"),
        (State::Ok, Some(value)) => format!("{mark}{}", spread(value)),
        (State::Ok, None) => "-".into(),
    }
}

/// Render a ratio that is only a lower or an upper limit, since a run was killed before its end.
/// Returns `None` if both runs finished.
pub fn one_sided(s: &Spread, cell: &Cell, group: &Measured, base: &str) -> Option<String> {
    let base_at_least = group.cell(base).is_some_and(|c| c.at_least.is_some());
    match (cell.at_least, base_at_least) {
        (Some(_), _) => Some(format!(">={}", number(s.median))),
        (None, true) => Some(format!("<={}", number(s.median))),
        (None, false) => None,
    }
}

pub fn interruption(signal: i32) -> String {
    format!("Interrupted by signal {signal}: only the complete part is shown.")
}

pub fn notes(report: &Report) -> Vec<String> {
    let mut notes = report.notes.clone();
    notes.extend(report.interrupted.map(interruption));
    for group in &report.groups {
        let place = group.place();
        for cell in &group.cells {
            let name = cell.scenario;
            let limit = report.options.timeout;
            match (cell.state, cell.rounds) {
                (State::Timeout, Some(rounds)) => notes.push(format!(
                    "{place}: {name} did not finish within {limit} s (--timeout), with {}: the value is a lower limit.",
                    plural(rounds, "round"),
                )),
                (State::Timeout, None) if cell.is_try => notes.push(format!(
                    "{place}: {name} took 10 times as long as natively, and was killed."
                )),
                (State::Timeout, None) => notes
                    .push(format!("{place}: {name} took longer than {limit} s (--timeout) and was killed.")),
                _ => {}
            }
            if let Some(error) = &cell.error {
                notes.push(format!("{place}: {name} failed: {error}"));
            }
            if let Some(reason) = &cell.native_because {
                notes.push(format!("* {place}: {name} ran natively: {reason}"));
            }
        }
    }
    notes.extend(report.noise.iter().cloned());
    notes
}

#[cfg(test)]
mod tests {
    use super::super::counters::Process;
    use super::super::harness::{Metric, Sample};
    use super::super::machine::Machine;
    use super::super::report::Options;
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0.00"),
            (0.012, "0.012"),
            (0.5, "0.50"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (9999.4, "9999"),
            (9999.6, "10.0k"),
            (99_960.0, "100k"),
            (999_600.0, "1.0M"),
            (99_960_000.0, "100M"),
            (-3.25, "-3.25"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
            assert!(number(value).len() <= 5);
        }
    }

    fn group(threads: u32, cells: Vec<Cell>) -> Measured {
        Measured {
            workload: "barrier".into(),
            threads,
            metric: Metric::ratio("us_per_round", "us a round"),
            options: &[],
            environment: &[],
            cells,
        }
    }

    fn cell(scenario: &'static str, values: [f64; 3]) -> Cell {
        let sample = |&value: &f64| Sample {
            value,
            output: serde_json::Value::Null,
            process: Process::default(),
        };
        Cell {
            scenario,
            managed: true,
            value: Spread::of(&values),
            to_bound: (scenario != BOUND).then(|| Spread::of(&values)).flatten(),
            samples: values.iter().map(sample).collect(),
            ..Cell::default()
        }
    }

    #[test]
    fn the_table_fits() {
        let wide = [12_345.0, 11_111.0, 98_765.0];
        let mut slow = cell("kernel", wide);
        slow.state = State::Timeout;
        let mut unmanaged = cell("user", wide);
        unmanaged.native_because =
            Some("a reason that is long enough to need more than a line of its own".into());
        let cells =
            vec![cell(BOUND, wide), cell(NATIVE, wide), slow, unmanaged, cell("auto", wide)];
        let report = Report {
            version: "0.1.0",
            benchmark: "sync",
            time: 0,
            machine: Machine::look(),
            options: Options { runs: 3, timeout: 120.0, hog: true, scale: 1.0 },
            parameters: serde_json::Value::Null,
            groups: vec![group(128, cells)],
            watched: vec![],
            notes: vec![],
            advice: None,
            noise: vec![],
            interrupted: Some(2),
        };
        let text = render(&report);
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(
            text.contains("     128 12.3k 11.1k-98.8k 12.3k 11.1k-98.8k           timeout"),
            "{text}"
        );
        assert!(text.contains("x bound") && text.contains("auto"), "{text}");
        assert!(text.contains("user ran natively"), "{text}");
    }

    #[test]
    fn one_side_is_shown_of_what_was_not_done() {
        let mut native = cell(NATIVE, [5e6; 3]);
        (native.state, native.at_least, native.rounds) = (State::Timeout, Some(5e6), Some(1));
        let user = cell("user", [0.001, 0.0005, 0.002]);
        let group = group(8, vec![cell(BOUND, [1.0; 3]), native, user]);
        assert_eq!(value(&group.cells[1]), ">=5.0M");
        let ratio = group.cells[2].value.expect("a value");
        let shown = |i: usize, base| one_sided(&ratio, &group.cells[i], &group, base);
        assert_eq!(shown(2, NATIVE).as_deref(), Some("<=0.001"));
        assert_eq!(shown(1, BOUND).as_deref(), Some(">=0.001"));
        assert_eq!(shown(2, BOUND), None);
    }
}
