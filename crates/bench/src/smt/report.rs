//! Compute the figures of the applications from the samples. Nothing here starts a process.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::super::harness::{self, Cell, Spread};
use super::super::series::{Read, ratio, spread_of};
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
pub struct Applications {
    pub groups: Vec<Measured>,
    pub left_out: Vec<LeftOut>,
}

#[derive(Serialize)]
pub struct LeftOut {
    pub application: &'static str,
    pub why: String,
    /// Whether the application is installed, but does not run.
    pub is_broken: bool,
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
#[skip_serializing_none]
#[derive(Serialize)]
pub struct Figures {
    #[serialize_always]
    pub pair: Option<Pair>,
    pub policy: &'static str,
    /// Throughput of the application, relative to the application alone, natively.
    pub program: Option<Spread>,
    /// Throughput of the program beside it, relative to that program alone, natively.
    pub beside: Option<Spread>,
    /// Context switches of all processes of the application in a run.
    pub switches: Option<Spread>,
    /// Context switches of the application a second.
    pub switches_per_second: Option<Spread>,
    /// Context switches of the application per unit of work.
    pub switches_per_work: Option<Spread>,
    /// CPU seconds of the application per unit of work.
    pub cpu_per_work: Option<Spread>,
    /// Power of the processors, by RAPL.
    pub watts: Option<Spread>,
    /// Joules of the processors per unit of the application's work.
    pub joules_per_work: Option<Spread>,
    /// Ratios to the policy `sleep` in the same pair.
    pub to_sleep: ToSleep,
}

#[skip_serializing_none]
#[derive(Serialize)]
pub struct ToSleep {
    /// Throughput of the application.
    pub program: Option<Spread>,
    /// Throughput of the program beside it.
    pub beside: Option<Spread>,
    /// Context switches per unit of work.
    pub switches: Option<Spread>,
    /// CPU seconds per unit of work.
    pub cpu: Option<Spread>,
    /// Joules per unit of work.
    pub joules: Option<Spread>,
}

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

impl Measured {
    pub fn new(paper: &'static str, amount: u64, measured: harness::Measured) -> Measured {
        let figures = measured.cells.iter().map(|cell| figures(cell, &measured.cells)).collect();
        Measured { paper, amount, measured, figures }
    }
}

fn figures(cell: &Cell, cells: &[Cell]) -> Figures {
    // All scenarios come from SCENES.
    let scene = Scene::named(cell.scenario).expect("a scene");
    let series = |name: &str, of: Read| cells.iter().find(|c| c.scenario == name)?.series(of);
    let base = if scene.pair == Some(Pair::Mixed) { NEIGHBOUR } else { ALONE };
    let sleep = SCENES.iter().find(|s| s.pair == scene.pair && s.policy == Some(Idle::Sleep));
    let to_sleep = |of: Read| ratio(cell.series(of), series(sleep?.name, of));
    let is_pair = scene.pair.is_some();
    let switches: Read = |o| per_work(o, "context_switches");
    let cpu: Read = |o| per_work(o, "cpu_seconds");
    Figures {
        pair: scene.pair,
        policy: scene.policy_name(),
        program: ratio(cell.series(throughput), series(ALONE, throughput)).filter(|_| is_pair),
        beside: ratio(cell.series(beside), series(base, throughput)),
        switches: spread_of(cell, |o| o["context_switches"].as_f64()),
        switches_per_second: spread_of(cell, |o| Some(switches(o)? * throughput(o)?)),
        switches_per_work: spread_of(cell, switches),
        cpu_per_work: spread_of(cell, cpu),
        watts: spread_of(cell, |o| o["watts"].as_f64()),
        joules_per_work: spread_of(cell, joules),
        to_sleep: ToSleep {
            program: to_sleep(throughput),
            beside: to_sleep(beside),
            switches: to_sleep(switches),
            cpu: to_sleep(cpu),
            joules: to_sleep(joules),
        },
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::super::harness::{Compare, Metric};
    use super::super::super::series::tests::{measured, near};
    use super::*;
    use serde_json::json;

    /// Make a group of three rounds. Throughput: alone 100, mixed 40 (sleep 50) beside 30 of 60,
    /// same 45 beside 45.
    pub fn group() -> Measured {
        let metric = Metric { field: "throughput", unit: "MiB a second", compare: Compare::Ratio };
        let names = SCENES.iter().map(|scene| scene.name);
        let measured = measured("dedup", 2, metric, names, |name, factor| {
            let (value, beside) = match name {
                ALONE => (100.0, None),
                NEIGHBOUR => (60.0, None),
                "mixed sleep" => (50.0, Some(30.0)),
                name if name.starts_with("mixed") => (40.0, Some(30.0)),
                _ => (45.0, Some(45.0)),
            };
            let mut output = json!({ "throughput": value * factor, "work": 20.0, "others": 0.0 });
            if name != NEIGHBOUR {
                let switches = if name == "mixed haltpoll" { 500 } else { 1000 };
                output["context_switches"] = json!(switches);
                output["cpu_seconds"] = json!(2.0);
            }
            if let Some(beside) = beside {
                output["beside"] = json!({ "throughput": beside * factor });
            }
            output
        });
        Measured::new("dedup", 1, measured)
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
