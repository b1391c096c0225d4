//! Render the report as text, at most 80 columns wide, and as Markdown.

use super::super::harness::{Spread, State};
use super::super::markdown::{head, line, spread};
use super::super::noise;
use super::super::table::{self, close, interruption, number};
use super::report::{Cell, IDLE, Means, Mix, Profile, Relative, Report, Summary};
use ui::text::{plural, wrap};

pub fn text(report: &Report) -> String {
    let cpus = report.options.cpus;
    let mut lines = wrap(&report.machine.title(report.benchmark, cpus), "", 2);
    if !report.mixes.is_empty() {
        lines.extend(wrap(&legend(report), "", 0));
    }
    for mix in &report.mixes {
        lines.push(String::new());
        lines.extend(wrap(&format!("{}: {}", mix.name(), alone(mix, cpus)), "", 2));
        lines.push(format!(
            "{:17}{:>7}{:>7}{:>8}{:>6}{:>15}{:>8}{:>6}{:>6}",
            "", "N s", "M s", "N", "M", "STP", "N alone", "M", "STP"
        ));
        lines.extend(mix.cells.iter().map(row));
    }
    lines.extend(summary(&report.summary));
    lines.extend(profiles(&report.profile));
    lines.extend(scaling(report));
    close(lines, &notes(report))
}

fn legend(report: &Report) -> String {
    let options = &report.options;
    let half = options.cpus / 2;
    format!(
        "M is malleable, N is not. Stock: natively, pinned to halves of the CPUs, with {} and {}. \
         Otherwise N has {} (oversubscription: pinned to the lower half), and M {}. OpenMP's wait \
         policy natively: {}. Median of {} (STP: least-most); seconds are geometric means of at \
         least {}. N, M: speed relative to stock; STP: their mean. N alone, M, STP: speed \
         relative to each alone, and the sum.",
        plural(half.into(), "thread"),
        options.cpus - half,
        options.rigid_threads,
        options.malleable_threads,
        options.wait_policy,
        plural(options.runs as u64, "round"),
        plural(options.completed as u64, "run")
    )
}

fn alone(mix: &Mix, cpus: u32) -> String {
    let Some(alone) = &mix.alone else { return String::new() };
    format!(
        "alone {} s and {} s ({} s under lissom); N leaves {} of {cpus} CPUs idle",
        number(alone.rigid.median),
        number(alone.malleable.median),
        number(alone.under_lissom.median),
        percent(alone.rigid_idle.median),
    )
}

fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

fn state(cell: &Cell) -> &'static str {
    match cell.state {
        State::Failed => "failed",
        State::Timeout => "timeout",
        State::Ok => "-",
    }
}

fn row(cell: &Cell) -> String {
    let name = cell.scenario.name();
    let Some(f) = &cell.result else { return format!("{name:17}{:>7}", state(cell)) };
    let stock = f.to_stock.as_ref();
    let relative =
        |of: fn(&Relative) -> &Spread| stock.map_or(String::new(), |r| number(of(r).median));
    format!(
        "{name:17}{:>7}{:>7}{:>8}{:>6}{:>15}{:>8}{:>6}{:>6}",
        number(f.rigid.median),
        number(f.malleable.median),
        relative(|r| &r.rigid),
        relative(|r| &r.malleable),
        stock.map_or(String::new(), |r| table::spread(&r.stp)),
        number(1.0 / f.rigid_slowdown.median),
        number(1.0 / f.malleable_slowdown.median),
        number(f.stp.median),
    )
}

fn of_mixes(summary: &Summary) -> String {
    let which = if summary.idle_at_least == 0.0 {
        "all".into()
    } else {
        format!("N leaves {} or more", percent(IDLE))
    };
    format!("{which} ({})", summary.mixes)
}

fn summary(list: &[Summary]) -> Vec<String> {
    let mut lines = Vec::new();
    if list.is_empty() {
        return lines;
    }
    lines.extend([String::new(), "Geometric means over mixes".into()]);
    lines.push(format!(
        "{:17}{:25}{:>6}{:>6}{:>6}{:>8}{:>6}{:>6}",
        "", "", "N", "M", "STP", "N alone", "M", "STP"
    ));
    for s in list {
        let relative =
            |of: fn(&Means) -> f64| s.to_stock.as_ref().map_or(String::new(), |m| number(of(m)));
        lines.push(format!(
            "{:17}{:25}{:>6}{:>6}{:>6}{:>8}{:>6}{:>6}",
            s.scenario.name(),
            of_mixes(s),
            relative(|m| m.rigid),
            relative(|m| m.malleable),
            relative(|m| m.stp),
            number(1.0 / s.rigid_slowdown),
            number(1.0 / s.malleable_slowdown),
            number(s.stp),
        ));
    }
    lines
}

fn profiles(list: &[Profile]) -> Vec<String> {
    let mut lines = Vec::new();
    if list.is_empty() {
        return lines;
    }
    lines.extend([String::new(), "Share of the time, by number of runnable threads".into()]);
    for p in list {
        lines.extend(wrap(
            &format!("{}, {} threads: {}", p.program, p.threads, shares(p).join(", ")),
            "",
            2,
        ));
    }
    lines
}

/// Format shares as `0: 12%`, without those below half a percent.
fn shares(profile: &Profile) -> Vec<String> {
    let counts = profile.shares.iter().enumerate().filter(|(_, share)| **share >= 0.005);
    counts.map(|(i, share)| format!("{i}: {}", percent(*share))).collect()
}

fn scaling(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if report.scaling.is_empty() {
        return lines;
    }
    lines.extend([String::new(), "Seconds natively and alone, and speedup over one thread".into()]);
    for s in &report.scaling {
        let points = s.points.iter().map(|p| {
            format!(
                "{}: {} s (x {})",
                p.threads,
                number(p.seconds.median),
                number(p.speedup.median)
            )
        });
        lines.extend(wrap(
            &format!("{}, threads {}", s.program, points.collect::<Vec<_>>().join(", ")),
            "",
            2,
        ));
    }
    lines
}

fn notes(report: &Report) -> Vec<String> {
    let mut notes = report.notes.clone();
    notes.extend(report.interrupted.map(interruption));
    notes.extend(noise::disturbed(report.mixes.iter().map(|m| (m.name(), m.others()))));
    // Report an error of several mixes once, such as a manager that does not start.
    let mut errors: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |error: String, mix: &Mix| match errors.iter_mut().find(|(e, _)| *e == error) {
        Some((_, mixes)) => mixes.push(mix.name()),
        None => errors.push((error, vec![mix.name()])),
    };
    for mix in &report.mixes {
        if let Some(error) = &mix.error {
            add(error.clone(), mix);
        }
        for cell in &mix.cells {
            let name = cell.scenario.name();
            if let Some(error) = &cell.error {
                add(format!("{name} failed: {error}"), mix);
            }
            if cell.state == State::Timeout {
                add(
                    format!("{name} took longer than {} s (--timeout)", report.options.timeout),
                    mix,
                );
            }
        }
    }
    notes.extend(errors.into_iter().map(|(error, mixes)| format!("{}: {error}", mixes.join(", "))));
    notes
}

pub fn markdown(report: &Report) -> String {
    let mut text = report.machine.title(report.benchmark, report.options.cpus) + ".";
    if !report.mixes.is_empty() {
        text.push_str(&format!(" {}", legend(report)));
    }
    text.push('\n');
    if !report.mixes.is_empty() {
        text.push_str(&head(&[
            "mix",
            "N alone, s",
            "M alone, s",
            "M alone under lissom",
            "N leaves idle",
        ]));
        for mix in &report.mixes {
            let Some(a) = &mix.alone else { continue };
            let times = [&a.rigid, &a.malleable, &a.under_lissom].map(spread);
            let fields =
                [mix.name()].into_iter().chain(times).chain([percent(a.rigid_idle.median)]);
            text.push_str(&line(&fields.collect::<Vec<_>>()));
        }
        text.push_str(&head(&[
            "mix",
            "scenario",
            "N, s",
            "M, s",
            "N / stock",
            "M / stock",
            "STP",
            "N / alone",
            "M / alone",
            "STP, alone",
        ]));
        for (mix, cell) in report.mixes.iter().flat_map(|m| m.cells.iter().map(move |c| (m, c))) {
            let mut fields = vec![mix.name(), cell.scenario.name()];
            match &cell.result {
                Some(f) => {
                    fields.extend([&f.rigid, &f.malleable].map(|s| number(s.median)));
                    let stock = f.to_stock.as_ref();
                    let speeds = stock.map(|r| [&r.rigid, &r.malleable, &r.stp].map(spread));
                    fields.extend(speeds.unwrap_or_default());
                    let slow = [&f.rigid_slowdown, &f.malleable_slowdown];
                    fields.extend(slow.map(|s| number(1.0 / s.median)));
                    fields.push(spread(&f.stp));
                }
                None => fields.push(state(cell).into()),
            }
            fields.resize(10, String::new());
            text.push_str(&line(&fields));
        }
    }
    if !report.summary.is_empty() {
        text.push_str(&head(&[
            "mixes",
            "scenario",
            "N / stock",
            "M / stock",
            "STP",
            "N / alone",
            "M / alone",
            "STP, alone",
        ]));
        for s in &report.summary {
            let stock = s.to_stock.as_ref().map(|m| [m.rigid, m.malleable, m.stp].map(number));
            let alone = [1.0 / s.rigid_slowdown, 1.0 / s.malleable_slowdown, s.stp].map(number);
            let names = [of_mixes(s), s.scenario.name()];
            let fields = names.into_iter().chain(stock.unwrap_or_default()).chain(alone);
            text.push_str(&line(&fields.collect::<Vec<_>>()));
        }
    }
    if !report.profile.is_empty() {
        text.push_str(&head(&[
            "program",
            "threads",
            "share of the time, by number of runnable threads",
        ]));
        for p in &report.profile {
            text.push_str(&line(&[p.program.into(), p.threads.to_string(), shares(p).join(", ")]));
        }
    }
    if !report.scaling.is_empty() {
        text.push_str(&head(&["program", "threads", "seconds", "x one thread"]));
        for (s, p) in report.scaling.iter().flat_map(|s| s.points.iter().map(move |p| (s, p))) {
            text.push_str(&line(&[
                s.program.into(),
                p.threads.to_string(),
                spread(&p.seconds),
                spread(&p.speedup),
            ]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::Machine;
    use super::super::report::{self, Options, Point, Scaling, Scenario};
    use super::*;

    #[test]
    fn tables_fit() {
        let mixes = vec![report::tests::mix()];
        let spread = Spread::of(&[1.5, 12_345.0]).expect("numbers");
        let report = Report {
            version: "0.1.0",
            benchmark: "mixes",
            time: 0,
            machine: Machine::look(),
            options: Options {
                cpus: 2,
                switch: "auto",
                malleable_threads: 8,
                rigid_threads: 2,
                wait_policy: "passive",
                runs: 1,
                completed: 3,
                timeout: 60.0,
                scale: 1.0,
            },
            parameters: serde_json::Value::Null,
            summary: report::summaries(&mixes, &[Scenario::Stock, Scenario::Lissom]),
            mixes,
            profile: vec![Profile {
                program: "ep",
                threads: 200,
                seconds: 1.0,
                shares: vec![0.01; 100],
            }],
            scaling: vec![Scaling {
                program: "ep",
                points: vec![Point { threads: 64, seconds: spread, speedup: spread }],
            }],
            notes: vec![],
            interrupted: None,
        };
        let text = text(&report);
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(text.contains("N leaves 50%"), "{text}");
        assert!(
            text.contains(
                "lissom              1.25   2.50    1.60  1.60 1.60 1.60-1.60    0.80  0.80  1.60"
            ),
            "{text}"
        );
        assert!(text.contains("20% (blackscholes"), "{text}");
        assert!(text.contains("manager failed: lissom manager has ended"), "{text}");
        let markdown = markdown(&report);
        assert!(markdown.contains("| blackscholes + ep | manager | failed |"), "{markdown}");
        assert_eq!(report.exit_code(), 1);
    }
}
