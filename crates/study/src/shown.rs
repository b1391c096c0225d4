//! Contents of all renderings of a study: its figures with their panels, and sentences about them.

use itertools::Itertools as _;
use serde_json::Value;

use super::claims;
use super::figures::{self, Figure, Published};
use super::measurements;
use super::panel::{Panel, Places, Point, Side};
use super::read;
use super::store::{Measured, State, Study};
use ui::number::{self, Spread, closely, number};

/// A figure with its measurement.
pub struct Shown<'a> {
    pub figure: &'static Figure,
    /// None: not measured yet.
    pub measured: Option<&'a Measured>,
    pub panels: Vec<Panel>,
}

/// Return the wanted figures, in order.
pub fn shown<'a>(study: &'a Study, wanted: impl Fn(&Figure) -> bool) -> Vec<Shown<'a>> {
    let wanted = figures::all().filter(|f| wanted(f));
    wanted
        .map(|figure| {
            let measured = study.measured.get(figure.measurement);
            let panels = measured.map(|m| figure.panels(&m.report)).and_then(Result::ok);
            let mut panels = panels.unwrap_or_default();
            figure.published.iter().for_each(|p| add_published(&mut panels, p));
            Shown { figure, measured, panels }
        })
        .collect()
}

/// Add numbers of a paper as series to the panels of these titles, or to the first panel if the
/// title is empty.
fn add_published(panels: &mut [Panel], published: &Published) {
    for (i, (title, series)) in published.columns.iter().enumerate() {
        let is_wanted = |p: &&mut Panel| title.is_empty() || p.title == *title;
        let Some(panel) = panels.iter_mut().find(is_wanted) else { continue };
        for (name, values) in published.rows {
            let (Places::Names(names), Some(value)) = (&mut panel.places, values.get(i)) else {
                continue;
            };
            let place = names.iter().position(|n| n == name).unwrap_or_else(|| {
                names.push((*name).into());
                names.len() - 1
            });
            panel.add(series, Point { x: place as f64, ..Point::from(*value) });
        }
    }
}

impl Shown<'_> {
    /// Return a sentence for each claim of the paper that does not hold.
    pub fn contradictions(&self) -> Vec<String> {
        let line = |claim: &claims::Claim| {
            let judgement = claim.judgement(std::slice::from_ref(self)).filter(|j| !j.holds)?;
            let why = if claim.why.is_empty() { "unexplained" } else { claim.why };
            Some(format!("{}: not so here, {}. {why}", claim.text, judgement.seen))
        };
        claims::of(self.figure.name).filter_map(line).collect()
    }

    /// Return the panels with ratios.
    fn ratios(&self) -> impl Iterator<Item = &Panel> {
        self.panels.iter().filter(|p| p.reference.is_some())
    }

    /// Return a sentence for each kind of ratio: the geometric mean of each series over all panels.
    pub fn findings(&self) -> Vec<String> {
        let line = |unit: &String| {
            let panels = || self.ratios().filter(|p| p.y == *unit);
            let mean = |name: &String| {
                let series = panels().flat_map(|p| &p.series).filter(|s| s.name == *name);
                let medians: Vec<f64> =
                    series.flat_map(|s| &s.points).map(|p| p.median).filter(|m| *m > 0.0).collect();
                let mean = geometric(medians.iter().copied())?;
                let range = match medians.len() {
                    1 => String::new(),
                    _ => format!(" ({}-{})", number(mean.least), number(mean.most)),
                };
                Some(format!("{name} {}{range}", number(mean.median)))
            };
            let names = panels().flat_map(|p| &p.series).map(|s| &s.name).unique();
            let means = names.filter(|n| !n.starts_with("published")).filter_map(mean).join(", ");
            (!means.is_empty()).then(|| format!("{unit}: {means}"))
        };
        self.ratios().map(|p| &p.y).unique().filter_map(line).collect()
    }

    /// Return why data are missing or doubtful.
    pub fn warnings(&self) -> Vec<String> {
        let Some(measured) = self.measured else {
            return vec![format!("Not measured: lissom study run {}", self.figure.name)];
        };
        let mut list = Vec::new();
        match measured.state {
            State::Ok | State::Failed => {}
            State::Partly => list
                .push("Something in it failed or was too slow; its own report says what.".into()),
            State::Interrupted => {
                list.push("It was interrupted: what was complete is shown.".into());
            }
        }
        list.extend(measured.error.clone());
        for field in ["noise", "notes"] {
            let notes = read::list(&measured.report, field).iter();
            list.extend(notes.filter_map(Value::as_str).map(String::from));
        }
        if self.panels.is_empty() && list.is_empty() {
            list.push("What was measured has nothing for this figure.".into());
        }
        if let Some(measurement) = measurements::find(self.figure.measurement) {
            list.extend(measured.age(measurement.code));
        }
        if measured.quick {
            list.push("A quick look: few rounds and little work.".into());
        }
        list
    }
}

/// Return the geometric mean of the positive values as the median, with the extremes.
pub fn geometric(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let positive: Vec<f64> = values.filter(|v| *v > 0.0).collect();
    let mean = positive.iter().map(|v| v.ln()).sum::<f64>() / positive.len() as f64;
    Some(Spread { median: mean.exp(), ..Spread::of(&positive)? })
}

/// Format a point for a table.
pub fn cell(point: Option<Point>, with_spread: bool) -> String {
    let Some(p) = point else { return "-".into() };
    let sign = match p.side {
        Side::Exact => "",
        Side::AtLeast => ">=",
        Side::AtMost => "<=",
    };
    if with_spread && p.side == Side::Exact && p.least != p.most {
        number::spread(&Spread { median: p.median, least: p.least, most: p.most })
    } else {
        format!("{sign}{}", closely(p.median))
    }
}

/// A name, and a point of each series.
pub type Row<'a> = (&'a str, Vec<Option<Point>>);

/// Return the rows of a panel's table. None: its places are numbers, of which there are too many.
pub fn rows(panel: &Panel) -> Option<Vec<Row<'_>>> {
    let Places::Names(names) = &panel.places else { return None };
    let points = |i| panel.series.iter().map(|s| panel.at(s, i)).collect();
    Some(names.iter().enumerate().map(|(i, name)| (name.as_str(), points(i))).collect())
}

/// Cut the name to at most `most` characters.
pub fn cut(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.into();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// Format a day like 2026-11-24.
pub fn day(time: u64) -> String {
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + std::time::Duration::from_secs(time))
        .to_string()
        .chars()
        .take(10)
        .collect()
}

/// Describe the machine: "2 CPUs, AMD EPYC, a virtual machine, Linux 6.18, glibc 2.36".
pub fn machine(machine: &Value) -> String {
    let text = |field: &str| machine[field].as_str().unwrap_or("?").to_string();
    let kind = if machine["virtual_machine"] == true { ", a virtual machine" } else { "" };
    let cpus = &machine["cpus"];
    format!(
        "{cpus} CPUs, {}{kind}, Linux {}, glibc {}",
        text("cpu_model"),
        text("kernel"),
        text("glibc")
    )
}

/// Summarize all figures that are relative to the bound in a few sentences: the cost of more
/// threads than CPUs, the gain by lissom, and what to run.
pub fn summary_lines(list: &[Shown]) -> Vec<String> {
    let of = |figure: &str, names: &[&str]| {
        let shown = list.iter().find(|s| s.figure.name == figure)?;
        let series = shown.ratios().flat_map(|p| &p.series);
        let wanted = series.filter(|s| names.contains(&s.name.as_str()));
        geometric(wanted.flat_map(|s| &s.points).map(|p| p.median))
    };
    let mut lines = Vec::new();
    for (figure, what) in [
        ("own-programs", "Whole programs with four times as many threads as CPUs"),
        ("own-threads", "Barriers, condition variables and queues with up to 1024 threads"),
        ("hpdc-fig13", "Tokens passed among spin locks by 8 threads"),
    ] {
        let (Some(native), Some(ours)) = (of(figure, &["native"]), of(figure, &["auto", "user"]))
        else {
            continue;
        };
        lines.push(format!(
            "{what} take {} times as long as with as many threads as CPUs natively (at most {}), \
             and {} times under lissom (at most {}).",
            number(native.median),
            number(native.most),
            number(ours.median),
            number(ours.most)
        ));
    }
    let all = claims::claims().count();
    let judged: Vec<_> = claims::claims().filter_map(|(_, c)| c.judgement(list)).collect();
    if !judged.is_empty() {
        let yes = judged.iter().filter(|j| j.holds).count();
        let (no, open) = (judged.len() - yes, all - judged.len());
        lines.push(format!(
            "Of the papers' {all} claims, {yes} hold here, {no} do not, {open} are open."
        ));
    }
    if !lines.is_empty() {
        lines.push(
            "To run a program of yours so: `lissom run -- CMD`; to measure it: `lissom \
                    bench -- CMD`."
                .into(),
        );
    }
    lines
}

/// Describe rounds, load and code: ", 5 rounds, load 0.1 before, commit 0123456789ab".
pub fn source(m: &Measured) -> String {
    let mut text = String::new();
    if let Some(rounds) = m.rounds() {
        text += &format!(", {rounds} rounds");
    }
    if let Some(load) = m.machine["load"].as_f64() {
        text += &format!(", load {load:.1} before");
    }
    if let Some(commit) = &m.commit {
        let dirty = if m.dirty { " with changes" } else { "" };
        text += &format!(", commit {}{dirty}", commit.chars().take(12).collect::<String>());
    }
    text
}

#[cfg(test)]
pub mod tests {
    use super::super::store::Study;
    use super::*;
    use serde_json::json;

    #[test]
    fn findings_are_over_all_panels() {
        let mut study = Study::empty();
        let report = super::super::read::tests::report(&["barrier", "cond"], &[2, 8]);
        study.measured.insert("threads".into(), measured(report));
        let shown = shown(&study, |f| f.name == "own-threads");
        assert_eq!(
            shown[0].findings(),
            ["x bound: native 4.00 (4.00-4.00), user 1.50 (1.50-1.50)"]
        );
        assert!(shown[0].warnings().iter().any(|w| w.starts_with("A quick look")));
    }

    pub fn measured(report: Value) -> Measured {
        Measured {
            command: "lissom bench sync".into(),
            quick: true,
            version: "0".into(),
            commit: None,
            dirty: false,
            time: 1_790_000_000,
            seconds: 1.0,
            machine: json!({ "cpus": 2 }),
            state: State::Ok,
            error: None,
            report,
        }
    }

    #[test]
    fn what_was_not_measured_says_how() {
        let study = Study::empty();
        let all = shown(&study, |_| true);
        assert!(
            all.iter()
                .all(|s| s.panels.is_empty() && s.warnings()[0].contains("lissom study run "))
        );
    }

    #[test]
    fn cells() {
        let point = Point { least: 1.0, most: 3.0, ..Point::from(2.0) };
        assert_eq!(cell(Some(point), true), "2.00 1.00-3.00");
        assert_eq!(cell(Some(point), false), "2.00");
        assert_eq!(cell(Some(Point { side: Side::AtLeast, ..point }), true), ">=2.00");
        assert_eq!(cell(None, true), "-");
        assert_eq!(day(1_790_000_000), "2026-09-21");
    }
}
