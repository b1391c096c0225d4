//! Render the report as text, at most 80 columns wide, and as Markdown.

use super::super::harness::{Cell, Spread, State};
use super::super::markdown::{self, head, line};
use super::super::noise;
use super::super::table::{close, interruption, number, spread};
use super::report::{ALONE, Figures, Measured, NEIGHBOUR, Report};
use ui::text::{plural, wrap};

pub fn text(report: &Report) -> String {
    let mut lines = wrap(&report.machine.title(report.benchmark, report.options.cpus), "", 2);
    lines.extend(wrap(&legend(report), "", 0));
    let watts = has_watts(report);
    for group in &report.groups {
        lines.push(String::new());
        lines.push(title(group));
        lines.push(columns("", "throughput", NAMES.map(String::from), watts.then(|| "W".into())));
        let cells = group.measured.cells.iter().zip(&group.figures);
        lines.extend(cells.map(|(cell, figures)| row(cell, figures, watts)));
    }
    close(lines, &notes(report))
}

fn has_watts(report: &Report) -> bool {
    report.groups.iter().flat_map(|g| &g.figures).any(|f| f.watts.is_some())
}

fn legend(report: &Report) -> String {
    let options = &report.options;
    format!(
        "lissom run --switch={} --share={}; {}, {} of a server. Median (and least-most) of {}. \
         mixed: beside matrix multiplication; same: beside a second copy. x alone, beside: \
         throughput of the application and of the program beside it, relative to each alone, \
         natively. cs/s: context switches of the application a second. cs, CPU: its context \
         switches and CPU time per unit of work, relative to sleep.",
        options.switch,
        options.share,
        plural(options.threads.into(), "thread"),
        plural(options.clients.into(), "connection"),
        plural(options.rounds as u64, "round"),
    )
}

fn title(group: &Measured) -> String {
    let measured = &group.measured;
    let stands_for = if measured.workload == group.paper.to_lowercase() {
        String::new()
    } else {
        format!(" for {}", group.paper)
    };
    format!("{}{stands_for}: {}", measured.workload, measured.metric.unit)
}

const NAMES: [&str; 5] = ["x alone", "beside", "cs/s", "cs", "CPU"];

fn columns(name: &str, throughput: &str, fields: [String; 5], watts: Option<String>) -> String {
    let [program, beside, rate, switches, cpu] = fields;
    let watts = watts.unwrap_or_default();
    format!(
        "{name:<17}{throughput:>20}{program:>8}{beside:>7}{rate:>7}{switches:>7}{cpu:>6}{watts:>6}"
    )
    .trim_end()
    .into()
}

fn median(spread: &Option<Spread>) -> String {
    spread.map_or(String::new(), |s| number(s.median))
}

fn shown_name(cell: &Cell) -> &'static str {
    if cell.scenario == NEIGHBOUR { "matmul alone" } else { cell.scenario }
}

fn value(cell: &Cell, of: impl Fn(&Spread) -> String) -> String {
    match (cell.state, &cell.value) {
        (State::Failed, _) => "failed".into(),
        (State::Timeout, _) => "timeout".into(),
        (State::Ok, value) => value.as_ref().map_or("-".into(), of),
    }
}

fn fields(f: &Figures) -> [String; 5] {
    [&f.program, &f.beside, &f.switches_per_second, &f.to_sleep.switches, &f.to_sleep.cpu]
        .map(median)
}

fn row(cell: &Cell, f: &Figures, watts: bool) -> String {
    let mark = if cell.native_because.is_some() { "*" } else { "" };
    let name = format!("  {}{mark}", shown_name(cell));
    columns(&name, &value(cell, spread), fields(f), watts.then(|| median(&f.watts)))
}

fn notes(report: &Report) -> Vec<String> {
    let mut notes = report.notes.clone();
    for left_out in &report.left_out {
        notes.push(format!("{} is left out: {}", left_out.application, left_out.why));
    }
    notes.extend(report.interrupted.map(interruption));
    for group in &report.groups {
        let name = &group.measured.workload;
        for cell in &group.measured.cells {
            let scenario = shown_name(cell);
            if cell.state == State::Timeout {
                let limit = report.options.timeout;
                notes.push(format!("{name}, {scenario}: took longer than {limit} s (--timeout)"));
            }
            if let Some(error) = &cell.error {
                notes.push(format!("{name}, {scenario} failed: {error}"));
            }
        }
        notes.extend(unmanaged(group));
    }
    let place = |g: &Measured| g.measured.workload.clone();
    let alone = report.groups.iter().filter_map(|g| {
        let cell = g.measured.cells.iter().find(|c| c.scenario == ALONE)?;
        Some((place(g), cell.value?.relative()))
    });
    notes.extend(noise::varied("native throughput alone", alone));
    let others = report.groups.iter().map(|g| (place(g), g.measured.others()));
    notes.extend(noise::disturbed(others));
    notes
}

/// Return a line for each reason why cells of an application ran natively.
fn unmanaged(group: &Measured) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for cell in &group.measured.cells {
        let Some(reason) = cell.native_because.as_deref() else { continue };
        match reasons.iter_mut().find(|(r, _)| *r == reason) {
            Some((_, cells)) => cells.push(cell.scenario),
            None => reasons.push((reason, vec![cell.scenario])),
        }
    }
    let name = &group.measured.workload;
    let line = |(reason, cells): (&str, Vec<&str>)| {
        format!("* {name} ran natively ({}): {reason}", cells.join(", "))
    };
    reasons.into_iter().map(line).collect()
}

pub fn markdown(report: &Report) -> String {
    let title = report.machine.title(report.benchmark, report.options.cpus);
    let mut text = format!("{title}. {}\n", legend(report));
    let watts = has_watts(report);
    let mut names = vec!["application", "of the paper", "", "throughput", "unit"];
    names.extend(NAMES);
    names.extend(watts.then_some("W"));
    text.push_str(&head(&names));
    for group in &report.groups {
        for (cell, f) in group.measured.cells.iter().zip(&group.figures) {
            let unit = if cell.scenario == NEIGHBOUR {
                "rows a second"
            } else {
                group.measured.metric.unit
            };
            let mut row = vec![group.measured.workload.clone(), group.paper.into()];
            row.extend([shown_name(cell).into(), value(cell, markdown::spread), unit.into()]);
            row.extend(fields(f));
            row.extend(watts.then(|| median(&f.watts)));
            text.push_str(&line(&row));
        }
    }
    for note in notes(report) {
        text.push_str(&format!("\n{note}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::Machine;
    use super::super::report::tests::group;
    use super::super::report::{LeftOut, Options};
    use super::*;

    #[test]
    fn the_tables_fit() {
        let mut measured = group();
        for place in [3, 4] {
            measured.measured.cells[place].native_because = Some("one thread".into());
        }
        measured.measured.cells[5].state = State::Timeout;
        measured.figures[6].watts = measured.figures[6].switches;
        let report = Report {
            version: "0.1.0",
            benchmark: "smt",
            time: 0,
            machine: Machine::look(),
            options: Options {
                cpus: 2,
                threads: 2,
                clients: 8,
                rounds: 3,
                seconds: 0.5,
                timeout: 30.0,
                switch: "auto",
                share: "auto",
            },
            parameters: serde_json::Value::Null,
            groups: vec![measured],
            left_out: vec![LeftOut {
                application: "dbench",
                why: "apt-get install dbench".into(),
                is_broken: false,
            }],
            notes: vec!["Energy is not measured: no RAPL counters here.".into()],
            interrupted: None,
        };
        let shown = text(&report);
        let long: Vec<&str> = shown.lines().filter(|l| l.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        assert!(shown.contains("\ndedup: MiB a second\n"), "{shown}");
        assert!(shown.contains("  mixed sleep* ") && shown.contains("  matmul alone "), "{shown}");
        assert!(
            shown.contains("* dedup ran natively (mixed sleep, mixed poll): one thread"),
            "{shown}"
        );
        assert!(shown.contains("dbench is left out: apt-get install dbench"), "{shown}");
        let markdown = markdown(&report);
        let widths =
            markdown.lines().filter(|l| l.starts_with('|')).map(|l| l.matches('|').count());
        assert!(widths.into_iter().all(|w| w == 12), "{markdown}");
        assert_eq!(report.exit_code(), 1);
    }
}
