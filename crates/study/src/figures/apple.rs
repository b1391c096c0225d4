//! Adaptive pause-loop exiting, by the simulation, which creates plots itself.

use serde::Deserialize;
use serde_json::Value;

use super::super::panel::{Panel, Places, Point, Scale, Series, Shape};
use super::super::read::list;
use super::View::Json;
use super::{Figure, Published};

const ELSEWHERE: &str = "Everything is simulated, on any machine: a host of 16 CPUs with VMs of 16 \
                         vCPUs. The model is calibrated with one measurement. Its absolute numbers \
                         are not those of a real host.";

const DIFFERS: &str = "A simulation: guests are modelled, not run.";

const FIGURE: Figure =
    Figure { differs: DIFFERS, elsewhere: ELSEWHERE, view: Json(view), ..Figure::EMPTY };

pub const FIGURES: &[Figure] = &[
    Figure {
        name: "apple-fig1",
        paper: "dbench and streamcluster in 2 VMs with fixed windows, relative to KVM's default",
        title: "Throughput by fixed window",
        measurement: "apple-1",
        shows: "Throughput of each guest by window. Each guest has a best window, and the best \
                windows differ.",
        stated: "dbench has 0.81 to 1.39 times the default's throughput, best at 8192. \
                 streamcluster has 0.90 to 1.16, best at 16384.",
        published: &[
            Published { columns: &[("", "published, dbench")], rows: &[("8192", &[1.39])] },
            Published { columns: &[("", "published, streamcluster")], rows: &[("16384", &[1.16])] },
        ],
        ..FIGURE
    },
    Figure {
        name: "apple-fig3",
        paper: "six programs in 2 VMs: KVM's default, APPLE, best and worst fixed window",
        title: "APPLE and fixed windows, 2 VMs",
        measurement: "apple-3",
        shows: "How close the adaptive window comes to the best fixed one. `steady` is a setting \
                of ours (docs/operate/kvm-simulation.md).",
        stated: "APPLE has a mean of 1.21, the best fixed window of 1.23. dedup gains 68 %. The \
                 worst fixed window is 27 % below the best on average, and up to 42 % (dbench).",
        published: &[Published {
            columns: &[("", "published, APPLE"), ("", "published, best fixed")],
            rows: &[("dedup", &[1.68]), ("geometric mean", &[1.21, 1.23])],
        }],
        ..FIGURE
    },
    Figure {
        name: "apple-fig4",
        paper: "the same as Fig. 3, with 4 VMs",
        title: "APPLE and fixed windows, 4 VMs",
        measurement: "apple-4",
        shows: "The same as apple-fig3, with twice the overcommitment.",
        stated: "APPLE has a mean of 1.03, the best fixed window of 1.09. raytrace gains 8 %.",
        published: &[Published {
            columns: &[("", "published, APPLE"), ("", "published, best fixed")],
            rows: &[("raytrace", &[1.08]), ("geometric mean", &[1.03, 1.09])],
        }],
        ..FIGURE
    },
    Figure {
        name: "apple-fig5",
        paper: "mean inefficiency of dbench in 2 VMs by window, with the default and with APPLE",
        title: "dbench's inefficiency",
        measurement: "apple-5",
        shows: "How much time spins and switches waste, by window.",
        stated: "Inefficiency falls up to a window of 8192 and rises beyond it. APPLE halves the \
                 default's inefficiency.",
        ..FIGURE
    },
    Figure {
        name: "apple-fig6",
        paper: "the window over epochs by KVM's own rule, dbench, 2 VMs",
        title: "The window by KVM's own rule",
        measurement: "apple-6",
        shows: "The mean window of the first VM's vCPUs after each 1000 PLE exits.",
        stated: "The window swings between 4096 and 25,000 over some 1900 epochs.",
        ..FIGURE
    },
    Figure {
        name: "apple-fig7",
        paper: "the same as Fig. 6, under APPLE",
        title: "The window under APPLE",
        measurement: "apple-7",
        shows: "APPLE's window (T) of the first VM after each 1000 PLE exits.",
        stated: "The window stays near 8192 over some 900 epochs.",
        ..FIGURE
    },
];

pub const OWN: &[Figure] = &[
    Figure {
        name: "own-ple-rules",
        title: "Rules for the pause-loop window on today's scheduler",
        measurement: "ple-rules",
        shows: "Settings of APPLE, and KVM's default, relative to the best fixed window. The host \
                has the EEVDF scheduler and 4 VMs; the guests are those whose locks differ most.",
        ..FIGURE
    },
    Figure {
        name: "own-ple-one-vm",
        title: "The pause-loop window without overcommitment",
        measurement: "ple-one-vm",
        shows: "One VM has the host to itself: the window hardly matters.",
        ..FIGURE
    },
    Figure {
        name: "own-ple-change",
        title: "The pause-loop window while the work changes",
        measurement: "ple-change",
        shows: "The window follows the guest's work.",
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
    let plots = figures.iter().flat_map(|f| list(f, "plots"));
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
        points: points.into_iter().map(|(x, y)| Point { x: place(x), ..y.into() }).collect(),
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
        assert_eq!(panels[0].names(), ["512", "2048"]);
        assert_eq!(panels[0].series[0].points[1].x, 1.0);
    }
}
