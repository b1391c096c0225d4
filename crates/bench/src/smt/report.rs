//! Compute the figures of the applications from the samples. Nothing here starts a process.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use super::super::harness::{self, Cell, Compare, Spread, State, pairwise};
use super::super::machine::Machine;
use runtime::options::Idle;

/// The program beside an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pair {
    /// Matrix multiplication
    Mixed,
    /// A second copy of the application
    Same,
}

/// A way to run an application: a column of its group.
#[derive(PartialEq, Eq)]
pub struct Scene {
    pub name: &'static str,
    /// `None`: the application runs alone.
    pub pair: Option<Pair>,
    /// `None`: the application runs natively.
    pub policy: Option<Idle>,
}

/// Scenario of an application alone, natively: the base of its throughput.
pub const ALONE: &str = "alone";
/// Scenario of matrix multiplication alone: the base of its throughput.
pub const NEIGHBOUR: &str = "neighbour";

const fn scene(name: &'static str, pair: Option<Pair>, policy: Option<Idle>) -> Scene {
    Scene { name, pair, policy }
}

pub const SCENES: [Scene; 10] = [
    scene(ALONE, None, None),
    scene(NEIGHBOUR, None, None),
    scene("mixed native", Some(Pair::Mixed), None),
    scene("mixed sleep", Some(Pair::Mixed), Some(Idle::Sleep)),
    scene("mixed poll", Some(Pair::Mixed), Some(Idle::Poll)),
    scene("mixed haltpoll", Some(Pair::Mixed), Some(Idle::Haltpoll)),
    scene("same native", Some(Pair::Same), None),
    scene("same sleep", Some(Pair::Same), Some(Idle::Sleep)),
    scene("same poll", Some(Pair::Same), Some(Idle::Poll)),
    scene("same haltpoll", Some(Pair::Same), Some(Idle::Haltpoll)),
];

impl Scene {
    pub fn named(name: &str) -> Option<&'static Scene> {
        SCENES.iter().find(|s| s.name == name)
    }

    fn policy_name(&self) -> &'static str {
        self.policy.map_or(harness::NATIVE, Idle::name)
    }
}

#[derive(Serialize)]
pub struct Options {
    pub cpus: u32,
    pub threads: u32,
    pub clients: u32,
    pub rounds: usize,
    pub seconds: f64,
    pub timeout: f64,
    pub switch: &'static str,
    pub share: &'static str,
}

#[derive(Serialize)]
pub struct Report {
    pub version: &'static str,
    pub benchmark: &'static str,
    /// Time of the start, in seconds since 1970.
    pub time: u64,
    pub machine: Machine,
    pub options: Options,
    pub parameters: Value,
    pub groups: Vec<Measured>,
    pub left_out: Vec<LeftOut>,
    pub notes: Vec<String>,
    /// The signal that interrupted the benchmark.
    pub interrupted: Option<i32>,
}

#[derive(Serialize)]
pub struct LeftOut {
    pub application: &'static str,
    pub why: String,
    /// Whether the application is installed, but does not run.
    pub is_broken: bool,
}

impl Report {
    /// Return 128 + the signal if interrupted, 1 if something failed or was too slow, else 0.
    pub fn exit_code(&self) -> i32 {
        if let Some(signal) = self.interrupted {
            return 128 + signal;
        }
        let cells = self.groups.iter().flat_map(|g| &g.measured.cells);
        let is_bad = self.left_out.iter().any(|l| l.is_broken)
            || cells.into_iter().any(|c| c.state != State::Ok);
        i32::from(is_bad)
    }
}

#[derive(Serialize)]
pub struct Measured {
    /// The application of the paper that this one stands for.
    pub paper: &'static str,
    /// Amount of work of each run.
    pub amount: u64,
    #[serde(flatten)]
    pub measured: harness::Measured,
    /// The figures of each cell, in the same order.
    pub figures: Vec<Figures>,
}

/// Figures of a cell over all rounds. Ratios compare samples of the same round.
#[derive(Serialize)]
pub struct Figures {
    pub pair: Option<Pair>,
    pub policy: &'static str,
    /// Throughput of the application, relative to the application alone, natively.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Spread>,
    /// Throughput of the program beside it, relative to that program alone, natively.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Spread>,
    /// Context switches of all processes of the application in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<Spread>,
    /// Context switches of the application a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches_per_second: Option<Spread>,
    /// Context switches of the application per unit of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches_per_work: Option<Spread>,
    /// CPU seconds of the application per unit of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_per_work: Option<Spread>,
    /// Power of the processors, by RAPL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<Spread>,
    /// Joules of the processors per unit of the application's work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules_per_work: Option<Spread>,
    /// Ratios to the policy `sleep` in the same pair.
    pub to_sleep: ToSleep,
}

#[derive(Serialize, Default)]
pub struct ToSleep {
    /// Throughput of the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Spread>,
    /// Throughput of the program beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Spread>,
    /// Context switches per unit of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<Spread>,
    /// CPU seconds per unit of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Spread>,
    /// Joules per unit of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules: Option<Spread>,
}

/// Numbers by round. `None` if a round lacks one.
type Series = Option<Vec<f64>>;

fn throughput(output: &Value) -> Option<f64> {
    output["throughput"].as_f64()
}

fn beside(output: &Value) -> Option<f64> {
    output["beside"]["throughput"].as_f64()
}

fn per_work(output: &Value, field: &str) -> Option<f64> {
    Some(output[field].as_f64()? / output["work"].as_f64()?)
}

fn joules(output: &Value) -> Option<f64> {
    Some(output["watts"].as_f64()? / throughput(output)?)
}

fn spread(series: Series) -> Option<Spread> {
    Spread::of(&series?)
}

fn ratio(of: Series, base: Series) -> Option<Spread> {
    pairwise(&of?, &base?, Compare::Ratio)
}

impl Measured {
    pub fn new(paper: &'static str, amount: u64, measured: harness::Measured) -> Measured {
        let figures = measured.cells.iter().map(|cell| figures(cell, &measured.cells)).collect();
        Measured { paper, amount, measured, figures }
    }
}

fn figures(cell: &Cell, cells: &[Cell]) -> Figures {
    // All scenarios come from SCENES.
    let scene = Scene::named(cell.scenario).expect("a scene");
    let series = |name: &str, of: fn(&Value) -> Option<f64>| -> Series {
        cells.iter().find(|c| c.scenario == name)?.series(of)
    };
    let base = if scene.pair == Some(Pair::Mixed) { NEIGHBOUR } else { ALONE };
    let sleep = SCENES.iter().find(|s| s.pair == scene.pair && s.policy == Some(Idle::Sleep));
    let to_sleep = |of: fn(&Value) -> Option<f64>| ratio(cell.series(of), series(sleep?.name, of));
    let is_pair = scene.pair.is_some();
    Figures {
        pair: scene.pair,
        policy: scene.policy_name(),
        program: ratio(cell.series(throughput), series(ALONE, throughput)).filter(|_| is_pair),
        beside: ratio(cell.series(beside), series(base, throughput)),
        switches: spread(cell.series(|o| o["context_switches"].as_f64())),
        switches_per_second: spread(
            cell.series(|o| Some(per_work(o, "context_switches")? * throughput(o)?)),
        ),
        switches_per_work: spread(cell.series(|o| per_work(o, "context_switches"))),
        cpu_per_work: spread(cell.series(|o| per_work(o, "cpu_seconds"))),
        watts: spread(cell.series(|o| o["watts"].as_f64())),
        joules_per_work: spread(cell.series(joules)),
        to_sleep: ToSleep {
            program: to_sleep(throughput),
            beside: to_sleep(beside),
            switches: to_sleep(|o| per_work(o, "context_switches")),
            cpu: to_sleep(|o| per_work(o, "cpu_seconds")),
            joules: to_sleep(joules),
        },
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::super::harness::{
        Group, Metric, Outcome, Ran, Sample, Scenario, Turn, measure,
    };
    use super::*;
    use serde_json::json;

    /// Make a group of three rounds. Throughput: alone 100, mixed 40 (sleep 50) beside 30 of 60,
    /// same 45 beside 45.
    pub fn group() -> Measured {
        let scenario = |scene: &Scene| Scenario {
            name: scene.name,
            switch: scene.policy.map(|_| "auto"),
            around: vec![],
            command: vec![],
            effort: None,
        };
        let metric = Metric { field: "throughput", unit: "MiB a second", compare: Compare::Ratio };
        let group = Group {
            workload: "dedup".into(),
            threads: 2,
            scenarios: SCENES.iter().map(scenario).collect(),
            ..Group::of(metric)
        };
        let measured = measure(&group, 3, |scenario, turn, _| {
            // A spread of 2%.
            let factor = if turn == Turn::Round(2) { 1.02 } else { 1.0 };
            let (value, beside) = match scenario.name {
                ALONE => (100.0, None),
                NEIGHBOUR => (60.0, None),
                "mixed sleep" => (50.0, Some(30.0)),
                name if name.starts_with("mixed") => (40.0, Some(30.0)),
                _ => (45.0, Some(45.0)),
            };
            let mut output = json!({ "throughput": value * factor, "work": 20.0, "others": 0.0 });
            if scenario.name != NEIGHBOUR {
                let switches = if scenario.name == "mixed haltpoll" { 500 } else { 1000 };
                output["context_switches"] = json!(switches);
                output["cpu_seconds"] = json!(2.0);
            }
            if let Some(beside) = beside {
                output["beside"] = json!({ "throughput": beside * factor });
            }
            let sample = Sample { value, output, process: Default::default() };
            Ok::<_, ()>(Ran {
                outcome: Outcome::Done(sample),
                statistics: None,
                native_because: None,
                counted: None,
            })
        });
        Measured::new("dedup", 1, measured.expect("no errors"))
    }

    fn near(spread: Option<Spread>, value: f64) -> bool {
        spread.is_some_and(|s| (s.median - value).abs() < 1e-9)
    }

    #[test]
    fn throughput_is_set_against_alone_and_sleep() {
        let group = group();
        let of = |name: &str| {
            let place = group.measured.cells.iter().position(|c| c.scenario == name);
            &group.figures[place.expect("a cell")]
        };
        let mixed = of("mixed haltpoll");
        assert!(near(mixed.program, 0.4) && near(mixed.beside, 0.5));
        assert!(near(mixed.to_sleep.program, 0.8) && near(mixed.to_sleep.switches, 0.5));
        assert!(near(mixed.switches, 500.0) && near(mixed.switches_per_work, 25.0));
        assert!(near(mixed.switches_per_second, 1000.0) && near(mixed.cpu_per_work, 0.1));
        let same = of("same poll");
        assert!(near(same.program, 0.45) && near(same.beside, 0.45));
        assert!(of(ALONE).program.is_none() && of(ALONE).to_sleep.program.is_none());
        assert!(of(NEIGHBOUR).switches.is_none() && mixed.watts.is_none());
    }
}
