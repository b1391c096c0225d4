//! Render a study as Markdown, for example docs/results/study.md.

use std::fmt::Write as _;

use super::claims::{self, Judgement};
use super::figures::{Figure, SOURCES};
use super::panel::{Panel, Shape};
use super::shown::{Shown, cell, day, machine, rows, source, summary_lines};
use ui::markdown::{head, line};

/// Render the page. `plots` is the path from the page to the folder of plots (`plot_name`). None:
/// no plots.
pub fn render(list: &[Shown], plots: Option<&str>) -> String {
    let mut text = String::from(
        "# Results\n\nThis page is generated: `lissom study report --input \
         docs/results/results.json --markdown docs/results/study.md --plots docs/results/plots`. \
         Its numbers are of runs of `lissom study run` on one machine, as each figure says; yours \
         are a command away. *x bound*: how many times as long as natively with as many threads as \
         CPUs; 1 is the aim, less is better. \
         *native*: with more threads. *auto*: the same under `lissom run`.\n\n",
    );
    for line in summary_lines(list) {
        let _ = writeln!(text, "- {line}");
    }
    text.push('\n');
    claims(&mut text, list);
    for source in SOURCES {
        let figures: Vec<&Shown> = list.iter().filter(|s| s.figure.source() == source).collect();
        if figures.is_empty() {
            continue;
        }
        let _ = writeln!(text, "## {}\n\n{}.\n", source.title(), source.citation());
        for shown in figures {
            figure(&mut text, shown, plots);
        }
    }
    text
}

/// Append the table of the papers' claims.
fn claims(text: &mut String, list: &[Shown]) {
    text.push_str("## The papers' claims\n\n");
    text.push_str(&head(&["", "paper", "claim", "figure", "here?", "seen", "why not"]));
    for (source, claim) in claims::claims() {
        let (verdict, seen) = match claim.judgement(list) {
            Some(Judgement { holds, seen }) => (if holds { "yes" } else { "no" }, seen),
            None => ("open", String::new()),
        };
        let why = if verdict == "yes" { "" } else { claim.why };
        text.push_str(&line(&[
            claim.number.to_string(),
            source.name().into(),
            claim.text.into(),
            claim.figure.into(),
            verdict.into(),
            seen,
            why.into(),
        ]));
    }
    text.push('\n');
}

// Writing to a string cannot fail.
fn figure(text: &mut String, shown: &Shown, plots: Option<&str>) {
    let figure = shown.figure;
    let number = figure.number();
    let number = if number.is_empty() { String::new() } else { format!(" ({number})") };
    let _ = writeln!(text, "### {}: {}{number}\n", figure.name, figure.title);
    for line in shown.contradictions() {
        let _ = writeln!(text, "**Contradicts the paper.** {line}\n");
    }
    let _ = writeln!(text, "{}\n", figure.shows);
    if !figure.paper.is_empty() {
        let Figure { paper, stated, .. } = figure;
        let _ = writeln!(text, "{} of the paper: {paper}. {stated}\n", figure.number());
        let _ = writeln!(text, "Different here: {}\n", figure.differs);
    }
    for finding in shown.findings() {
        let _ = writeln!(text, "**{finding}** (geometric mean, least-most)\n");
    }
    for (i, panel) in shown.panels.iter().enumerate() {
        if let Some(folder) = plots.filter(|_| panel.shape != Shape::Table) {
            let _ = writeln!(text, "![{}]({folder}/{}.svg)\n", panel.title, plot_name(shown, i));
        }
        table(text, panel);
    }
    for warning in shown.warnings() {
        let _ = writeln!(text, "- {warning}");
    }
    let _ = writeln!(text, "\nElsewhere: {}\n", figure.elsewhere);
    if let Some(m) = shown.measured {
        let _ = writeln!(
            text,
            "`{}`: {}, {}, {:.0} s{}.\n",
            m.command,
            day(m.time),
            machine(&m.machine),
            m.seconds,
            source(m)
        );
    }
}

/// Return the file name of a panel's plot, without .svg.
pub fn plot_name(shown: &Shown, panel: usize) -> String {
    format!("{}-{}", shown.figure.name, panel + 1)
}

fn table(text: &mut String, panel: &Panel) {
    let Some(rows) = rows(panel) else { return };
    let _ = writeln!(text, "{}: {}, median (least-most).", panel.title, panel.y);
    let names: Vec<&str> = std::iter::once(panel.x.as_str())
        .chain(panel.series.iter().map(|s| s.name.as_str()))
        .collect();
    text.push_str(&head(&names));
    for (name, points) in rows {
        let cells = points.into_iter().map(|p| {
            let text = cell(p, true);
            // Convert 2.00 1.00-3.00 to 2.00 (1.00-3.00).
            match text.split_once(' ') {
                Some((median, range)) => format!("{median} ({range})"),
                None => text,
            }
        });
        text.push_str(&line(&std::iter::once(name.to_string()).chain(cells).collect::<Vec<_>>()));
    }
    text.push('\n');
}
