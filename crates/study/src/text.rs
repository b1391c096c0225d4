//! Render a study for the terminal, at most 80 columns wide.

use super::panel::Panel;
use super::shown::{Shown, cell, cut, rows};
use ui::text::{plural, wrap};

const WIDTH: usize = 80;
/// Maximum width of a name.
const LABEL: usize = 26;

/// Render one figure: what it shows, its tables, and the findings.
pub fn figure(shown: &Shown) -> Vec<String> {
    let figure = shown.figure;
    let paper = match figure.number() {
        number if number.is_empty() => number,
        number => format!(" ({}, {number})", figure.source().name()),
    };
    let mut lines = wrap(&format!("{}{paper}", figure.title), &format!("{}: ", figure.name), 2);
    for line in shown.contradictions() {
        lines.extend(wrap(&line, "  Contradicts the paper. ", 2));
    }
    lines.extend(wrap(figure.shows, "  ", 2));
    if !figure.stated.is_empty() {
        lines.extend(wrap(figure.stated, "  The paper: ", 2));
    }
    for panel in &shown.panels {
        lines.push(String::new());
        lines.extend(table(panel));
    }
    for finding in shown.findings() {
        lines.push(String::new());
        lines.extend(wrap(&finding, "On average, ", 2));
    }
    lines.extend(shown.warnings().iter().flat_map(|w| wrap(w, "! ", 2)));
    lines
}

/// Summarize each figure in one line or a few.
pub fn summary(list: &[Shown]) -> Vec<String> {
    let mut lines = Vec::new();
    for shown in list {
        let name = shown.figure.name;
        lines.extend(wrap(shown.figure.title, &format!("{name:<16}"), 16));
        let findings = shown.findings();
        if findings.is_empty() && shown.measured.is_some() && !shown.panels.is_empty() {
            let panels = plural(shown.panels.len() as u64, "panel");
            lines.push(format!("{:16}{panels} without a ratio: see the report", ""));
        }
        lines.extend(findings.iter().flat_map(|f| wrap(f, &" ".repeat(16), 18)));
        if shown.panels.is_empty() {
            lines
                .extend(shown.warnings().iter().take(1).flat_map(|w| wrap(w, &" ".repeat(16), 18)));
        }
    }
    lines
}

/// Render the table of a panel. Includes spreads if they fit.
fn table(panel: &Panel) -> Vec<String> {
    let mut lines = wrap(&format!("{}: {}", panel.title, panel.y), "", 2);
    let Some(rows) = rows(panel) else {
        lines.push("(a curve: see the report)".into());
        return lines;
    };
    let names = rows.iter().map(|r| r.0.chars().count()).chain([panel.x.chars().count()]);
    let label = names.max().unwrap_or(0).min(LABEL);
    let heads: Vec<&str> = panel.series.iter().map(|s| s.name.as_str()).collect();
    let cells = |with_spread: bool| -> Vec<Vec<String>> {
        rows.iter().map(|r| r.1.iter().map(|p| cell(*p, with_spread)).collect()).collect()
    };
    let width = |cells: &[Vec<String>]| {
        let longest = cells.iter().flatten().map(|c| c.chars().count()).max().unwrap_or(0);
        heads.iter().map(|h| h.chars().count()).max().unwrap_or(0).min(20).max(longest) + 2
    };
    let mut cells_shown = cells(true);
    if label + heads.len() * width(&cells_shown) > WIDTH {
        cells_shown = cells(false);
    }
    let column = width(&cells_shown);
    let abreast = ((WIDTH - label) / column).max(1);
    for first in (0..heads.len()).step_by(abreast) {
        let block = first..(first + abreast).min(heads.len());
        let heading: String = heads[block.clone()]
            .iter()
            .map(|h| format!("{:>column$}", cut(h, column - 1)))
            .collect();
        lines.push(format!("{:label$}{heading}", cut(&panel.x, label)));
        for (row, cells) in rows.iter().zip(&cells_shown) {
            let cells: String =
                cells[block.clone()].iter().map(|c| format!("{c:>column$}")).collect();
            lines.push(format!("{:label$}{cells}", cut(row.0, label)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::panel::Point;
    use super::*;

    #[test]
    fn tables_fit() {
        for series in [1, 3, 4, 12] {
            let mut panel = Panel::new("title", "program", "x bound", true);
            let wide = Point { least: 11_111.0, most: 98_765.0, ..Point::from(12_345.0) };
            for name in ["a", "a name that is much longer than there is room for"] {
                panel.row(name, (0..series).map(|i| (format!("scenario {i}"), wide)));
            }
            let lines = table(&panel);
            assert!(lines.iter().all(|l| l.chars().count() <= WIDTH), "{lines:#?}");
            assert_eq!(lines.iter().filter(|l| l.starts_with("a ")).count() % 2, 0);
            assert!(lines.concat().contains(&format!("scenario {}", series - 1)));
        }
    }
}
