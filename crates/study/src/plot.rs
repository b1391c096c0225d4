//! Draw a panel as SVG, narrow enough for a telephone. A page can replace the colours: `STYLE` does
//! so in dark mode.

use plotters::coord::ranged1d::{KeyPointHint, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::panel::{Panel, Places, Scale, Shape, Side};
use super::shown::cut;
use ui::number::number;

/// Colours that people with colour blindness can distinguish, too (Okabe and Ito).
const GREY: RGBColor = RGBColor(110, 110, 110);
const ORANGE: RGBColor = RGBColor(213, 94, 0);
const BLUE: RGBColor = RGBColor(0, 114, 178);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const PURPLE: RGBColor = RGBColor(204, 121, 167);
const YELLOW: RGBColor = RGBColor(230, 159, 0);
const SKY: RGBColor = RGBColor(86, 180, 233);
const BROWN: RGBColor = RGBColor(150, 90, 60);
const COLOURS: [RGBColor; 8] = [GREEN, YELLOW, BROWN, SKY, PURPLE, ORANGE, BLUE, GREY];

/// Return the colour of a way of running, which is the same in all figures.
fn colour_of(name: &str) -> Option<RGBColor> {
    Some(match name {
        "bound" | "sleep" | "stock" | "default" => GREY,
        "native" | "oversubscription" => ORANGE,
        "auto" | "user" | "lissom" | "haltpoll" | "APPLE" => BLUE,
        "manager" => GREEN,
        "kernel" => SKY,
        name if name.starts_with("published") => PURPLE,
        _ => return None,
    })
}

const GRID: RGBColor = RGBColor(225, 225, 225);
const INK: RGBColor = RGBColor(0, 0, 0);
const REFERENCE: RGBColor = RGBColor(1, 1, 1);

/// CSS for a page, or for an SVG file of its own.
pub const STYLE: &str = "\
@media (prefers-color-scheme:dark){svg [fill=\"#000000\"]{fill:#ddd}\
svg [stroke=\"#000000\"]{stroke:#888}\
svg [stroke=\"#E1E1E1\"]{stroke:#383838}svg [stroke=\"#010101\"]{stroke:#aaa}\
svg [fill=\"#0072B2\"]{fill:#4aa8e0}svg [stroke=\"#0072B2\"]{stroke:#4aa8e0}\
svg [fill=\"#6E6E6E\"]{fill:#a0a0a0}svg [stroke=\"#6E6E6E\"]{stroke:#a0a0a0}}";

const WIDTH: u32 = 440;
const HEIGHT: u32 = 280;
const FONT: (&str, u32) = ("sans-serif", 15);

/// Return the colour of a series. A series without a colour of its own, or whose colour is taken,
/// gets a remaining one.
fn rgb(panel: &Panel, series: usize) -> RGBColor {
    let mut used: Vec<RGBColor> = Vec::new();
    for (i, s) in panel.series.iter().enumerate() {
        let is_free = |c: &RGBColor| !used.contains(c);
        let named: Vec<RGBColor> = panel.series.iter().filter_map(|s| colour_of(&s.name)).collect();
        let left = COLOURS.iter().copied().filter(|c| is_free(c) && !named.contains(c));
        let any = left.clone().next().unwrap_or(COLOURS[i % COLOURS.len()]);
        let colour = colour_of(&s.name).filter(is_free).unwrap_or(any);
        if i == series {
            return colour;
        }
        used.push(colour);
    }
    GREY
}

/// Return the colour of a series in CSS notation.
pub fn colour(panel: &Panel, series: usize) -> String {
    let RGBColor(r, g, b) = rgb(panel, series);
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// Draw without a legend, which a page has beside the picture. None: there is nothing to draw.
pub fn svg(panel: &Panel) -> Option<String> {
    draw(panel, false)
}

/// Draw as a file of its own: with a legend, and with colours for light and dark mode.
pub fn alone(panel: &Panel) -> Option<String> {
    let text = draw(panel, true)?;
    let (head, rest) = text.split_once(">\n")?;
    let style = format!(
        "<style>@media (prefers-color-scheme:dark){{svg{{background:#161616}}}}{STYLE}</style>"
    );
    Some(format!("{head}>\n{style}\n{rest}"))
}

fn draw(panel: &Panel, legend: bool) -> Option<String> {
    if panel.is_empty() || panel.shape == Shape::Table {
        return None;
    }
    let above = if legend { legend_height(panel) } else { 0 };
    let height = above + if panel.shape == Shape::Bars { bars_height(panel) } else { HEIGHT };
    let mut text = String::new();
    let drawn = (|| -> Drawn {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        let (top, picture) = root.split_vertically(above);
        if legend {
            draw_legend(panel, &top)?;
        }
        match panel.shape {
            Shape::Bars => bars(panel, &picture)?,
            _ => lines(panel, &picture)?,
        }
        root.present()?;
        Ok(())
    })();
    // Writing to a string cannot fail, and the ranges are not empty.
    drawn.ok().map(|()| text)
}

/// Number of names in a line of the legend.
const KEYS: usize = 3;
/// Height of a line of the legend, in pixels.
const KEY: u32 = 18;

fn legend_height(panel: &Panel) -> u32 {
    panel.series.len().div_ceil(KEYS) as u32 * KEY
}

fn draw_legend(panel: &Panel, area: &Area) -> Drawn {
    for (i, series) in panel.series.iter().enumerate() {
        let x = 8 + (i % KEYS) as i32 * (WIDTH as i32 - 8) / KEYS as i32;
        let y = 4 + (i / KEYS) as i32 * KEY as i32;
        area.draw(&Rectangle::new([(x, y), (x + 10, y + 10)], rgb(panel, i).filled()))?;
        area.draw(&Text::new(cut(&series.name, 20), (x + 14, y - 2), FONT))?;
    }
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Range of an axis, and conversion between values and positions.
struct Axis {
    is_log: bool,
    low: f64,
    high: f64,
}

impl Axis {
    fn of(panel: &Panel) -> Axis {
        let all = || {
            panel.series.iter().flat_map(|s| &s.points).flat_map(|p| [p.least, p.median, p.most])
        };
        let is_log = panel.scale == Scale::Log && all().all(|v| v > 0.0);
        let place = |v: f64| if is_log { v.log10() } else { v };
        let values = all().chain(panel.reference).map(place);
        let (mut low, mut high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if is_log {
            // Show half a decade at least, so that noise does not look like a difference.
            let middle = (low + high) / 2.0;
            (low, high) = (low.min(middle - 0.25), high.max(middle + 0.25));
        } else {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if high - low < 1e-9 {
            high = low + 1.0;
        }
        let margin = (high - low) * 0.05;
        Axis {
            is_log,
            low: if low < 0.0 || is_log { low - margin } else { low },
            high: high + margin,
        }
    }

    fn place(&self, value: f64) -> f64 {
        if self.is_log { value.max(1e-12).log10() } else { value }
    }

    /// Return about six round numbers.
    fn ticks(&self) -> Vec<f64> {
        let (low, high) = (self.low, self.high);
        if !self.is_log {
            let raw = (high - low) / 6.0;
            let power = 10f64.powf(raw.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0]
                .map(|m| m * power)
                .into_iter()
                .find(|s| *s >= raw)
                .unwrap_or(raw);
            let first = (low / step).ceil() as i64;
            return (first..).map(|i| i as f64 * step).take_while(|v| *v <= high).collect();
        }
        let of = |each: &[f64]| -> Vec<f64> {
            let decades = low.floor() as i32..=high.ceil() as i32;
            let all = decades.flat_map(|d| each.iter().map(move |m| f64::from(d) + m.log10()));
            all.filter(|v| (low..=high).contains(v)).collect()
        };
        let fine =
            [&[1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0][..], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
        let fits = fine.into_iter().map(of).find(|t| t.len() <= 7);
        fits.unwrap_or_else(|| {
            let decades = of(&[1.0]);
            let every = decades.len().div_ceil(7);
            decades.into_iter().step_by(every).collect()
        })
    }

    fn coordinates(&self) -> Ticks {
        Ticks { range: self.low..self.high, ticks: self.ticks() }
    }

    /// Return the axis's title.
    fn title(&self, unit: &str) -> String {
        let better = match unit {
            "x bound" => " (lower is better)",
            unit if unit.contains("throughput") || unit.contains("speed") => " (higher is better)",
            _ => "",
        };
        let scale = if self.is_log { ", log scale" } else { "" };
        format!("{unit}{better}{scale}")
    }

    fn label(&self, place: f64) -> String {
        short(if self.is_log { 10f64.powf(place) } else { place })
    }

    /// Return the position where bars begin.
    fn base(&self, panel: &Panel) -> f64 {
        match panel.reference {
            Some(reference) if self.is_log => self.place(reference),
            _ if self.is_log => self.low,
            _ => 0.0,
        }
    }
}

/// A linear axis with lines at given positions.
struct Ticks {
    range: std::ops::Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for Ticks {
    type FormatOption = plotters::coord::ranged1d::NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        // Draw no lines between the ticks.
        if hint.bold_points() == 0 { vec![] } else { self.ticks.clone() }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Ticks {}

/// Format without trailing zeros: 2, not 2.00.
fn short(value: f64) -> String {
    let text = number(value);
    if !text.contains('.') || text.ends_with(['k', 'M']) {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').into()
}

fn lines(panel: &Panel, area: &Area) -> Drawn {
    let y = Axis::of(panel);
    let names = panel.names();
    let points = || panel.series.iter().flat_map(|s| &s.points);
    let range = match &panel.places {
        Places::Names(names) => -0.3..names.len() as f64 - 0.7,
        Places::Numbers => {
            let (low, high) =
                points().fold((f64::INFINITY, 0.0f64), |(l, h), p| (l.min(p.x), h.max(p.x)));
            low..high.max(low + 1e-9)
        }
    };
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(range, y.coordinates())?;
    // Show as many names as fit side by side.
    let widest = names.iter().map(|n| n.chars().count() * 8 + 12).max().unwrap_or(1);
    let every = (names.len() * widest).div_ceil(WIDTH as usize - 80).max(1);
    let name_x = |x: &f64| match &panel.places {
        Places::Numbers => short(*x),
        Places::Names(names) => {
            let i = x.round();
            let shown = (x - i).abs() < 0.01 && i >= 0.0 && (i as usize).is_multiple_of(every);
            names.get(i as usize).filter(|_| shown).cloned().unwrap_or_default()
        }
    };
    let labels = if names.is_empty() { 6 } else { names.len() + 1 };
    chart
        .configure_mesh()
        .x_desc(&panel.x)
        .y_desc(y.title(&panel.y))
        .axis_desc_style(FONT)
        .label_style(FONT)
        .x_labels(labels)
        .y_labels(6)
        .x_label_formatter(&name_x)
        .y_label_formatter(&|v| y.label(*v))
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .draw()?;
    if let Some(reference) = panel.reference {
        let (left, right) = (chart.x_range().start, chart.x_range().end);
        let at = y.place(reference);
        chart.draw_series(LineSeries::new([(left, at), (right, at)], REFERENCE.stroke_width(1)))?;
    }
    for (i, series) in panel.series.iter().enumerate() {
        let colour = rgb(panel, i);
        let at: Vec<(f64, f64)> = series.points.iter().map(|p| (p.x, y.place(p.median))).collect();
        if panel.shape == Shape::Lines {
            chart.draw_series(LineSeries::new(at.iter().copied(), colour.stroke_width(2)))?;
        }
        if at.len() < 60 {
            for p in &series.points {
                let spread = [(p.x, y.place(p.least)), (p.x, y.place(p.most))];
                chart.draw_series(LineSeries::new(spread, colour.stroke_width(1)))?;
                let place = (p.x, y.place(p.median));
                if p.side == Side::Exact {
                    chart.draw_series([Circle::new(place, 3, colour.filled())])?;
                } else {
                    // Mark a run that was not finished by a triangle.
                    chart.draw_series([TriangleMarker::new(place, 6, colour.filled())])?;
                }
            }
        }
    }
    Ok(())
}

/// Height of a bar, in pixels.
const BAR: u32 = 14;

fn bars_height(panel: &Panel) -> u32 {
    52 + panel.names().len() as u32 * (panel.series.len() as u32 * BAR + 10)
}

/// Draw horizontal bars, so that names can be read.
fn bars(panel: &Panel, area: &Area) -> Drawn {
    let names = panel.names();
    let each = panel.series.len() as u32;
    let value = Axis::of(panel);
    let longest = names.iter().map(|n| n.chars().count()).max().unwrap_or(0) as u32;
    let range = 0.0..names.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .margin_right(16)
        .x_label_area_size(44)
        .y_label_area_size((longest * 8 + 10).clamp(40, 190))
        .build_cartesian_2d(value.coordinates(), range)?;
    // The first name is on top.
    let row = |x: f64| names.len() as f64 - 1.0 - x;
    chart
        .configure_mesh()
        .x_desc(value.title(&panel.y))
        .axis_desc_style(FONT)
        .label_style(FONT)
        .disable_y_mesh()
        .x_labels(6)
        .y_labels(0)
        .x_label_formatter(&|v| value.label(*v))
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .draw()?;
    let base = value.base(panel);
    let part = 1.0 / (f64::from(each) + 10.0 / f64::from(BAR));
    for (i, series) in panel.series.iter().enumerate() {
        let colour = rgb(panel, i);
        for p in &series.points {
            let top = row(p.x) + 1.0 - part * (i as f64 + 10.0 / f64::from(BAR) / 2.0);
            let (from, to) = (top - part * 0.9, top);
            let at = value.place(p.median);
            chart.draw_series([Rectangle::new([(base, from), (at, to)], colour.filled())])?;
            let middle = (from + to) / 2.0;
            let spread = [(value.place(p.least), middle), (value.place(p.most), middle)];
            chart.draw_series(LineSeries::new(spread, INK.stroke_width(1)))?;
        }
    }
    if let Some(reference) = panel.reference {
        let at = value.place(reference);
        let line = [(at, 0.0), (at, names.len() as f64)];
        chart.draw_series(LineSeries::new(line, REFERENCE.stroke_width(1)))?;
    }
    // Draw names separately, because the mesh chooses its own positions.
    let right = Pos::new(HPos::Right, VPos::Center);
    let style = FONT.into_text_style(area).pos(right);
    chart.draw_series(names.iter().enumerate().map(|(i, name)| {
        EmptyElement::at((value.low, row(i as f64) + 0.5))
            + Text::new(cut(name, 24), (-6, 0), style.clone())
    }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::panel::Point;
    use super::*;

    #[test]
    fn every_shape_is_drawn() {
        for shape in [Shape::Bars, Shape::Lines, Shape::Dots] {
            let mut panel = Panel::new("t", "threads", "x bound", true).with(shape, Scale::Log);
            assert!(svg(&panel).is_none());
            let slow = Point { most: 3.0, side: Side::AtLeast, ..Point::from(2.0) };
            panel.row("2", [("native", slow)]);
            panel.row("8", [("user", 0.5)]);
            let text = svg(&panel).expect("a picture");
            assert!(
                text.starts_with("<svg")
                    && text.contains(&colour(&panel, 0))
                    && text.contains(&colour(&panel, 1)),
                "{text}"
            );
        }
    }

    #[test]
    fn the_style_names_colours_that_are_used() {
        let hex = |c: RGBColor| format!("#{:02X}{:02X}{:02X}", c.0, c.1, c.2);
        for colour in [GRID, REFERENCE, GREY, BLUE] {
            assert!(STYLE.contains(&hex(colour)), "{}", hex(colour));
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            (short(2.0).as_str(), short(0.5).as_str(), short(100.0).as_str()),
            ("2", "0.5", "100")
        );
        assert_eq!(short(12_300.0), "12.3k");
    }
}
