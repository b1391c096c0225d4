//! The papers' claims, judged by the numbers of our figures. A later measurement may change a
//! verdict.

mod hpdc;
mod others;

use super::figures::Source;
use super::panel::{Panel, Point};
use super::shown::{self, Shown};
use ui::number::{Spread, closely, number};

pub struct Claim {
    pub number: u32,
    pub text: &'static str,
    /// The figure whose numbers decide. Empty: none of our figures can.
    pub figure: &'static str,
    judge: fn(&[Panel]) -> Option<Judgement>,
    /// Reason why it was not reproduced, or cannot be decided here.
    pub why: &'static str,
}

/// Whether the claim holds, and the numbers that show it.
pub struct Judgement {
    pub holds: bool,
    pub seen: String,
}

impl Claim {
    /// Judge the claim. None: its figure was not measured, or lacks the numbers that decide.
    pub fn judgement(&self, list: &[Shown]) -> Option<Judgement> {
        let shown = list.iter().find(|s| s.figure.name == self.figure)?;
        (self.judge)(&shown.panels)
    }
}

/// Return the claims that a figure decides.
pub fn of(figure: &str) -> impl Iterator<Item = &'static Claim> {
    claims().map(|(_, claim)| claim).filter(move |c| c.figure == figure)
}

/// Ways of running that represent lissom at its default, in order of preference.
const LISSOM: [&str; 2] = ["auto", "user"];

/// Return the medians of the series `name`, by place. `lissom` means the first series of `LISSOM`
/// that the panel has.
fn series<'a>(panel: &'a Panel, name: &str) -> Option<Vec<(&'a str, f64)>> {
    let names = panel.names();
    let wanted: &[&str] = if name == "lissom" { &LISSOM } else { &[name] };
    let series = wanted.iter().find_map(|w| panel.series.iter().find(|s| s.name == *w))?;
    let point = |p: &Point| Some((names.get(p.x as usize)?.as_str(), p.median));
    Some(series.points.iter().filter_map(point).collect())
}

fn titled<'a>(panels: &'a [Panel], title: &str) -> Option<&'a Panel> {
    panels.iter().find(|p| p.title.starts_with(title))
}

fn value(panel: &Panel, name: &str, place: &str) -> Option<f64> {
    series(panel, name)?.into_iter().find(|(n, _)| *n == place).map(|(_, v)| v)
}

/// Return the medians of the series `name`.
fn values(panel: &Panel, name: &str) -> Option<Vec<f64>> {
    Some(series(panel, name)?.into_iter().map(|(_, v)| v).collect())
}

/// Return the medians of the series `name` in all panels.
fn all(panels: &[Panel], name: &str) -> Vec<f64> {
    panels.iter().filter_map(|p| values(p, name)).flatten().collect()
}

fn most(values: &[f64]) -> Option<f64> {
    Spread::of(values).map(|s| s.most)
}

fn least(values: &[f64]) -> Option<f64> {
    Spread::of(values).map(|s| s.least)
}

fn geometric(values: &[f64]) -> Option<f64> {
    shown::geometric(values.iter().copied()).map(|s| s.median)
}

fn judged(holds: bool, seen: String) -> Option<Judgement> {
    Some(Judgement { holds, seen })
}

/// Return the ratios of a series to another, where both have a point.
fn ratios(panel: &Panel, name: &str, base: &str) -> Option<Vec<f64>> {
    let base = series(panel, base)?;
    let of = |(place, value): &(&str, f64)| {
        base.iter().find(|b| b.0 == *place && b.1 > 0.0).map(|b| value / b.1)
    };
    Some(series(panel, name)?.iter().filter_map(of).collect())
}

/// Return the geometric mean of `ratios`.
fn mean_ratio(panel: &Panel, name: &str, base: &str) -> Option<f64> {
    geometric(&ratios(panel, name, base)?)
}

/// Judge whether lissom's times in all panels are near the bound.
fn near_bound(panels: &[Panel], limit: f64) -> Option<Judgement> {
    at_most(geometric(&all(panels, "lissom")), limit, "{} x bound, geometric mean")
}

fn at_most(of: Option<f64>, limit: f64, what: &str) -> Option<Judgement> {
    let of = of?;
    judged(of <= limit, what.replace("{}", &number(of)))
}

fn at_least(of: Option<f64>, limit: f64, what: &str) -> Option<Judgement> {
    let of = of?;
    judged(of >= limit, what.replace("{}", &closely(of)))
}

/// All claims, by number.
const BY_SOURCE: [(Source, &[Claim]); 4] = [
    (Source::Hpdc, hpdc::CLAIMS),
    (Source::Apple, others::APPLE),
    (Source::Smt, others::SMT),
    (Source::Em, others::EM),
];

/// Return all claims, by number, with their sources.
pub fn claims() -> impl Iterator<Item = (Source, &'static Claim)> {
    BY_SOURCE.into_iter().flat_map(|(source, list)| list.iter().map(move |c| (source, c)))
}

#[cfg(test)]
mod tests {
    use super::super::figures;
    use super::*;

    #[test]
    fn there_are_31_and_each_names_a_figure() {
        assert!(claims().map(|(_, c)| c.number).eq(1..=31));
        for (_, claim) in claims() {
            let is_open = claim.figure.is_empty();
            assert!(is_open || figures::all().any(|f| f.name == claim.figure), "{}", claim.figure);
            assert!(!is_open || !claim.why.is_empty());
        }
    }

    #[test]
    fn locks_that_pause_decide_on_sensitivity() {
        let mut panel = Panel::new("scans of waiting threads", "lock", "", false);
        panel.row("mcs", [("sensitivity %", 99.98)]);
        panel.row("mcs-bare", [("sensitivity %", 80.0)]);
        let judgement = (hpdc::CLAIMS[19].judge)(&[panel]).expect("a judgement");
        assert!(judgement.holds);
        assert_eq!(judgement.seen, "at least 99.98 %, 80.0 % without `pause`");
    }

    #[test]
    fn numbers_decide() {
        let panel = |last: f64| {
            let mut panel = Panel::new("yield", "threads", "us", false);
            for (threads, value) in [("1", 1.0), ("2", 2.4), ("64", last)] {
                panel.row(threads, [("native", value)]);
            }
            vec![panel]
        };
        let holds = |last| (hpdc::CLAIMS[0].judge)(&panel(last)).map(|j| j.holds);
        assert_eq!((holds(2.5), holds(9.0)), (Some(true), Some(false)));
        assert!((hpdc::CLAIMS[0].judge)(&[]).is_none());
    }
}
