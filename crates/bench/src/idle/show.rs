//! Render the report as text, at most 80 columns wide, and as Markdown.

use super::super::harness::{Cell, NATIVE, Spread, State};
use super::super::markdown::{self, head, line};
use super::super::noise;
use super::super::table::{close, interruption, number, spread};
use super::report::{Figures, Kind, Measured, Report, Target};
use ui::text::{plural, wrap};

pub fn text(report: &Report) -> String {
    let machine = &report.machine;
    let mut lines = wrap(&machine.title(report.benchmark, report.options.cpus), "", 2);
    lines.extend(wrap(&legend(report), "", 0));
    let watts = has_watts(report);
    let mut previous = None;
    for group in &report.groups {
        if previous != Some(group.kind) {
            previous = Some(group.kind);
            lines.push(String::new());
            lines.extend(wrap(&title(group.kind, report), "", 0));
            lines.push(heading(group.kind, watts));
        }
        lines.push(format!("{}:", group.name()));
        let cells = group.measured.cells.iter().zip(&group.figures);
        lines.extend(cells.map(|(cell, figures)| row(group.kind, cell, figures, watts)));
    }
    lines.extend(targets(&report.targets));
    close(lines, &notes(report))
}

fn has_watts(report: &Report) -> bool {
    report.groups.iter().flat_map(|g| &g.figures).any(|f| f.watts.is_some())
}

fn legend(report: &Report) -> String {
    let options = &report.options;
    format!(
        "lissom run --switch={} --share={}. Median (and least-most) of {}. program, computes: \
         throughput of the program and of the one that computes, relative to native in the same \
         round; both: their geometric mean. vol/s, inv/s: voluntary and involuntary context \
         switches a second. CPUs: average number that the program uses.",
        options.switch,
        options.share,
        plural(options.rounds as u64, "round"),
    )
}

fn title(kind: Kind, report: &Report) -> String {
    match kind {
        Kind::Pair => format!(
            "Beside a program that computes with {}; context switches of both",
            plural(report.options.cpus.into(), "thread")
        ),
        Kind::Alone => "Alone".into(),
        Kind::Idle => "Almost idle; CPU time in % of a CPU".into(),
    }
}

fn heading(kind: Kind, watts: bool) -> String {
    let time = if kind == Kind::Idle { "% of a CPU" } else { "us a round" };
    let names = match kind {
        Kind::Pair => ["program", "computes", "both"],
        Kind::Alone => ["program", "", ""],
        Kind::Idle => ["", "", ""],
    };
    columns(
        "",
        time,
        names.map(String::from),
        ["vol/s", "inv/s", "CPUs"].map(String::from),
        watts.then(|| "W".into()),
    )
}

fn columns(
    name: &str,
    time: &str,
    throughput: [String; 3],
    used: [String; 3],
    watts: Option<String>,
) -> String {
    let [program, computes, both] = throughput;
    let [voluntary, involuntary, cpus] = used;
    let watts = watts.unwrap_or_default();
    format!(
        "{name:<10}{time:>18}{program:>9}{computes:>9}{both:>7}{voluntary:>8}{involuntary:>7}{cpus:>6}{watts:>6}"
    )
    .trim_end()
    .into()
}

fn median(spread: &Option<Spread>) -> String {
    spread.map_or(String::new(), |s| number(s.median))
}

fn row(kind: Kind, cell: &Cell, f: &Figures, watts: bool) -> String {
    let mark = if cell.native_because.is_some() { "*" } else { "" };
    let name = format!("  {}{mark}", cell.scenario);
    let time = match (cell.state, &cell.value) {
        (State::Failed, _) => return format!("{name:<10}{:>18}", "failed"),
        (State::Timeout, _) => return format!("{name:<10}{:>18}", "timeout"),
        (State::Ok, value) => value.as_ref().map_or("-".into(), spread),
    };
    let both = if kind == Kind::Pair { median(&f.both) } else { String::new() };
    let used = [median(&f.voluntary), median(&f.involuntary), median(&f.cpus)];
    columns(
        &name,
        &time,
        [median(&f.program), median(&f.computes), both],
        used,
        watts.then(|| median(&f.watts)),
    )
}

fn targets(list: &[Target]) -> Vec<String> {
    let mut lines = Vec::new();
    for (idle, title) in [
        (false, "haltpoll's throughput relative to the better of sleep and poll (target: 0.97)"),
        (true, "haltpoll's CPU time minus sleep's, almost idle, in % of a CPU (target: 2)"),
    ] {
        let of: Vec<&Target> = list.iter().filter(|t| (t.kind == Kind::Idle) == idle).collect();
        if of.is_empty() {
            continue;
        }
        lines.extend([String::new(), title.into()]);
        if !idle {
            lines.push(format!("{:30}{:>14}{:>9}{:>9}", "", "both", "program", "computes"));
        }
        for t in of {
            let what = format!(
                "{}, {}{}",
                t.workload,
                t.threads,
                if t.kind == Kind::Pair { ", pair" } else { "" }
            );
            let against = if idle { "" } else { t.against };
            let each = if idle {
                String::new()
            } else {
                format!("{:>9}{:>9}", median(&t.program), median(&t.computes))
            };
            let row = format!(
                "{what:<24}{against:<6}{:>14}{each}  {}",
                spread(&t.value),
                t.verdict.text()
            );
            lines.push(row.trim_end().into());
        }
    }
    lines
}

fn notes(report: &Report) -> Vec<String> {
    let mut notes = report.notes.clone();
    notes.extend(report.interrupted.map(interruption));
    for group in &report.groups {
        let place = place(group);
        for cell in &group.measured.cells {
            let name = cell.scenario;
            if cell.state == State::Timeout {
                notes.push(format!(
                    "{place}: {name} took longer than {} s (--timeout)",
                    report.options.timeout
                ));
            }
            if let Some(error) = &cell.error {
                notes.push(format!("{place}: {name} failed: {error}"));
            }
            if let Some(reason) = &cell.native_because {
                notes.push(format!("* {place}: {name} ran natively: {reason}"));
            }
        }
    }
    let native = report.groups.iter().filter(|g| g.kind != Kind::Idle).filter_map(|g| {
        let cell = g.measured.cells.iter().find(|c| c.scenario == NATIVE)?;
        Some((place(g), cell.value?.relative()))
    });
    notes.extend(noise::varied("native itself", native));
    let others = report.groups.iter().map(|g| (place(g), g.measured.others()));
    notes.extend(noise::disturbed(others));
    notes
}

fn place(group: &Measured) -> String {
    let kind = if group.kind == Kind::Pair { ", pair" } else { "" };
    format!("{}{kind}", group.name())
}

pub fn markdown(report: &Report) -> String {
    let mut text = format!(
        "{}. {}\n",
        report.machine.title(report.benchmark, report.options.cpus),
        legend(report)
    );
    let optional = |s: &Option<Spread>| s.as_ref().map_or(String::new(), markdown::spread);
    for kind in [Kind::Pair, Kind::Alone, Kind::Idle] {
        let groups: Vec<&Measured> = report.groups.iter().filter(|g| g.kind == kind).collect();
        let Some(first) = groups.first() else { continue };
        text.push_str(&format!("\n{}\n", title(kind, report)));
        let mut names = vec!["program", "threads", "", first.measured.metric.unit];
        match kind {
            Kind::Pair => names.extend(["program / native", "computes / native", "both / native"]),
            Kind::Alone => names.push("program / native"),
            Kind::Idle => {}
        }
        names.extend(["vol/s", "inv/s", "CPUs"]);
        names.extend(has_watts(report).then_some("W"));
        text.push_str(&head(&names));
        for group in groups {
            for (cell, f) in group.measured.cells.iter().zip(&group.figures) {
                let time = match (cell.state, &cell.value) {
                    (State::Ok, value) => optional(value),
                    (State::Failed, _) => "failed".into(),
                    (State::Timeout, _) => "timeout".into(),
                };
                let name = group.measured.workload.clone();
                let mut fields =
                    vec![name, group.measured.threads.to_string(), cell.scenario.into(), time];
                match kind {
                    Kind::Pair => fields.extend([&f.program, &f.computes, &f.both].map(optional)),
                    Kind::Alone => fields.push(optional(&f.program)),
                    Kind::Idle => {}
                }
                fields.extend([&f.voluntary, &f.involuntary, &f.cpus].map(median));
                fields.extend(has_watts(report).then(|| median(&f.watts)));
                text.push_str(&line(&fields));
            }
        }
    }
    if !report.targets.is_empty() {
        text.push_str(
            "\nhaltpoll's throughput relative to the better of sleep and poll; idle: its CPU time \
             minus sleep's, in % of a CPU\n",
        );
        text.push_str(&head(&[
            "program", "threads", "part", "better", "both", "program", "computes", "target",
        ]));
    }
    for t in &report.targets {
        let part = format!("{:?}", t.kind).to_lowercase();
        let fields = [
            t.workload.clone(),
            t.threads.to_string(),
            part,
            t.against.into(),
            markdown::spread(&t.value),
        ];
        let each = [optional(&t.program), optional(&t.computes), t.verdict.text().into()];
        text.push_str(&line(&fields.into_iter().chain(each).collect::<Vec<_>>()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::Machine;
    use super::super::report::tests::group;
    use super::super::report::{self, Options};
    use super::*;

    #[test]
    fn the_tables_fit() {
        let wide = [(12_345.678, 1e6), (98_765.4, 9e5), (11_111.1, 8e5), (11_350.2, 7.8e5)];
        let mut groups: Vec<Measured> =
            [Kind::Pair, Kind::Alone, Kind::Idle].map(|kind| group(kind, wide)).into();
        groups[0].measured.cells[1].native_because = Some("a reason".into());
        groups[1].measured.cells[0].state = State::Timeout;
        groups[0].figures[2].watts = groups[0].figures[2].cpus;
        let mut targets: Vec<Target> = groups.iter().flat_map(report::targets).collect();
        targets[0].verdict = report::Verdict::Unsure; // the longest
        let report = Report {
            version: "0.1.0",
            benchmark: "idle",
            time: 0,
            machine: Machine::look(),
            options: Options {
                cpus: 2,
                rounds: 3,
                seconds: 0.5,
                timeout: 30.0,
                switch: "auto",
                share: "auto",
            },
            parameters: serde_json::Value::Null,
            targets,
            groups,
            notes: vec!["Energy is not measured: no RAPL counters here.".into()],
            interrupted: None,
        };
        let text = text(&report);
        let long: Vec<&str> = text.lines().filter(|l| l.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        assert!(
            text.contains("gomp-barrier, 128 threads:") && text.contains("           timeout"),
            "{text}"
        );
        assert!(
            text.contains("  sleep*") && text.contains("sleep ran natively: a reason"),
            "{text}"
        );
        assert!(
            text.contains("gomp-barrier, 128, pair poll ") && text.contains("missed (noise)"),
            "{text}"
        );
        let markdown = markdown(&report);
        let widths =
            markdown.lines().filter(|l| l.starts_with('|')).map(|l| l.matches('|').count());
        let widths: Vec<usize> = widths.collect();
        assert_eq!((widths[0], widths[1], widths[2]), (12, 12, 12), "{markdown}");
        assert_eq!(report.exit_code(), 1);
    }
}
