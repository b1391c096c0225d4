//! The report of a benchmark that has options and results of its own. Other programs read its JSON
//! form.

use serde::Serialize;
use serde_json::Value;

use super::columns::Table;
use super::harness::{Cell, Compare, Measured, State};
use super::machine::Machine;
use super::noise;
use super::output::Outputs;
use super::table::{close, interruption};
use super::time;
use ui::text::wrap;

/// The results, and how to show them.
pub trait Results: Serialize {
    type Options: Serialize;

    /// Return whether something failed or was too slow.
    fn is_bad(&self) -> bool;
    /// Explain the tables.
    fn legend(&self, options: &Self::Options) -> String;
    fn tables(&self, options: &Self::Options) -> Vec<Table<'_>>;
    /// Describe problems.
    fn notes(&self, options: &Self::Options) -> Vec<String>;
}

#[derive(Serialize)]
pub struct Document<R: Results> {
    pub version: &'static str,
    pub benchmark: &'static str,
    /// Time of the start, in seconds since 1970.
    pub time: u64,
    pub machine: Machine,
    pub options: R::Options,
    /// Other parameters: versions, commands, and the work per round.
    pub parameters: Value,
    #[serde(flatten)]
    pub results: R,
    pub notes: Vec<String>,
    /// The signal that interrupted the benchmark.
    pub interrupted: Option<i32>,
}

impl<R: Results> Document<R> {
    /// Return a report without parameters and notes, of a benchmark that starts now.
    pub fn of(
        benchmark: &'static str,
        machine: Machine,
        options: R::Options,
        results: R,
    ) -> Document<R> {
        Document {
            version: env!("CARGO_PKG_VERSION"),
            benchmark,
            time: time(),
            machine,
            options,
            parameters: Value::Null,
            results,
            notes: vec![],
            interrupted: None,
        }
    }

    /// Write the report. Returns the exit code: 128 + the signal if interrupted, 1 if something
    /// failed or was too slow, else 0.
    pub fn write(&self, outputs: Outputs) -> anyhow::Result<i32> {
        outputs.write(self, || self.markdown(), || self.text())?;
        Ok(self.exit_code())
    }

    pub fn exit_code(&self) -> i32 {
        self.interrupted.map_or(self.results.is_bad().into(), |signal| 128 + signal)
    }

    fn title(&self) -> String {
        self.machine.title(self.benchmark, self.machine.cpus)
    }

    fn all_notes(&self) -> Vec<String> {
        let interruption = self.interrupted.map(interruption);
        let found = self.results.notes(&self.options);
        self.notes.iter().cloned().chain(interruption).chain(found).collect()
    }

    pub fn text(&self) -> String {
        let mut lines = wrap(&self.title(), "", 2);
        lines.extend(wrap(&self.results.legend(&self.options), "", 0));
        lines.extend(self.results.tables(&self.options).iter().flat_map(Table::text));
        close(lines, &self.all_notes())
    }

    pub fn markdown(&self) -> String {
        let mut text = format!("{}. {}\n", self.title(), self.results.legend(&self.options));
        text.extend(self.results.tables(&self.options).iter().map(Table::markdown));
        text.extend(self.all_notes().iter().map(|note| format!("\n{note}\n")));
        text
    }
}

/// Lines about problems. Problems with the same text are one line with all their places.
#[derive(Default)]
pub struct Problems(Vec<(String, Vec<String>)>);

impl Problems {
    pub fn add(&mut self, place: &str, problem: String) {
        match self.0.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, places)) => places.push(place.into()),
            None => self.0.push((problem, vec![place.into()])),
        }
    }

    pub fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(problem, places)| format!("{} {problem}", places.join(", ")))
    }
}

/// Describe a failure or a timeout after `limit` seconds.
pub fn problem(state: State, error: Option<&String>, limit: f64) -> Option<String> {
    match (state, error) {
        (_, Some(error)) => Some(format!("failed: {error}")),
        (State::Timeout, None) => Some(format!("took longer than {limit} s (--timeout)")),
        _ => None,
    }
}

/// Describe failures, timeouts, native runs and noise. `groups`: their names and results.
/// `steady`: the scenario whose values should vary least, and its name for people.
pub fn notes<'a>(
    groups: impl Iterator<Item = (String, &'a Measured)> + Clone,
    limit: f64,
    (steady, subject): (&str, &str),
) -> Vec<String> {
    let mut notes = Vec::new();
    for (place, group) in groups.clone() {
        let (mut problems, mut native) = (Problems::default(), Problems::default());
        for cell in &group.cells {
            if let Some(problem) = problem(cell.state, cell.error.as_ref(), limit) {
                problems.add(cell.scenario, problem);
            }
            if let Some(why) = &cell.native_because {
                native.add(cell.scenario, format!("ran natively: {why}"));
            }
        }
        notes.extend(problems.lines().map(|line| format!("{place}: {line}")));
        // Tables mark these cells with `*`.
        notes.extend(native.lines().map(|line| format!("* {place}: {line}")));
    }
    // Values that are compared by their difference vary by nature.
    let is_steady = |(_, group): &(String, &Measured)| group.metric.compare == Compare::Ratio;
    let spread = |(place, group): (String, &Measured)| {
        let cell = group.cells.iter().find(|c: &&Cell| c.scenario == steady)?;
        Some((place, cell.value?.relative()))
    };
    notes.extend(noise::varied(subject, groups.clone().filter(is_steady).filter_map(spread)));
    notes.extend(noise::disturbed(groups.map(|(place, group)| (place, group.others()))));
    notes
}
