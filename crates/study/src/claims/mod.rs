//! The papers' claims, judged by the numbers of our figures. A later measurement may change a
//! verdict.

mod hpdc;
mod others;

use super::figures::Source;
use super::panel::{Panel, Places};
use super::shown::Shown;
use ui::number::{closely, number};

pub struct Claim {
    pub number: u32,
    pub source: Source,
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

pub enum Verdict {
    Yes(String),
    No(String),
    /// The figure was not measured, or lacks the numbers that decide.
    Open,
}

impl Claim {
    pub fn verdict(&self, list: &[Shown]) -> Verdict {
        let panels = list.iter().find(|s| s.figure.name == self.figure).map(|s| &s.panels[..]);
        match panels.and_then(self.judge) {
            Some(Judgement { holds: true, seen }) => Verdict::Yes(seen),
            Some(Judgement { holds: false, seen }) => Verdict::No(seen),
            None => Verdict::Open,
        }
    }
}

/// Return the claims that a figure decides.
pub fn of(figure: &str) -> impl Iterator<Item = &'static Claim> {
    claims().filter(move |c| c.figure == figure)
}

/// Ways of running that represent lissom at its default, in order of preference.
const LISSOM: [&str; 2] = ["auto", "user"];

/// Return the medians of the series `name`, by place. `lissom` means the first series of `LISSOM`
/// that the panel has.
fn series<'a>(panel: &'a Panel, name: &str) -> Option<Vec<(&'a str, f64)>> {
    let Places::Names(names) = &panel.places else { return None };
    let wanted: &[&str] = if name == "lissom" { &LISSOM } else { &[name] };
    let series = wanted.iter().find_map(|w| panel.series.iter().find(|s| s.name == *w))?;
    let point = |p: &super::panel::Point| Some((names.get(p.x as usize)?.as_str(), p.median));
    Some(series.points.iter().filter_map(point).collect())
}

fn titled<'a>(panels: &'a [Panel], title: &str) -> Option<&'a Panel> {
    panels.iter().find(|p| p.title.starts_with(title))
}

fn value(panel: &Panel, name: &str, place: &str) -> Option<f64> {
    series(panel, name)?.into_iter().find(|(n, _)| *n == place).map(|(_, v)| v)
}

/// Return the medians of the series `name` in all panels.
fn all(panels: &[Panel], name: &str) -> Vec<f64> {
    panels.iter().filter_map(|p| series(p, name)).flatten().map(|(_, v)| v).collect()
}

fn geometric(values: &[f64]) -> Option<f64> {
    let positive: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
    (!positive.is_empty())
        .then(|| (positive.iter().map(|v| v.ln()).sum::<f64>() / positive.len() as f64).exp())
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().max_by(f64::total_cmp)
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().min_by(f64::total_cmp)
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

fn at_most(of: Option<f64>, limit: f64, what: &str) -> Option<Judgement> {
    let of = of?;
    judged(of <= limit, what.replace("{}", &number(of)))
}

fn at_least(of: Option<f64>, limit: f64, what: &str) -> Option<Judgement> {
    let of = of?;
    judged(of >= limit, what.replace("{}", &closely(of)))
}

/// Return all claims, by number.
pub fn claims() -> impl Iterator<Item = &'static Claim> {
    hpdc::CLAIMS.iter().chain(others::CLAIMS)
}

#[cfg(test)]
mod tests {
    use super::super::figures;
    use super::super::panel::{Point, Side};
    use super::*;

    #[test]
    fn there_are_31_and_each_names_a_figure() {
        assert!(claims().map(|c| c.number).eq(1..=31));
        for claim in claims() {
            let is_open = claim.figure.is_empty();
            assert!(is_open || figures::all().any(|f| f.name == claim.figure), "{}", claim.figure);
            assert!(!is_open || !claim.why.is_empty());
        }
    }

    #[test]
    fn locks_that_pause_decide_on_sensitivity() {
        let names = vec!["mcs".to_string(), "mcs-bare".into()];
        let mut panel = Panel::named("scans of waiting threads", "lock", "", names, false);
        panel.add("sensitivity %", Point::one(0.0, 99.98));
        panel.add("sensitivity %", Point::one(1.0, 80.0));
        let judgement = (hpdc::CLAIMS[19].judge)(&[panel]).expect("a judgement");
        assert!(judgement.holds);
        assert_eq!(judgement.seen, "at least 99.98 %, 80.0 % without `pause`");
    }

    #[test]
    fn numbers_decide() {
        let places = vec!["1".to_string(), "2".into(), "64".into()];
        let panel = |last: f64| {
            let mut panel = Panel::named("yield", "threads", "us", places.clone(), false);
            for (i, value) in [1.0, 2.4, last].into_iter().enumerate() {
                panel.add("native", Point { side: Side::Exact, ..Point::one(i as f64, value) });
            }
            vec![panel]
        };
        let holds = |last| (hpdc::CLAIMS[0].judge)(&panel(last)).map(|j| j.holds);
        assert_eq!((holds(2.5), holds(9.0)), (Some(true), Some(false)));
        assert!((hpdc::CLAIMS[0].judge)(&[]).is_none());
    }
}
