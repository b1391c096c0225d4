//! A study as one HTML file that needs no other: for a telephone as for a wide screen, by day and
//! by night.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::figures::SOURCES;
use super::panel::Panel;
use super::plot;
use super::shown::{Shown, cell, day, machine, rows};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1a1a1a;--dim:#5c5c5c;--back:#fff;--soft:#f3f3f1;--line:#ddd;--link:#0060a0}\
@media (prefers-color-scheme:dark){:root{--ink:#e4e4e4;--dim:#a0a0a0;--back:#161616;--soft:#222;--line:#3a3a3a;\
--link:#6cb6ff}}\
*{box-sizing:border-box}body{margin:0 auto;max-width:72rem;padding:1rem;font:16px/1.5 system-ui,sans-serif;\
color:var(--ink);background:var(--back)}a{color:var(--link)}h1{font-size:1.5rem;margin:.2rem 0}\
h2{font-size:1.25rem;margin:2.5rem 0 .3rem;border-bottom:1px solid var(--line)}\
h3{font-size:1.05rem;margin:2rem 0 .2rem}p{margin:.4rem 0;max-width:48rem}.dim{color:var(--dim);font-size:.875rem}\
.found{background:var(--soft);border-left:3px solid #d55e00;padding:.4rem .7rem;max-width:48rem}\
.warn{color:var(--dim);font-size:.875rem}.warn::before{content:'! ';color:#d55e00;font-weight:bold}\
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,21rem),1fr));gap:1rem;margin:.6rem 0}\
figure{margin:0;min-width:0}figcaption{font-weight:600;font-size:.9rem}svg{width:100%;height:auto;max-width:30rem}\
.key{display:flex;flex-wrap:wrap;gap:.1rem .8rem;font-size:.8rem;list-style:none;margin:.2rem 0;padding:0}\
.key i{display:inline-block;width:.75rem;height:.75rem;margin-right:.3rem;vertical-align:-1px;border-radius:2px}\
@media (prefers-color-scheme:dark){.key i[style*='#0072B2']{background:#4aa8e0!important}\
.key i[style*='#6E6E6E']{background:#a0a0a0!important}}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.8rem;font-variant-numeric:tabular-nums}\
th,td{padding:.15rem .5rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}\
th:first-child,td:first-child{text-align:left}summary{cursor:pointer;font-size:.875rem;color:var(--dim)}\
nav ul{columns:22rem;font-size:.9rem;padding-left:1.1rem}code{font-size:.85em;overflow-wrap:anywhere}";

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
                h1 { "What more threads than CPUs cost here, and what lissom brings" }
                @if let Some(m) = latest {
                    p.dim { (machine(&m.machine)) ", " (day(m.time)) ", lissom " (m.version) "." }
                }
                p {
                    "Medians, with the least and the most as thin lines. "
                    em { "bound" } ": natively with as many threads as CPUs. "
                    em { "native" } ": with more. The other names are ways of " code { "lissom run" }
                    ". A bar or a point that was not finished in time says at least how much it is."
                }
                (contents(list))
                @for source in SOURCES {
                    @let figures: Vec<&Shown> = list.iter().filter(|s| s.figure.source == source).collect();
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

/// `code` between backticks.
fn prose(text: &str) -> Markup {
    html! { @for (i, part) in text.split('`').enumerate() { @if i % 2 == 1 { code { (part) } } @else { (part) } } }
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
            h3 { (figure.title) " " span.dim { (figure.name) @if !figure.number.is_empty() { ", " (figure.number) } } }
            p { (prose(figure.shows)) }
            @if !figure.published.is_empty() { p.dim { "Published: " (prose(figure.published)) } }
            @for finding in shown.findings() { p.found { (finding) } }
            div.panels { @for panel in &shown.panels { (panel_of(panel)) } }
            @for warning in shown.warnings() { p.warn { (prose(&warning)) } }
            p.dim { "Elsewhere: " (prose(figure.elsewhere)) }
            @if let Some(m) = shown.measured {
                p.dim { code { (m.command) } ", " (day(m.time)) ", " (format!("{:.0}", m.seconds)) " s" }
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
                @if picture.is_some() { details { summary { "numbers" } (table) } } @else { (table) }
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
    use super::super::panel::Point;
    use super::*;

    #[test]
    fn names_are_escaped_and_pictures_are_not() {
        let mut panel = Panel::named("<a>", "x", "y", vec!["<b>".into(), "c".into()], true);
        panel.add("<s>", Point::one(0.0, 2.0));
        panel.add("t", Point::one(1.0, 3.0));
        let text = panel_of(&panel).into_string();
        assert!(
            text.contains("<svg") && text.contains("&lt;a&gt;") && text.contains("&lt;b&gt;"),
            "{text}"
        );
        assert!(!text.contains("<s>") && !text.contains("<b>"));
    }
}
