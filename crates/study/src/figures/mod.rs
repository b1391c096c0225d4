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

use serde_json::Value;

use super::measurements::{MEASUREMENTS, Measurement};
use super::panel::Panel;

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

/// The figure or table of a paper that one of ours reproduces.
pub struct Paper {
    /// "Fig. 2", "Table 1".
    pub number: &'static str,
    /// The content of that figure, in our words.
    pub shows: &'static str,
}

/// Numbers that a paper states, drawn beside ours.
pub struct Published {
    /// The panel's title.
    pub panel: &'static str,
    pub series: &'static str,
    /// By name on the panel's axis; a name that we did not measure is added.
    pub points: &'static [(&'static str, f64)],
}

pub struct Figure {
    pub name: &'static str,
    pub source: Source,
    /// None: a figure of our own.
    pub paper: Option<Paper>,
    pub title: &'static str,
    pub measurement: &'static str,
    /// The content of the figure.
    pub shows: &'static str,
    /// The paper's statement in words. Empty: the paper states only `published`.
    pub stated: &'static str,
    pub published: &'static [Published],
    /// How programs, method or parameters differ from the paper's. Empty: no paper.
    pub differs: &'static str,
    /// The axis that is real on a small machine, and what to expect elsewhere.
    pub elsewhere: &'static str,
    pub view: fn(&Value) -> anyhow::Result<Vec<Panel>>,
}

pub fn all() -> impl Iterator<Item = &'static Figure> {
    let papers = [hpdc::FIGURES, smt::FIGURES, em::FIGURES, apple::FIGURES];
    let ours = [own::FIGURES, hpdc::OWN, idle::OWN, em::OWN, apple::OWN];
    papers.into_iter().chain(ours).flatten()
}

impl Figure {
    /// Return "Fig. 2", or an empty text for a figure of our own.
    pub fn number(&self) -> &'static str {
        self.paper.as_ref().map_or("", |p| p.number)
    }

    pub fn measurement(&self) -> &'static Measurement {
        // A test checks that it exists.
        MEASUREMENTS.iter().find(|m| m.name == self.measurement).expect("a measurement")
    }
}

/// Return the figures that `name` selects: a figure, a source, or `all`. The error suggests names.
pub fn named(name: &str) -> Result<Vec<&'static Figure>, String> {
    let list: Vec<_> =
        all().filter(|f| name == "all" || f.name == name || f.source.name() == name).collect();
    if !list.is_empty() {
        return Ok(list);
    }
    let close: Vec<&str> =
        all().map(|f| f.name).filter(|n| n.contains(name) && !name.is_empty()).collect();
    let hint = if close.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", close.join(", "))
    };
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
        let mut names: Vec<&str> = all().map(|f| f.name).collect();
        assert!(all().all(|f| f.name.starts_with(f.source.name())
            && !f.shows.is_empty()
            && !f.elsewhere.is_empty()));
        // A figure of ours has no number, and one of a paper has that paper's.
        for figure in all() {
            assert_eq!(figure.source == Source::Own, figure.paper.is_none(), "{}", figure.name);
            let Some(paper) = &figure.paper else { continue };
            let number = paper.number.to_lowercase().replace(". ", "").replace(' ', "");
            assert_eq!(figure.name, format!("{}-{number}", figure.source.name()));
            assert!(!paper.shows.is_empty() && !figure.differs.is_empty(), "{}", figure.name);
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_measurement_is_shown_and_every_figure_measured() {
        for figure in all() {
            assert_eq!(figure.measurement().name, figure.measurement);
        }
        for measurement in MEASUREMENTS {
            assert!(all().any(|f| f.measurement == measurement.name), "{}", measurement.name);
        }
    }

    #[test]
    fn a_report_without_anything_is_no_error() {
        for figure in all() {
            let panels = (figure.view)(&serde_json::json!({ "groups": [], "mixes": [] }));
            assert!(panels.is_ok_and(|p| p.iter().all(Panel::is_empty)), "{}", figure.name);
        }
    }

    #[test]
    fn names_mean_figures() {
        assert_eq!(named("hpdc-fig2").expect("one").len(), 1);
        assert_eq!(named("apple").expect("several").len(), 6);
        assert!(named("all").expect("all").len() > 30);
        assert!(named("fig2").is_err_and(|e| e.contains("did you mean hpdc-fig2")));
        assert!(named("").is_err());
    }
}
