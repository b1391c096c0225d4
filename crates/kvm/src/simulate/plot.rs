//! Draw a figure as SVG.

use std::path::Path;

use plotters::prelude::*;
use serde::Serialize;
use ui::number::short;

#[derive(Serialize)]
pub struct Plot {
    /// File name without .svg.
    pub name: &'static str,
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    pub shape: Shape,
    pub series: Series,
}

/// Names of the lines, and their points.
pub type Series = Vec<(String, Vec<(f64, f64)>)>;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    Lines,
    /// Lines over windows, on a logarithmic axis to base 2
    Windows,
    Points,
    /// A group of bars for each name; x is the index of the group
    Bars(Vec<&'static str>),
}

/// Colours that the colour-blind can distinguish (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

const GREY: RGBColor = RGBColor(225, 225, 225);

pub fn draw(plot: &Plot, folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(plot.name).with_extension("svg");
    let mut svg = String::new();
    paint(plot, &mut svg).map_err(|e| anyhow::anyhow!("cannot draw {}: {e}", plot.name))?;
    std::fs::write(&path, svg).map_err(|e| anyhow::anyhow!("cannot write {}: {e}", path.display()))
}

fn paint(plot: &Plot, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, (860, 480)).into_drawing_area();
    root.fill(&WHITE)?;
    let (picture, legend) = root.split_horizontally(690);
    let place = |x: f64| if plot.shape == Shape::Windows { x.log2() } else { x };
    let points = || plot.series.iter().flat_map(|(_, points)| points);
    let low = points().map(|p| place(p.0)).fold(f64::INFINITY, f64::min);
    let high = points().map(|p| place(p.0)).fold(0.0, f64::max);
    let top = points().map(|p| p.1).fold(0.0, f64::max) * 1.05;
    let range = match &plot.shape {
        Shape::Bars(groups) => -0.5..groups.len() as f64 - 0.5,
        Shape::Windows => low - 0.1..high + 0.1,
        _ => 0.0..high * 1.02,
    };
    let mut chart = ChartBuilder::on(&picture)
        .caption(&plot.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(range, 0.0..top.max(1e-9))?;
    let name_x = |x: &f64| match &plot.shape {
        Shape::Bars(groups) if (x - x.round()).abs() < 0.01 => {
            groups.get(x.round() as usize).map_or(String::new(), |g| (*g).to_string())
        }
        Shape::Bars(_) => String::new(),
        Shape::Windows if (x - x.round()).abs() < 0.01 => format!("{}", x.round().exp2()),
        Shape::Windows => String::new(),
        _ => short(*x),
    };
    let labels = match &plot.shape {
        Shape::Bars(groups) => groups.len() + 1,
        Shape::Windows => (high - low) as usize + 1,
        _ => 10,
    };
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(plot.x)
        .y_desc(plot.y)
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13));
    mesh.x_labels(labels).y_labels(8).x_label_formatter(&name_x).y_label_formatter(&|y| short(*y));
    mesh.bold_line_style(GREY).light_line_style(WHITE).axis_style(BLACK).draw()?;

    for (i, (name, points)) in plot.series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let at: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (place(x), y)).collect();
        match &plot.shape {
            Shape::Bars(_) => {
                let width = 0.8 / plot.series.len() as f64;
                chart.draw_series(at.iter().map(|&(x, y)| {
                    let left = x - 0.4 + width * i as f64;
                    Rectangle::new([(left, 0.0), (left + width * 0.92, y)], colour.filled())
                }))?;
            }
            shape => {
                if *shape != Shape::Points {
                    chart
                        .draw_series(LineSeries::new(at.iter().copied(), colour.stroke_width(2)))?;
                }
                if at.len() < 60 {
                    chart.draw_series(at.iter().map(|&p| Circle::new(p, 3, colour.filled())))?;
                }
            }
        }
        let y = 46 + 24 * i as i32;
        legend.draw(&Rectangle::new([(4, y), (18, y + 12)], colour.filled()))?;
        legend.draw(&Text::new(name.clone(), (24, y), ("sans-serif", 14)))?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_drawn() {
        for shape in [Shape::Lines, Shape::Windows, Shape::Points, Shape::Bars(vec!["a", "b"])] {
            let series = vec![("some".to_string(), vec![(1.0, 10.0), (2.0, 20.0)])];
            let plot = Plot { name: "n", title: "title".into(), x: "x", y: "y", shape, series };
            let mut svg = String::new();
            paint(&plot, &mut svg).unwrap();
            assert!(svg.starts_with("<svg") && svg.contains("some") && svg.contains("</svg>"));
        }
    }
}
