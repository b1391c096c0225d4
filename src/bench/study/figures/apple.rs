//! Adaptive pause-loop exiting: from the simulation, which has plots of its own.

use serde::Deserialize;
use serde_json::Value;

use super::super::panel::{Panel, Places, Point, Scale, Series, Shape};
use super::{Figure, Source};

const ELSEWHERE: &str = "Everything is simulated: a host of 16 CPUs with VMs of 16 vCPUs, whatever this machine is. The \
                         model is calibrated with one measurement; its absolute numbers are its own.";

const FIGURE: Figure = Figure {
    name: "apple-fig1",
    source: Source::Apple,
    number: "Fig. 1",
    title: "Throughput by the pause-loop window",
    measurement: "apple-1",
    shows: "Each guest has a window that is best for it, and they are not the same.",
    published: "That no window is best for all.",
    elsewhere: ELSEWHERE,
    view,
};

pub const FIGURES: &[Figure] = &[
    FIGURE,
    Figure {
        name: "apple-fig3",
        number: "Fig. 3",
        title: "Inefficiency by the pause-loop window",
        measurement: "apple-3",
        shows: "Where spins and switches waste least, throughput is highest: a controller can go by what it sees.",
        published: "That inefficiency is low where throughput is high.",
        ..FIGURE
    },
    Figure {
        name: "apple-fig4",
        number: "Fig. 4",
        title: "APPLE against the best window",
        measurement: "apple-4",
        shows: "How near the adaptive window comes to the best fixed one.",
        published: "Within 5 % of the best fixed window.",
        ..FIGURE
    },
    Figure {
        name: "apple-fig5",
        number: "Fig. 5",
        title: "KVM's default against the best window",
        measurement: "apple-5",
        shows: "What KVM's own window, which doubles with each exit, leaves on the table.",
        published: "That KVM's default is not the best.",
        ..FIGURE
    },
    Figure {
        name: "apple-fig6",
        number: "Fig. 6",
        title: "Without overcommitment",
        measurement: "apple-6",
        shows: "A VM that has the host to itself: the window hardly matters.",
        published: "That it does no harm there.",
        ..FIGURE
    },
    Figure {
        name: "apple-fig7",
        number: "Fig. 7",
        title: "While the work changes",
        measurement: "apple-7",
        shows: "The window follows the guest's work, and the number of VMs changes which is best.",
        published: "That the window follows.",
        ..FIGURE
    },
];

#[derive(Deserialize)]
struct Plot {
    title: String,
    x: String,
    y: String,
    shape: PlotShape,
    series: Vec<(String, Vec<(f64, f64)>)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PlotShape {
    Lines,
    Windows,
    Points,
    Bars(Vec<String>),
}

fn view(report: &Value) -> anyhow::Result<Vec<Panel>> {
    let figures = report.as_array().map(Vec::as_slice).unwrap_or_default();
    let plots = figures.iter().flat_map(|f| f["plots"].as_array().cloned().unwrap_or_default());
    plots.map(|plot| Ok(panel(Plot::deserialize(plot)?))).collect()
}

fn panel(plot: Plot) -> Panel {
    let mut xs: Vec<f64> = plot.series.iter().flat_map(|s| &s.1).map(|p| p.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let (places, shape) = match plot.shape {
        PlotShape::Lines => (Places::Numbers, Shape::Lines),
        PlotShape::Points => (Places::Numbers, Shape::Dots),
        PlotShape::Windows => {
            (Places::Names(xs.iter().map(|x| x.to_string()).collect()), Shape::Lines)
        }
        PlotShape::Bars(names) => (Places::Names(names), Shape::Bars),
    };
    let named = shape == Shape::Lines && matches!(places, Places::Names(_));
    let place =
        |x: f64| if named { xs.iter().position(|v| *v == x).unwrap_or(0) as f64 } else { x };
    let series = plot.series.into_iter().map(|(name, points)| Series {
        name,
        points: points.into_iter().map(|(x, y)| Point::one(place(x), y)).collect(),
    });
    Panel {
        title: plot.title,
        x: plot.x,
        y: plot.y,
        places,
        shape,
        scale: Scale::Linear,
        reference: None,
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn windows_become_names() {
        let report = json!([{ "plots": [{ "title": "t", "x": "window", "y": "y", "shape": "windows",
            "series": [["a", [[512.0, 1.0], [2048.0, 2.0]]]] }] }]);
        let panels = view(&report).expect("a panel");
        assert!(matches!(&panels[0].places, Places::Names(n) if n == &["512", "2048"]));
        assert_eq!(panels[0].series[0].points[1].x, 1.0);
    }
}
