//! The figures. Each has a measurement, a description, and perhaps published numbers.

mod apple;
mod em;
mod hpdc;
mod hpdc_detection;
mod hpdc_memcached;
mod hpdc_resize;
mod hpdc_view;
mod idle;
mod own;
mod smt;

use itertools::Itertools as _;
use serde_json::Value;

use super::measurements::{self, Measurement};
use super::panel::Panel;
use super::read::Report;

/// Origin of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Hpdc,
    Smt,
    Em,
    Apple,
    Own,
}

pub const SOURCES: [Source; 5] =
    [Source::Hpdc, Source::Smt, Source::Em, Source::Apple, Source::Own];

impl Source {
    /// Return the prefix of its figures' names.
    pub fn name(self) -> &'static str {
        match self {
            Source::Hpdc => "hpdc",
            Source::Smt => "smt",
            Source::Em => "em",
            Source::Apple => "apple",
            Source::Own => "own",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Source::Hpdc => "Virtual blocking and busy-waiting detection",
            Source::Smt => "Idle polling",
            Source::Em => "Elasticity between programs",
            Source::Apple => "Adaptive pause-loop windows",
            Source::Own => "Beyond the papers",
        }
    }

    /// Return the paper that its figures reproduce.
    pub fn citation(self) -> &'static str {
        match self {
            Source::Hpdc => {
                "H. Huang, J. Rao, S. Wu, H. Jin, H. Jiang, H. Che, X. Wu: Towards Exploiting CPU \
                 Elasticity via Efficient Thread Oversubscription, HPDC 2021. There: 8 cores of an \
                 Intel Xeon with 2.1 GHz, Linux 5.1, PARSEC 3.0, SPLASH-2 and NPB with 8 and with \
                 32 threads"
            }
            Source::Smt => {
                "Y. Wang, R. Li, Z. Huang, X. Zhou: An In-depth Analysis of System-level \
                 Techniques for Simultaneous Multi-threaded Processors in Clouds, HP3C 2020. \
                 There: virtual machines under KVM; here: processes, and the policies of lissom's \
                 idle slots"
            }
            Source::Em => {
                "J. Rubio, C. Bilbao, J. C. Saez, M. Prieto-Matias: Exploiting Elasticity via \
                 OS-Runtime Cooperation to Improve CPU Utilization in Multicore Systems, PDP 2024"
            }
            Source::Apple => {
                "J. Shan, X. Ding, N. Gehani: APPLE: Addressing Lock Holder Preemption Problem \
                 with High Efficiency. There: 16 cores of Intel Xeon, Linux 3.19 with KVM, VMs of \
                 16 vCPUs. Here: a simulation (docs/operate/kvm-simulation.md)"
            }
            Source::Own => "Questions of users that the papers do not answer",
        }
    }
}

/// Numbers that a paper states, drawn beside ours: a table as in the paper.
pub struct Published {
    /// Each column is a series of a panel: the panel's title, and the name of the series.
    pub columns: &'static [(&'static str, &'static str)],
    /// Numbers of the columns, by name on the panel's axis; a name that we did not measure is
    /// added. The last columns may be missing.
    pub rows: &'static [(&'static str, &'static [f64])],
}

pub struct Figure {
    /// "SOURCE-figN" or "SOURCE-tableN", the number in the paper. "own-..." if there is no paper.
    pub name: &'static str,
    pub title: &'static str,
    pub measurement: &'static str,
    /// The content of the paper's figure, in our words. Empty: no paper.
    pub paper: &'static str,
    /// The content of the figure.
    pub shows: &'static str,
    /// The paper's statement in words. Empty: the paper states only `published`.
    pub stated: &'static str,
    pub published: &'static [Published],
    /// How programs, method or parameters differ from the paper's, if there is one.
    pub differs: &'static str,
    /// The axis that is real on a small machine, and what to expect elsewhere.
    pub elsewhere: &'static str,
    pub view: View,
}

/// Makes the panels of a figure from the report of its measurement.
pub enum View {
    /// The report consists of groups of programs, or of watched programs.
    Groups(fn(&Report) -> Vec<Panel>),
    Json(fn(&Value) -> anyhow::Result<Vec<Panel>>),
}

pub fn all() -> impl Iterator<Item = &'static Figure> {
    let papers = [hpdc::FIGURES, smt::FIGURES, em::FIGURES, apple::FIGURES];
    let ours = [own::FIGURES, hpdc::OWN, idle::OWN, em::OWN, apple::OWN];
    papers.into_iter().chain(ours).flatten()
}

impl Figure {
    /// A figure without contents.
    pub const EMPTY: Figure = Figure {
        name: "",
        title: "",
        measurement: "",
        paper: "",
        shows: "",
        stated: "",
        published: &[],
        differs: "",
        elsewhere: "",
        view: View::Groups(|_| vec![]),
    };

    pub fn source(&self) -> Source {
        SOURCES.into_iter().find(|s| self.name.starts_with(s.name())).unwrap_or(Source::Own)
    }

    /// Return whether `name` selects this figure: its own name, its source's, or `all`.
    pub fn is_called(&self, name: &str) -> bool {
        [self.name, self.source().name(), "all"].contains(&name)
    }

    /// Return the number in the paper, "Fig. 2" or "Table 1". Empty: no paper.
    pub fn number(&self) -> String {
        let number = self.name.split_once('-').map_or("", |(_, number)| number);
        match (number.strip_prefix("fig"), number.strip_prefix("table")) {
            _ if self.paper.is_empty() => String::new(),
            (Some(n), _) => format!("Fig. {n}"),
            (_, Some(n)) => format!("Table {n}"),
            _ => String::new(),
        }
    }

    pub fn panels(&self, report: &Value) -> anyhow::Result<Vec<Panel>> {
        let mut panels = match self.view {
            View::Groups(view) => view(&Report::of(report)?),
            View::Json(view) => view(report)?,
        };
        panels.retain(|p| !p.is_empty());
        Ok(panels)
    }

    pub fn measurement(&self) -> &'static Measurement {
        // A test checks that it exists.
        measurements::find(self.measurement).expect("a measurement")
    }
}

/// Check that `name` selects figures. The error suggests names.
pub fn checked(name: &str) -> Result<String, String> {
    if all().any(|f| f.is_called(name)) {
        return Ok(name.into());
    }
    let close = all().map(|f| f.name).filter(|n| n.contains(name) && !name.is_empty()).join(", ");
    let hint = if close.is_empty() { String::new() } else { format!("; did you mean {close}?") };
    Err(format!(
        "there is no figure {name}{hint}; `lissom study list` prints all names, and hpdc, smt, em, \
         apple, own and all select several"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_say_where_they_come_from() {
        assert!(all().map(|f| f.name).all_unique());
        for figure in all() {
            assert!(figure.name.starts_with(figure.source().name()), "{}", figure.name);
            assert!(!figure.shows.is_empty() && !figure.elsewhere.is_empty(), "{}", figure.name);
            // A figure of ours has no number, and one of a paper has that paper's.
            let is_own = figure.source() == Source::Own;
            assert_eq!(is_own, figure.number().is_empty(), "{}", figure.name);
            assert!(is_own || !figure.differs.is_empty(), "{}", figure.name);
        }
    }

    #[test]
    fn every_measurement_is_shown_and_every_figure_measured() {
        for figure in all() {
            assert_eq!(figure.measurement().name, figure.measurement);
        }
        for measurement in measurements::MEASUREMENTS {
            assert!(all().any(|f| f.measurement == measurement.name), "{}", measurement.name);
        }
    }

    #[test]
    fn a_report_without_anything_is_no_error() {
        for figure in all() {
            let panels = figure.panels(&serde_json::json!({ "groups": [], "mixes": [] }));
            assert!(panels.is_ok_and(|p| p.is_empty()), "{}", figure.name);
        }
    }

    #[test]
    fn names_mean_figures() {
        let count = |name| all().filter(|f| f.is_called(name)).count();
        assert_eq!((count("hpdc-fig2"), count("apple")), (1, 6));
        assert!(count("all") > 30);
        assert_eq!(checked("apple").as_deref(), Ok("apple"));
        assert!(checked("fig2").is_err_and(|e| e.contains("did you mean hpdc-fig2")));
        assert!(checked("").is_err());
    }
}
