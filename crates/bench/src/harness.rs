//! Types of a benchmark, the order of its runs, and the statistics of its results. Nothing here
//! starts a process or reads a clock.

use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;
pub use study::format::{BOUND, Counted, NATIVE};
pub use ui::number::Spread;

use super::child::Printed;
use super::command;
use super::counters::Process;

/// The number to take from a program's output, and how to show it.
#[derive(Clone, Copy, Serialize)]
pub struct Metric {
    /// Field of the output's last line, which is JSON; or `WALL`.
    pub field: &'static str,
    /// Text for people, such as "us a round".
    pub unit: &'static str,
    pub compare: Compare,
}

impl Metric {
    pub const fn ratio(field: &'static str, unit: &'static str) -> Metric {
        Metric { field, unit, compare: Compare::Ratio }
    }
}

/// How to compare a scenario with another one of the same round.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compare {
    Ratio,
    Difference,
    /// Do not compare: the number means enough by itself.
    Nothing,
}

/// Name of a metric that no program reports: the seconds from the start to the end of the process.
pub const WALL: &str = "wall_seconds";
/// Metric of programs that report no time themselves.
pub const SECONDS: Metric = Metric::ratio(WALL, "seconds");

/// Check the output of a run. Returns what is wrong with it, if anything.
pub type Check = Rc<dyn Fn(&str) -> Option<String>>;

/// A row of the table: scenarios that run in turns, and so can be compared.
pub struct Group {
    pub workload: String,
    pub threads: u32,
    pub metric: Metric,
    /// A field with the result of the program's work, and its relative tolerance. The result must
    /// be the same in all scenarios.
    pub same: Option<(&'static str, f64)>,
    /// Check of the whole standard output of a run.
    pub check: Option<Check>,
    /// Options of `lissom run`, for all scenarios that run under it.
    pub options: &'static [&'static str],
    /// Environment variables of all scenarios, as NAME=value.
    pub environment: &'static [&'static str],
    /// Competing processes, if any.
    pub beside: Option<Beside>,
    /// Time limit in seconds, if the metric is seconds: the lower limit of a killed run's time.
    pub limit: Option<f64>,
    /// Decide before the warm-up of a scenario whether to leave it out, by the cells before it.
    pub leave_out: Option<fn(&str, &[Cell]) -> bool>,
    /// Scenario that was not asked for, and in which the program may fail or hang.
    pub tried: Option<&'static str>,
    pub scenarios: Vec<Scenario>,
}

/// Processes that use all CPU time they can get while a scenario runs. The bound runs without them.
#[derive(Clone)]
pub struct Beside {
    /// Path of the workload `sync`.
    pub program: PathBuf,
    pub hogs: u32,
    /// Factor by which the bound's time is multiplied, for its share of the CPUs.
    pub factor: f64,
}

impl Group {
    /// Return a group without a name and without scenarios, with defaults for all other fields.
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
            leave_out: None,
            tried: None,
            scenarios: vec![],
        }
    }

    /// Return whether the scenario is only a try: if it fails, that is a result.
    pub fn tries(&self, scenario: &Scenario) -> bool {
        self.tried == Some(scenario.name)
    }

    /// Put words in front of all commands.
    pub fn around(mut self, words: &[OsString]) -> Group {
        self.scenarios.iter_mut().for_each(|s| s.around = words.to_vec());
        self
    }
}

/// A column of the table.
pub struct Scenario {
    pub name: &'static str,
    /// Option --switch of `lissom run`. `None`: run the command natively.
    pub switch: Option<&'static str>,
    /// Words in front of the command, and of `lissom run`.
    pub around: Vec<OsString>,
    pub command: Vec<OsString>,
    /// How to choose the number of rounds. `None`: the command itself has the amount of work.
    pub effort: Option<Effort>,
}

impl Scenario {
    /// Return a scenario of a command that has the amount of work itself.
    pub fn of(
        name: &'static str,
        switch: Option<&'static str>,
        command: Vec<OsString>,
    ) -> Scenario {
        Scenario { name, switch, around: vec![], command, effort: None }
    }
}

/// How to choose the rounds of a run, for programs where one scenario may take 10,000 times as long
/// as another: as many as fit into a part of the limit. The option `--rounds` is appended to the
/// command. The metric must be microseconds per unit.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Maximum number of rounds.
    pub rounds: u64,
    /// Units of the metric per round.
    pub units: f64,
    /// Seconds after which a run is killed.
    pub limit: f64,
    /// Intended duration of a run in seconds.
    pub aim: f64,
}

/// Maximum factor between the rounds of successive pilot runs. The first rounds of a run are not
/// typical, so a short run does not predict a long one.
const STEP: u64 = 100;

impl Effort {
    /// Return the number of rounds for the next run, after `rounds` rounds took `seconds`.
    fn next(&self, rounds: u64, seconds: f64) -> u64 {
        let fit = rounds as f64 * self.aim / seconds.max(1e-6);
        (fit as u64).clamp(1, rounds.saturating_mul(STEP)).min(self.rounds)
    }

    /// Return a lower limit of the metric, after `rounds` rounds did not end within the limit.
    fn at_least(&self, rounds: u64) -> f64 {
        self.limit * 1e6 / (rounds as f64 * self.units)
    }
}

/// A run that succeeded.
#[derive(Serialize)]
pub struct Sample {
    pub value: f64,
    /// The program's JSON, with all its fields. Null for `WALL`.
    pub output: Value,
    /// Counters of the kernel.
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
    /// The group's options of `lissom run`.
    pub options: &'static [&'static str],
    /// The group's environment variables, as NAME=value.
    pub environment: &'static [&'static str],
    pub cells: Vec<Cell>,
}

#[derive(Default, Serialize)]
pub struct Cell {
    pub scenario: &'static str,
    /// Whether the scenario runs under lissom.
    pub managed: bool,
    pub command: Vec<String>,
    /// "ok", "timeout" or "failed".
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why lissom left the program native.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_because: Option<String>,
    /// Rounds of the last run that was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Lower limit of the last run's value, if the run did not end within the limit. Then `value`
    /// and the ratios of this cell are lower limits, too; ratios to this cell are upper limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Spread>,
    /// Comparison with the bound, pair by pair of the same round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_bound: Option<Spread>,
    /// Comparison with native, pair by pair of the same round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_native: Option<Spread>,
    /// Samples by round, without the warm-up.
    pub samples: Vec<Sample>,
    /// Statistics of `lissom run --stats` from the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// The outputs of all runs that succeeded, the warm-up included.
    #[serde(skip)]
    pub printed: Vec<Printed>,
    /// `Group::tries` its scenario.
    #[serde(skip)]
    pub is_try: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    #[default]
    Ok,
    Timeout,
    Failed,
}

/// Compare each value with the base value of the same round. The speed of a machine drifts over
/// minutes: it affects runs of the same round alike, but not medians of whole series.
pub fn pairwise(values: &[f64], base: &[f64], compare: Compare) -> Option<Spread> {
    let pairs = values.iter().zip(base);
    let compared: Vec<f64> = match compare {
        Compare::Ratio => pairs.map(|(v, b)| v / b).collect(),
        Compare::Difference => pairs.map(|(v, b)| v - b).collect(),
        Compare::Nothing => return None,
    };
    Spread::of(&compared)
}

/// The kind of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Determines the number of rounds. There may be several of these runs.
    Pilot,
    WarmUp,
    /// A round that counts, from 1.
    Round(usize),
}

/// The result of a run, and in the warm-up lissom's statistics.
pub struct Ran {
    pub outcome: Outcome,
    pub statistics: Option<Value>,
    pub native_because: Option<String>,
    pub counted: Option<Counted>,
    pub printed: Option<Printed>,
}

impl Ran {
    pub fn of(outcome: Outcome) -> Ran {
        Ran { outcome, statistics: None, native_because: None, counted: None, printed: None }
    }
}

/// Measure a group: pilot runs, a warm-up and `rounds` rounds. Each round runs every scenario once
/// (ABCD ABCD ...). A scenario that fails or exceeds its limit is left out of later rounds; one
/// that `leave_out` rejects has no cell. `run`
/// receives the value of the program's option --rounds, if it has one; its errors end the
/// measurement.
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
    let mut left_out = vec![false; cells.len()];
    for turn in std::iter::once(Turn::WarmUp).chain((1..=rounds).map(Turn::Round)) {
        for (at, scenario) in group.scenarios.iter().enumerate() {
            if turn == Turn::WarmUp
                && group.leave_out.is_some_and(|f| f(scenario.name, &cells[..at]))
            {
                left_out[at] = true;
            }
            let cell = &mut cells[at];
            cell.is_try = group.tries(scenario);
            if cell.state == State::Ok && !left_out[at] {
                let ran = run(scenario, turn, cell.rounds)?;
                cell.take(ran, turn, scenario.effort.as_ref());
            }
        }
    }
    let mut kept = left_out.iter().map(|left_out| !left_out);
    cells.retain(|_| kept.next().unwrap_or(true));
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
    /// Return the name of the row for people.
    pub fn place(&self) -> String {
        if self.threads == 0 {
            self.workload.clone()
        } else {
            format!("{}, {} threads", self.workload, self.threads)
        }
    }

    pub fn cell(&self, scenario: &str) -> Option<&Cell> {
        self.cells.iter().find(|c| c.scenario == scenario)
    }

    /// Return whether a cell failed or was too slow.
    pub fn is_bad(&self) -> bool {
        self.cells.iter().any(|c| c.state != State::Ok)
    }

    /// Return the largest share of the CPUs that other programs used in any run, or 0 if the
    /// programs do not report it.
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
            command: command::shown(scenario.around.iter().chain(&scenario.command)),
            ..Cell::default()
        }
    }

    /// Determine the number of rounds of a run by pilot runs. They do not count, unless a single
    /// round exceeds the limit.
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
                    // Below the step, `aim` or the maximum number of rounds limits it.
                    let settled = next < rounds.saturating_mul(STEP) || next == effort.rounds;
                    (done, rounds) = (rounds, next);
                    if settled {
                        self.rounds = Some(rounds);
                        return Ok(());
                    }
                }
                // Use the last number that succeeded. The warm-up may raise it again.
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

    /// Add the result of a run that is no pilot run.
    fn take(&mut self, ran: Ran, turn: Turn, effort: Option<&Effort>) {
        if turn == Turn::WarmUp {
            self.statistics = ran.statistics;
            self.native_because = ran.native_because;
            self.counted = ran.counted;
        }
        match ran.outcome {
            Outcome::Done(sample) => {
                self.printed.extend(ran.printed);
                if turn != Turn::WarmUp {
                    self.samples.push(sample);
                } else if let (Some(effort), Some(rounds)) = (effort, self.rounds) {
                    self.rounds = Some(effort.next(rounds, seconds(&sample)));
                }
            }
            // The pilot runs have overestimated the number of rounds.
            Outcome::Timeout if turn == Turn::WarmUp && self.rounds.is_some_and(|n| n > 1) => {
                self.rounds = self.rounds.map(|n| (n / STEP).max(1));
            }
            outcome => self.fail(outcome, effort),
        }
    }

    /// Record a failure, or a lower limit after a timeout. Later rounds leave the cell out.
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

    /// Return the values by round. The last one may be the lower limit of a run that was killed.
    pub fn values(&self) -> Vec<f64> {
        self.samples.iter().map(|s| s.value).chain(self.at_least).collect()
    }

    /// Return a number from the program's output, by round; `None` if a round lacks it.
    pub fn series(&self, of: impl Fn(&Value) -> Option<f64>) -> Option<Vec<f64>> {
        self.samples.iter().map(|s| of(&s.output)).collect()
    }

    /// Return the comparison with `base`: the bound, or native.
    pub fn to(&self, base: &str) -> Option<Spread> {
        if base == BOUND { self.to_bound } else { self.to_native }
    }

    /// Return whether the cell has a value or a lower limit.
    fn is_known(&self) -> bool {
        self.state == State::Ok || self.at_least.is_some()
    }
}

/// Return the duration of the parallel part, which all programs with --rounds report.
fn seconds(sample: &Sample) -> f64 {
    sample.output["seconds"].as_f64().unwrap_or(0.0)
}

/// Mark cells as failed whose result differs from the first cell's: a fast run with a wrong result
/// does not count.
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

/// Set the spreads of values and ratios.
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
            // Two lower limits have no meaningful ratio.
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
