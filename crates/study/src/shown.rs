//! Contents of all renderings of a study: its figures with their panels, and sentences about them.

use serde_json::Value;

use super::claims::{self, Verdict};
use super::figures::{self, Figure, Published};
use super::measurements;
use super::panel::{Panel, Places, Point, Side};
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
            let panels =
                measured.map(|m| (figure.view)(&m.report)).and_then(Result::ok).unwrap_or_default();
            let mut panels: Vec<Panel> = panels.into_iter().filter(|p| !p.is_empty()).collect();
            figure.published.iter().for_each(|p| add_published(&mut panels, p));
            Shown { figure, measured, panels }
        })
        .collect()
}

/// Add numbers of a paper as a series to the panel of that title, or to the first one if the title
/// is empty.
fn add_published(panels: &mut [Panel], published: &Published) {
    let Some(panel) =
        panels.iter_mut().find(|p| published.panel.is_empty() || p.title == published.panel)
    else {
        return;
    };
    for (name, value) in published.points {
        let Places::Names(names) = &mut panel.places else { return };
        let place = names.iter().position(|n| n == name).unwrap_or_else(|| {
            names.push((*name).into());
            names.len() - 1
        });
        panel.add(published.series, Point::one(place as f64, *value));
    }
}

impl Shown<'_> {
    /// Return a sentence for each claim of the paper that does not hold.
    pub fn contradictions(&self) -> Vec<String> {
        let list = std::slice::from_ref(self);
        let line = |claim: &claims::Claim| match claim.verdict(list) {
            Verdict::No(seen) => {
                let why = if claim.why.is_empty() { "unexplained" } else { claim.why };
                Some(format!("{}: not so here, {seen}. {why}", claim.text))
            }
            _ => None,
        };
        claims::of(self.figure.name).filter_map(line).collect()
    }

    /// Return a sentence for each kind of ratio: the geometric mean of each series over all panels.
    pub fn findings(&self) -> Vec<String> {
        // Values by unit and by series.
        type Medians<'a> = Vec<(&'a str, Vec<f64>)>;
        let mut kinds: Vec<(&str, Medians)> = Vec::new();
        for panel in self.panels.iter().filter(|p| p.reference.is_some()) {
            if !kinds.iter().any(|k| k.0 == panel.y) {
                kinds.push((&panel.y, Vec::new()));
            }
            let Some((_, all)) = kinds.iter_mut().find(|k| k.0 == panel.y) else { continue };
            for series in panel.series.iter().filter(|s| !s.name.starts_with("published")) {
                let values = series.points.iter().map(|p| p.median).filter(|v| *v > 0.0);
                match all.iter_mut().find(|s| s.0 == series.name) {
                    Some((_, list)) => list.extend(values),
                    None => all.push((&series.name, values.collect())),
                }
            }
        }
        let line = |(unit, series): (&str, Medians)| {
            let parts: Vec<String> = series
                .into_iter()
                .filter_map(|(name, values)| {
                    let mean = geometric(&values)?;
                    let range = if values.len() > 1 {
                        format!(" ({}-{})", number(mean.least), number(mean.most))
                    } else {
                        String::new()
                    };
                    Some(format!("{name} {}{range}", number(mean.median)))
                })
                .collect();
            (!parts.is_empty()).then(|| format!("{unit}: {}", parts.join(", ")))
        };
        kinds.into_iter().filter_map(line).collect()
    }

    /// Return why data are missing or doubtful.
    pub fn warnings(&self) -> Vec<String> {
        let Some(measured) = self.measured else {
            return vec![format!("Not measured: lissom study run {}", self.figure.name)];
        };
        let mut list = Vec::new();
        match measured.state {
            State::Ok => {}
            State::Partly => list
                .push("Something in it failed or was too slow; its own report says what.".into()),
            State::Failed => {}
            State::Interrupted => {
                list.push("It was interrupted: what was complete is shown.".into())
            }
        }
        list.extend(measured.error.clone());
        for field in ["noise", "notes"] {
            let notes = measured.report[field].as_array().map(Vec::as_slice).unwrap_or_default();
            list.extend(notes.iter().filter_map(Value::as_str).map(String::from));
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

fn geometric(values: &[f64]) -> Option<Spread> {
    let mean = (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp();
    let range = Spread::of(values)?;
    Some(Spread { median: mean, ..range })
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
    Some(
        names
            .iter()
            .enumerate()
            .map(|(i, name)| (name.as_str(), panel.series.iter().map(|s| panel.at(s, i)).collect()))
            .collect(),
    )
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
        let panels = shown.panels.iter().filter(|p| p.reference.is_some());
        let series = panels.flat_map(|p| &p.series).filter(|s| names.contains(&s.name.as_str()));
        geometric(&series.flat_map(|s| &s.points).map(|p| p.median).collect::<Vec<_>>())
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
    let verdict = |c: &claims::Claim| match c.verdict(list) {
        Verdict::Yes(_) => 0,
        Verdict::No(_) => 1,
        Verdict::Open => 2,
    };
    let mut counts = [0; 3];
    claims::claims().for_each(|c| counts[verdict(c)] += 1);
    let [yes, no, open] = counts;
    if yes + no > 0 {
        lines.push(format!(
            "Of the papers' {} claims, {yes} hold here, {no} do not, {open} are open.",
            claims::claims().count()
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
        let point = Point { least: 1.0, most: 3.0, ..Point::one(0.0, 2.0) };
        assert_eq!(cell(Some(point), true), "2.00 1.00-3.00");
        assert_eq!(cell(Some(point), false), "2.00");
        assert_eq!(cell(Some(Point { side: Side::AtLeast, ..point }), true), ">=2.00");
        assert_eq!(cell(None, true), "-");
        assert_eq!(day(1_790_000_000), "2026-09-21");
    }
}
