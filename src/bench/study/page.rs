//! A study as Markdown: docs/results.md is one.

use std::fmt::Write as _;

use super::figures::SOURCES;
use super::panel::{Panel, Shape};
use super::shown::{Shown, cell, day, machine, rows};
use crate::bench::markdown::{head, line};

/// `plots`: where pictures are, by a path from the page; `Shown`'s own names in it.
pub fn render(list: &[Shown], plots: Option<&str>) -> String {
    let mut text = String::from(
        "# Results\n\nThis page is generated: `lissom bench report --input docs/results.json --markdown docs/results.md \
         --plots docs/plots`. Its numbers are of runs of `lissom bench run` on one machine, as each figure says; yours are \
         a command away.\n\n",
    );
    for source in SOURCES {
        let figures: Vec<&Shown> = list.iter().filter(|s| s.figure.source == source).collect();
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

// Writing to a string cannot fail.
fn figure(text: &mut String, shown: &Shown, plots: Option<&str>) {
    let figure = shown.figure;
    let number =
        if figure.number.is_empty() { String::new() } else { format!(" ({})", figure.number) };
    let _ = writeln!(text, "### {}: {}{number}\n\n{}\n", figure.name, figure.title, figure.shows);
    if !figure.published.is_empty() {
        let _ = writeln!(text, "Published: {}\n", figure.published);
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
            "`{}`: {}, {}, {:.0} s.\n",
            m.command,
            day(m.time),
            machine(&m.machine),
            m.seconds
        );
    }
}

/// Of a panel's picture, without .svg.
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
            // 2.00 1.00-3.00 as 2.00 (1.00-3.00)
            match text.split_once(' ') {
                Some((median, range)) => format!("{median} ({range})"),
                None => text,
            }
        });
        text.push_str(&line(&std::iter::once(name.to_string()).chain(cells).collect::<Vec<_>>()));
    }
    text.push('\n');
}
