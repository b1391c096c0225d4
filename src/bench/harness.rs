//! What all benchmarks share: what a benchmark is, the order in which it is measured, and its
//! statistics. Nothing here starts a process or reads a clock.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
pub use study::format::{BOUND, Counted, NATIVE};
pub use ui::number::Spread;

use super::counters::Process;

/// What is taken from a program's line of JSON, and how it is shown.
#[derive(Clone, Copy, Serialize)]
pub struct Metric {
    /// The field of the program's output.
    pub field: &'static str,
    /// For people: "us a round".
    pub unit: &'static str,
    pub compare: Compare,
}

/// How a scenario is set against another of the same round.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compare {
    Ratio,
    Difference,
    /// The number says enough by itself.
    Nothing,
}

/// The field of a metric that no program reports: the seconds from its start to its end.
pub const WALL: &str = "wall_seconds";
/// Of programs that only say how long they took by ending.
pub const SECONDS: Metric = Metric { field: WALL, unit: "seconds", compare: Compare::Ratio };

pub type Check = Box<dyn Fn(&str) -> Option<String>>;

/// A table's row: the scenarios that are measured in turn, and so can be compared.
pub struct Group {
    pub workload: String,
    pub threads: u32,
    pub metric: Metric,
    /// A field that has to be the same in all scenarios, but for this part of its value: the result
    /// of the program's work.
    pub same: Option<(&'static str, f64)>,
    /// Of all that a run has printed: what is wrong with it, if so.
    pub check: Option<Check>,
    /// Of `lissom run`, in all scenarios that run under it.
    pub options: &'static [&'static str],
    /// `NAME=value`, for all scenarios.
    pub environment: &'static [&'static str],
    /// Competing processes, if any.
    pub beside: Option<Beside>,
    /// Where the metric is seconds: after so many a run is killed, and took at least that.
    pub limit: Option<f64>,
    pub scenarios: Vec<Scenario>,
}

/// Processes that take what CPU time they can get, while a scenario runs; but the bound runs by
/// itself.
#[derive(Clone)]
pub struct Beside {
    /// The workload `sync`.
    pub program: PathBuf,
    pub hogs: u32,
    /// The bound takes so many times as long with its share of the CPUs.
    pub factor: f64,
}

impl Group {
    /// Without a name and scenarios, and nothing special.
    pub fn of(metric: Metric) -> Group {
        let workload = String::new();
        Group {
            workload,
            threads: 0,
            metric,
            same: None,
            check: None,
            options: &[],
            environment: &[],
            beside: None,
            limit: None,
            scenarios: vec![],
        }
    }
}

/// A table's column.
pub struct Scenario {
    pub name: &'static str,
    /// Of `lissom run`; without it, the command runs as it is.
    pub switch: Option<&'static str>,
    /// What starts it, in front of `lissom run`.
    pub around: Vec<OsString>,
    pub command: Vec<OsString>,
    /// Without it, the command says itself how much is to be done.
    pub effort: Option<Effort>,
}

/// How many rounds the runs of a program have (`--rounds`, which follows the scenario's command),
/// where one scenario may take 10,000 times as long as another: as many as fit into a part of the
/// limit. The metric has to be microseconds a unit.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Where they take no longer than that.
    pub rounds: u64,
    /// Units of the metric in a round.
    pub units: f64,
    /// Seconds that a run may take, or else it is killed.
    pub limit: f64,
    /// Seconds that it had better take.
    pub aim: f64,
}

/// A run has at most so many times the rounds of the one before: the first rounds are not like the
/// others.
const STEP: u64 = 100;

impl Effort {
    /// How many rounds are next, by a run of `rounds` that was done in so many seconds.
    fn next(&self, rounds: u64, seconds: f64) -> u64 {
        let fit = rounds as f64 * self.aim / seconds.max(1e-6);
        (fit as u64).clamp(1, rounds.saturating_mul(STEP)).min(self.rounds)
    }

    /// What the metric is at least if so many rounds were not done within the limit.
    fn at_least(&self, rounds: u64) -> f64 {
        self.limit * 1e6 / (rounds as f64 * self.units)
    }
}

/// One run that went well.
#[derive(Serialize)]
pub struct Sample {
    pub value: f64,
    /// All that the program said.
    pub output: Value,
    /// What the kernel said.
    pub process: Process,
}

pub enum Outcome {
    Done(Sample),
    Timeout,
    Failed(String),
}

#[derive(Serialize)]
pub struct Measured {
    pub workload: String,
    pub threads: u32,
    pub metric: Metric,
    /// Those of the group.
    pub options: &'static [&'static str],
    pub environment: &'static [&'static str],
    pub cells: Vec<Cell>,
}

#[derive(Serialize)]
pub struct Cell {
    pub scenario: &'static str,
    /// Whether it runs under lissom.
    pub managed: bool,
    pub command: Vec<String>,
    /// "ok", "timeout" or "failed".
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why lissom did nothing for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_because: Option<String>,
    /// Of a run of the program, the last that was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// What the value of the last run is at least, because it was not done within the limit. That
    /// makes a lower limit of `value`, too, and of the ratios of this cell; ratios to this cell are
    /// at most what they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Spread>,
    /// Against the bound and against native, each with the sample of the same round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_bound: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_native: Option<Spread>,
    /// By round; the warm-up is not among them.
    pub samples: Vec<Sample>,
    /// What `lissom run --stats` said of the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    Timeout,
    Failed,
}

/// Each value against the one of the same round. A machine's speed drifts over minutes: neighbours
/// in time share most of it, medians of whole series do not.
pub fn pairwise(values: &[f64], base: &[f64], compare: Compare) -> Option<Spread> {
    let pairs = values.iter().zip(base);
    let compared: Vec<f64> = match compare {
        Compare::Ratio => pairs.map(|(v, b)| v / b).collect(),
        Compare::Difference => pairs.map(|(v, b)| v - b).collect(),
        Compare::Nothing => return None,
    };
    Spread::of(&compared)
}

/// Which of a group's runs comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// To find out how many rounds fit; several, if they are many.
    Pilot,
    WarmUp,
    /// From 1.
    Round(usize),
}

/// What one run gave, and what lissom told about it in the warm-up.
pub struct Ran {
    pub outcome: Outcome,
    pub statistics: Option<Value>,
    pub native_because: Option<String>,
    pub counted: Option<Counted>,
}

/// A warm-up and `rounds` rounds, in each of which every scenario has its turn (ABCD ABCD ...). A
/// scenario that has failed or was too slow once is left out from then on. `run` is told how many
/// rounds the program is to do.
pub fn measure<E>(
    group: &Group,
    rounds: usize,
    mut run: impl FnMut(&Scenario, Turn, Option<u64>) -> Result<Ran, E>,
) -> Result<Measured, E> {
    let mut cells: Vec<Cell> = group.scenarios.iter().map(Cell::new).collect();
    for (scenario, cell) in group.scenarios.iter().zip(&mut cells) {
        if let Some(effort) = &scenario.effort {
            cell.pilot(effort, |rounds| run(scenario, Turn::Pilot, Some(rounds)))?;
        }
    }
    for turn in std::iter::once(Turn::WarmUp).chain((1..=rounds).map(Turn::Round)) {
        for (scenario, cell) in group.scenarios.iter().zip(&mut cells) {
            if cell.state == State::Ok {
                let ran = run(scenario, turn, cell.rounds)?;
                cell.take(ran, turn, scenario.effort.as_ref());
            }
        }
    }
    for cell in cells.iter_mut().filter(|c| c.state == State::Timeout && c.at_least.is_none()) {
        cell.at_least = group.limit;
    }
    if let Some((field, tolerance)) = group.same {
        check_same(&mut cells, field, tolerance);
    }
    summarize(&mut cells, group.metric.compare);
    Ok(Measured {
        workload: group.workload.clone(),
        threads: group.threads,
        metric: group.metric,
        options: group.options,
        environment: group.environment,
        cells,
    })
}

impl Measured {
    /// For people.
    pub fn place(&self) -> String {
        if self.threads == 0 {
            self.workload.clone()
        } else {
            format!("{}, {} threads", self.workload, self.threads)
        }
    }

    /// The most that other programs had of the CPUs in any run, where the runs say so.
    pub fn others(&self) -> f64 {
        let samples = self.cells.iter().flat_map(|c| &c.samples);
        samples.filter_map(|s| s.output["others"].as_f64()).fold(0.0, f64::max)
    }
}

impl Cell {
    fn new(scenario: &Scenario) -> Cell {
        Cell {
            scenario: scenario.name,
            managed: scenario.switch.is_some(),
            command: scenario
                .around
                .iter()
                .chain(&scenario.command)
                .map(|s| s.to_string_lossy().into_owned())
                .collect(),
            state: State::Ok,
            error: None,
            native_because: None,
            rounds: None,
            at_least: None,
            value: None,
            to_bound: None,
            to_native: None,
            samples: Vec::new(),
            statistics: None,
            counted: None,
        }
    }

    /// Finds out how many rounds a run may have. These runs do not count, unless a single round was
    /// too much.
    fn pilot<E>(
        &mut self,
        effort: &Effort,
        mut run: impl FnMut(u64) -> Result<Ran, E>,
    ) -> Result<(), E> {
        let (mut rounds, mut done) = (1, 0);
        loop {
            self.rounds = Some(rounds);
            match run(rounds)?.outcome {
                Outcome::Done(sample) => {
                    let next = effort.next(rounds, seconds(&sample));
                    // Less than the step: the limit's part or the full number is what stopped it.
                    let settled = next < rounds.saturating_mul(STEP) || next == effort.rounds;
                    (done, rounds) = (rounds, next);
                    if settled {
                        self.rounds = Some(rounds);
                        return Ok(());
                    }
                }
                // As many as were known to be done in time; more are tried after the next run.
                Outcome::Timeout if done > 0 => {
                    self.rounds = Some(done);
                    return Ok(());
                }
                outcome => {
                    self.fail(outcome, Some(effort));
                    return Ok(());
                }
            }
        }
    }

    fn take(&mut self, ran: Ran, turn: Turn, effort: Option<&Effort>) {
        if turn == Turn::WarmUp {
            self.statistics = ran.statistics;
            self.native_because = ran.native_because;
            self.counted = ran.counted;
        }
        match ran.outcome {
            Outcome::Done(sample) => {
                if turn != Turn::WarmUp {
                    self.samples.push(sample);
                } else if let (Some(effort), Some(rounds)) = (effort, self.rounds) {
                    self.rounds = Some(effort.next(rounds, seconds(&sample)));
                }
            }
            // The pilot had promised too much.
            Outcome::Timeout if turn == Turn::WarmUp && self.rounds.is_some_and(|n| n > 1) => {
                self.rounds = self.rounds.map(|n| (n / STEP).max(1));
            }
            outcome => self.fail(outcome, effort),
        }
    }

    /// It is left out from now on.
    fn fail(&mut self, outcome: Outcome, effort: Option<&Effort>) {
        match outcome {
            Outcome::Done(_) => {}
            Outcome::Timeout => {
                self.state = State::Timeout;
                self.at_least =
                    effort.zip(self.rounds).map(|(effort, rounds)| effort.at_least(rounds));
            }
            Outcome::Failed(error) => {
                self.state = State::Failed;
                self.error = Some(error);
            }
        }
    }

    /// By round; the last may be what it was at least.
    pub fn values(&self) -> Vec<f64> {
        self.samples.iter().map(|s| s.value).chain(self.at_least).collect()
    }

    /// Of what the program said, by round. None: a round lacks it.
    pub fn series(&self, of: impl Fn(&Value) -> Option<f64>) -> Option<Vec<f64>> {
        self.samples.iter().map(|s| of(&s.output)).collect()
    }

    /// Whether there is something to say of its time.
    fn is_known(&self) -> bool {
        self.state == State::Ok || self.at_least.is_some()
    }
}

/// How long the parallel part took, as all workloads with rounds say.
fn seconds(sample: &Sample) -> f64 {
    sample.output["seconds"].as_f64().unwrap_or(0.0)
}

/// A fast run that computed something else is no result.
fn check_same(cells: &mut [Cell], field: &str, tolerance: f64) {
    let read = |sample: &Sample| sample.output[field].as_f64();
    let Some(reference) = cells.iter().flat_map(|c| &c.samples).find_map(read) else { return };
    for cell in cells {
        let differs = |s: &Sample| {
            read(s).is_none_or(|v| (v - reference).abs() > tolerance * reference.abs())
        };
        if let Some(sample) = cell.samples.iter().find(|s| differs(s)) {
            cell.error =
                Some(format!("its {field} is {} and not {reference}", sample.output[field]));
            cell.state = State::Failed;
        }
    }
}

fn summarize(cells: &mut [Cell], compare: Compare) {
    let base_of = |cells: &[Cell], name: &str| {
        let cell = cells.iter().find(|c| c.scenario == name && c.is_known())?;
        Some((cell.values(), cell.at_least.is_some()))
    };
    let bound = base_of(cells, BOUND);
    let native = base_of(cells, NATIVE);
    for cell in cells.iter_mut().filter(|c| c.is_known()) {
        let values = cell.values();
        cell.value = Spread::of(&values);
        let against = |base: &Option<(Vec<f64>, bool)>| {
            let (base, at_least) = base.as_ref()?;
            // Of two that were not done nothing follows.
            if *at_least && cell.at_least.is_some() {
                None
            } else {
                pairwise(&values, base, compare)
            }
        };
        if cell.scenario != BOUND {
            cell.to_bound = against(&bound);
            if cell.scenario != NATIVE {
                cell.to_native = against(&native);
            }
        }
    }
}

#[cfg(test)]
#[path = "harness_test.rs"]
mod tests;
