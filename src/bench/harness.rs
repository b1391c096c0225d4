//! What all benchmarks share: what a benchmark is, the order in which it is measured, and its statistics.
//! Nothing here starts a process or reads a clock.

use std::ffi::OsString;

use serde::Serialize;
use serde_json::Value;

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

/// A table's row: the scenarios that are measured in turn, and so can be compared.
pub struct Group {
    pub workload: String,
    pub threads: u32,
    pub metric: Metric,
    /// A field that has to be the same in all scenarios, but for this part of its value: the result of the
    /// program's work.
    pub same: Option<(&'static str, f64)>,
    pub scenarios: Vec<Scenario>,
}

/// A table's column.
pub struct Scenario {
    pub name: &'static str,
    /// Of `lissom run`; without it, the command runs as it is.
    pub switch: Option<&'static str>,
    pub command: Vec<OsString>,
}

/// The names of the scenarios that the others are compared with.
pub const BOUND: &str = "bound";
pub const NATIVE: &str = "native";

/// One run that went well.
#[derive(Serialize)]
pub struct Sample {
    pub value: f64,
    /// All that the program said.
    pub output: Value,
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
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    Timeout,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// None of no values, and of any that is no number.
    pub fn of(values: &[f64]) -> Option<Spread> {
        if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        };
        Some(Spread { median, least: sorted[0], most: sorted[sorted.len() - 1] })
    }

    /// The distance of the extremes, as a part of the median.
    pub fn relative(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.most - self.least) / self.median.abs() }
    }
}

/// Each value against the one of the same round. A machine's speed drifts over minutes: neighbours in time
/// share most of it, medians of whole series do not.
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
    WarmUp,
    /// From 1.
    Round(usize),
}

/// What one run gave, and what lissom told about it in the warm-up.
pub struct Ran {
    pub outcome: Outcome,
    pub statistics: Option<Value>,
    pub native_because: Option<String>,
}

/// A warm-up and `rounds` rounds, in each of which every scenario has its turn (ABCD ABCD ...). A scenario
/// that has failed or was too slow once is left out from then on.
pub fn measure<E>(
    group: &Group,
    rounds: usize,
    mut run: impl FnMut(&Scenario, Turn) -> Result<Ran, E>,
) -> Result<Measured, E> {
    let mut cells: Vec<Cell> = group.scenarios.iter().map(Cell::new).collect();
    for turn in std::iter::once(Turn::WarmUp).chain((1..=rounds).map(Turn::Round)) {
        for (scenario, cell) in group.scenarios.iter().zip(&mut cells) {
            if cell.state != State::Ok {
                continue;
            }
            let ran = run(scenario, turn)?;
            if turn == Turn::WarmUp {
                cell.statistics = ran.statistics;
                cell.native_because = ran.native_because;
            }
            match ran.outcome {
                Outcome::Done(sample) if turn != Turn::WarmUp => cell.samples.push(sample),
                Outcome::Done(_) => {}
                Outcome::Timeout => cell.state = State::Timeout,
                Outcome::Failed(error) => {
                    cell.state = State::Failed;
                    cell.error = Some(error);
                }
            }
        }
    }
    if let Some((field, tolerance)) = group.same {
        check_same(&mut cells, field, tolerance);
    }
    summarize(&mut cells, group.metric.compare);
    Ok(Measured { workload: group.workload.clone(), threads: group.threads, metric: group.metric, cells })
}

impl Cell {
    fn new(scenario: &Scenario) -> Cell {
        Cell {
            scenario: scenario.name,
            managed: scenario.switch.is_some(),
            command: scenario.command.iter().map(|s| s.to_string_lossy().into_owned()).collect(),
            state: State::Ok,
            error: None,
            native_because: None,
            value: None,
            to_bound: None,
            to_native: None,
            samples: Vec::new(),
            statistics: None,
        }
    }

    pub fn values(&self) -> Vec<f64> {
        self.samples.iter().map(|s| s.value).collect()
    }
}

/// A fast run that computed something else is no result.
fn check_same(cells: &mut [Cell], field: &str, tolerance: f64) {
    let read = |sample: &Sample| sample.output[field].as_f64();
    let Some(reference) = cells.iter().flat_map(|c| &c.samples).find_map(read) else { return };
    for cell in cells {
        let differs =
            |s: &Sample| read(s).is_none_or(|v| (v - reference).abs() > tolerance * reference.abs());
        if let Some(sample) = cell.samples.iter().find(|s| differs(s)) {
            cell.error = Some(format!("its {field} is {} and not {reference}", sample.output[field]));
            cell.state = State::Failed;
        }
    }
}

fn summarize(cells: &mut [Cell], compare: Compare) {
    let values_of = |cells: &[Cell], name: &str| {
        cells.iter().find(|c| c.scenario == name && c.state == State::Ok).map(Cell::values)
    };
    let bound = values_of(cells, BOUND);
    let native = values_of(cells, NATIVE);
    for cell in cells.iter_mut().filter(|c| c.state == State::Ok) {
        let values = cell.values();
        cell.value = Spread::of(&values);
        let against = |base: &Option<Vec<f64>>| pairwise(&values, base.as_deref()?, compare);
        if cell.scenario != BOUND {
            cell.to_bound = against(&bound);
            if cell.scenario != NATIVE {
                cell.to_native = against(&native);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Metric = Metric { field: "seconds", unit: "s", compare: Compare::Ratio };

    fn group(names: &[&'static str]) -> Group {
        let scenario = |&name| Scenario { name, switch: None, command: vec![name.into()] };
        Group {
            workload: "w".into(),
            threads: 8,
            metric: TIME,
            same: None,
            scenarios: names.iter().map(scenario).collect(),
        }
    }

    fn done(value: f64) -> Ran {
        let sample = Sample { value, output: serde_json::json!({ "error": value }) };
        Ran { outcome: Outcome::Done(sample), statistics: None, native_because: None }
    }

    #[test]
    fn medians() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
        let even = Spread::of(&[4.0, 1.0, 2.0, 3.0]).expect("numbers");
        assert_eq!(even.median, 2.5);
        assert_eq!(even.relative(), 3.0 / 2.5);
        assert_eq!(Spread { median: 0.0, least: 0.0, most: 1.0 }.relative(), 0.0);
    }

    #[test]
    fn pairs_take_the_drift_out() {
        // The machine gets twice as slow; the ratio stays.
        let ratio = pairwise(&[2.0, 3.0, 4.0], &[1.0, 1.5, 2.0], Compare::Ratio);
        assert_eq!(ratio, Some(Spread { median: 2.0, least: 2.0, most: 2.0 }));
        let difference = pairwise(&[5.0, 7.0], &[4.0, 4.0], Compare::Difference);
        assert_eq!(difference, Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(pairwise(&[1.0], &[1.0], Compare::Nothing), None);
        assert_eq!(pairwise(&[1.0], &[0.0], Compare::Ratio), None);
        assert_eq!(pairwise(&[1.0], &[], Compare::Ratio), None);
    }

    #[test]
    fn rounds_are_interleaved_and_the_warm_up_does_not_count() {
        let mut order = Vec::new();
        let measured = measure(&group(&[BOUND, NATIVE, "user"]), 2, |scenario, turn| {
            order.push((scenario.name, turn));
            let base = if turn == Turn::WarmUp { 100.0 } else { 1.0 };
            Ok::<_, ()>(done(base * if scenario.name == NATIVE { 4.0 } else { 1.0 }))
        })
        .expect("no error");
        let turns = [Turn::WarmUp, Turn::Round(1), Turn::Round(2)];
        let expected: Vec<_> =
            turns.into_iter().flat_map(|t| [(BOUND, t), (NATIVE, t), ("user", t)]).collect();
        assert_eq!(order, expected);
        assert_eq!(measured.cells[1].values(), [4.0, 4.0]);
        assert_eq!(measured.cells[0].to_bound, None);
        assert_eq!(measured.cells[1].to_bound.expect("a ratio").median, 4.0);
        assert_eq!(measured.cells[1].to_native, None);
        assert_eq!(measured.cells[2].to_native.expect("a ratio").median, 0.25);
    }

    #[test]
    fn a_scenario_that_fails_is_not_tried_again_and_the_others_go_on() {
        let mut slow = 0;
        let measured = measure(&group(&[BOUND, NATIVE, "user"]), 3, |scenario, turn| {
            let failed = |outcome| Ran { outcome, statistics: None, native_because: None };
            Ok::<_, ()>(match (scenario.name, turn) {
                (NATIVE, _) => {
                    slow += 1;
                    failed(Outcome::Timeout)
                }
                ("user", Turn::Round(2)) => failed(Outcome::Failed("crashed".into())),
                _ => done(1.0),
            })
        })
        .expect("no error");
        assert_eq!(slow, 1);
        let states: Vec<State> = measured.cells.iter().map(|c| c.state).collect();
        assert_eq!(states, [State::Ok, State::Timeout, State::Failed]);
        assert_eq!(measured.cells[2].samples.len(), 1);
        assert!(measured.cells[2].value.is_none() && measured.cells[2].to_bound.is_none());
        assert_eq!(measured.cells[0].value.expect("a value").median, 1.0);
    }

    #[test]
    fn an_interruption_ends_it() {
        let mut runs = 0;
        let measured = measure(&group(&[BOUND, NATIVE]), 3, |_, _| {
            runs += 1;
            if runs == 3 { Err("interrupted") } else { Ok(done(1.0)) }
        });
        assert_eq!(measured.err(), Some("interrupted"));
        assert_eq!(runs, 3);
    }

    #[test]
    fn another_result_is_a_failure() {
        let mut group = group(&[BOUND, NATIVE, "user"]);
        group.same = Some(("error", 0.05));
        let value = |name| match name {
            BOUND => 1.0,
            NATIVE => 1.04,
            _ => 1.06,
        };
        let measured = measure(&group, 1, |s, _| Ok::<_, ()>(done(value(s.name)))).expect("no error");
        let states: Vec<State> = measured.cells.iter().map(|c| c.state).collect();
        assert_eq!(states, [State::Ok, State::Ok, State::Failed]);
    }
}
