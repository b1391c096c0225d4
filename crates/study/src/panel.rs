//! Numbers of a figure: one or several panels. Each is drawn as a plot (plot.rs) and printed as a
//! table (text.rs, page.rs).

use serde::Serialize;

use ui::number::Spread;

#[derive(Serialize)]
pub struct Panel {
    pub title: String,
    /// Title of the axis of its places: "threads", "program".
    pub x: String,
    pub y: String,
    pub places: Places,
    pub shape: Shape,
    pub scale: Scale,
    /// Value with which ratios are compared: 1. None: the values are no ratios.
    pub reference: Option<f64>,
    pub series: Vec<Series>,
}

/// Positions of points on the axis.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Places {
    /// Side by side: a point's x is the index of its name.
    Names(Vec<String>),
    Numbers,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    Lines,
    Bars,
    Dots,
    /// No plot: a table is enough.
    Table,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    Linear,
    Log,
}

#[derive(Serialize)]
pub struct Series {
    pub name: String,
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Point {
    pub x: f64,
    pub median: f64,
    pub least: f64,
    pub most: f64,
    pub side: Side,
}

/// Whether a value is exact, or a limit because a run was too slow to finish.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Exact,
    /// The true value is this or more.
    AtLeast,
    /// The true value is this or less.
    AtMost,
}

impl From<Spread> for Point {
    fn from(value: Spread) -> Point {
        let Spread { median, least, most } = value;
        Point { x: 0.0, median, least, most, side: Side::Exact }
    }
}

impl From<f64> for Point {
    fn from(value: f64) -> Point {
        Spread { median: value, least: value, most: value }.into()
    }
}

impl Panel {
    /// Create a panel for `row`. If `is_ratio`, its scale is logarithmic, and its reference is 1.
    pub fn new(title: &str, x: &str, y: &str, is_ratio: bool) -> Panel {
        Panel {
            title: title.into(),
            x: x.into(),
            y: y.into(),
            places: Places::Names(vec![]),
            shape: Shape::Bars,
            scale: if is_ratio { Scale::Log } else { Scale::Linear },
            reference: is_ratio.then_some(1.0),
            series: Vec::new(),
        }
    }

    pub fn with(self, shape: Shape, scale: Scale) -> Panel {
        Panel { shape, scale, ..self }
    }

    /// Return the names on the axis. Empty: it has numbers.
    pub fn names(&self) -> &[String] {
        match &self.places {
            Places::Names(names) => names,
            Places::Numbers => &[],
        }
    }

    /// Add a name to the axis, and the points there, each with the name of its series.
    pub fn row<S: AsRef<str>, P: Into<Point>>(
        &mut self,
        name: &str,
        points: impl IntoIterator<Item = (S, P)>,
    ) {
        let Places::Names(names) = &mut self.places else { return };
        let x = names.len() as f64;
        names.push(name.into());
        for (series, point) in points {
            self.add(series.as_ref(), Point { x, ..point.into() });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|s| s.points.is_empty())
    }

    /// Add a point to a series. Creates the series if there is none of that name.
    pub fn add(&mut self, series: &str, point: Point) {
        match self.series.iter_mut().find(|s| s.name == series) {
            Some(series) => series.points.push(point),
            None => self.series.push(Series { name: series.into(), points: vec![point] }),
        }
    }

    /// Return the point of `series` at the name with index `place`.
    pub fn at(&self, series: &Series, place: usize) -> Option<Point> {
        series.points.iter().copied().find(|p| p.x == place as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_made_as_points_come() {
        let mut panel = Panel::new("t", "program", "x bound", true);
        assert!(panel.is_empty());
        panel.row("a", [("native", 2.0)]);
        panel.row("b", [("native", 8.0), ("user", 1.0)]);
        assert_eq!(panel.names(), ["a", "b"]);
        assert_eq!(panel.series.len(), 2);
        assert_eq!(panel.at(&panel.series[0], 1).map(|p| p.median), Some(8.0));
        assert_eq!(panel.at(&panel.series[1], 0), None);
    }
}
