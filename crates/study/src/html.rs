//! Render a study as one HTML file that needs no other, for telephones and wide screens, in light
//! and dark mode.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::figures::SOURCES;
use super::panel::Panel;
use super::plot;
use super::shown::{Shown, cell, day, machine, rows, source, summary_lines};

const STYLE: &str = include_str!("style.css");

pub fn render(list: &[Shown]) -> String {
    let measured: Vec<_> = list.iter().filter_map(|s| s.measured).collect();
    let latest = measured.iter().max_by_key(|m| m.time);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { "lissom bench" }
                style { (PreEscaped(STYLE)) (PreEscaped(plot::STYLE)) }
            }
            body {
                h1 { "The cost of more threads than CPUs, and the gain by lissom" }
                @if let Some(m) = latest {
                    p.dim { (machine(&m.machine)) ", " (day(m.time)) ", lissom " (m.version) "." }
                }
                p {
                    "Medians, with the least and the most as thin lines. "
                    em { "bound" } ": natively with as many threads as CPUs: a perfect scheduler's time. "
                    em { "x bound" } ": how many times as long as that: 1 is the aim, less is better. "
                    em { "native" } ": with more threads. " em { "auto" } ": the same under "
                    code { "lissom run" }
                    ". If a run was not finished in time, its bar or point shows a lower limit."
                }
                (summary(list))
                (contents(list))
                @for source in SOURCES {
                    @let of = |s: &&Shown| s.figure.source() == source;
                    @let figures: Vec<&Shown> = list.iter().filter(of).collect();
                    @if !figures.is_empty() {
                        h2 { (source.title()) }
                        p.dim { (prose(source.citation())) "." }
                        @for shown in figures { (figure(shown)) }
                    }
                }
            }
        }
    };
    page.into_string() + "\n"
}

/// Render text, with `code` between backticks.
fn prose(text: &str) -> Markup {
    html! {
        @for (i, part) in text.split('`').enumerate() {
            @if i % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Render the summary of all figures: costs, gains, and the command to run.
fn summary(list: &[Shown]) -> Markup {
    let lines = summary_lines(list);
    html! {
        @if !lines.is_empty() { ul { @for text in &lines { li { (prose(text)) } } } }
    }
}

fn contents(list: &[Shown]) -> Markup {
    html! {
        nav { details open[list.len() <= 12] {
            summary { (list.len()) " figures" }
            ul { @for shown in list {
                li { a href={ "#" (shown.figure.name) } { (shown.figure.title) }
                     @if shown.panels.is_empty() { span.dim { " (nothing to show)" } } }
            } }
        } }
    }
}

fn figure(shown: &Shown) -> Markup {
    let figure = shown.figure;
    html! {
        section id=(figure.name) {
            h3 {
                (figure.title) " "
                span.dim {
                    (figure.name) @if !figure.paper.is_empty() { ", " (figure.number()) }
                }
            }
            @for line in shown.contradictions() { p.found { b { "Contradicts the paper. \
                " } (prose(&line)) } }
            p { (prose(figure.shows)) }
            @if !figure.paper.is_empty() {
                p.dim {
                    (figure.number()) " of the paper: " (figure.paper) ". " (prose(figure.stated))
                }
                p.dim { "Different here: " (prose(figure.differs)) }
            }
            @for finding in shown.findings() { p.found { (finding) } }
            div.panels { @for panel in &shown.panels { (panel_of(panel)) } }
            @for warning in shown.warnings() { p.warn { (prose(&warning)) } }
            p.dim { "Elsewhere: " (prose(figure.elsewhere)) }
            @if let Some(m) = shown.measured {
                p.dim {
                    code { (m.command) } ", " (day(m.time)) ", "
                    (format!("{:.0}", m.seconds)) " s" (source(m))
                }
            }
        }
    }
}

fn panel_of(panel: &Panel) -> Markup {
    let picture = plot::svg(panel);
    let table = table(panel);
    html! {
        figure {
            figcaption { (panel.title) span.dim { ": " (panel.y) } }
            @if let Some(svg) = &picture {
                @if panel.series.len() > 1 {
                    ul.key { @for (i, series) in panel.series.iter().enumerate() {
                        li { i style={ "background:" (plot::colour(panel, i)) } {} (series.name) }
                    } }
                }
                (PreEscaped(svg))
            }
            @if let Some(table) = table {
                @if picture.is_some() {
                    details { summary { "numbers" } (table) }
                } @else { (table) }
            }
        }
    }
}

fn table(panel: &Panel) -> Option<Markup> {
    let rows = rows(panel)?;
    Some(html! {
        div.scroll { table {
            tr { th { (panel.x) } @for series in &panel.series { th { (series.name) } } }
            @for (name, points) in rows {
                tr { td { (name) } @for point in points { td { (cell(point, true)) } } }
            }
        } }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_pictures_are_not() {
        let mut panel = Panel::new("<a>", "x", "y", true);
        panel.row("<b>", [("<s>", 2.0)]);
        panel.row("c", [("t", 3.0)]);
        let text = panel_of(&panel).into_string();
        assert!(
            text.contains("<svg") && text.contains("&lt;a&gt;") && text.contains("&lt;b&gt;"),
            "{text}"
        );
        assert!(!text.contains("<s>") && !text.contains("<b>"));
    }
}
