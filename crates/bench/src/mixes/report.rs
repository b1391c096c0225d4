//! Compute the figures of the mixes from the runs. Nothing here starts a process or reads a clock.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use super::super::harness::{Spread, State};
use super::super::machine::Machine;
use super::play::Run;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Scenario {
    /// Natively, each pinned to half of the CPUs, with one thread per CPU of its half
    Stock,
    /// Natively, N pinned to half of the CPUs, M on all
    Oversubscription,
    /// Natively, both on all CPUs
    Native,
    /// M under `lissom run`, N natively
    Lissom,
    /// M under `lissom run`, N natively, with `lissom manager`
    Manager,
    /// Scenario `manager` with at most this number of CPUs for M.
    #[value(skip)]
    Capped(u32),
}

impl Scenario {
    pub fn name(self) -> String {
        match self {
            Scenario::Stock => "stock".into(),
            Scenario::Oversubscription => "oversubscription".into(),
            Scenario::Native => "native".into(),
            Scenario::Lissom => "lissom".into(),
            Scenario::Manager => "manager".into(),
            Scenario::Capped(cpus) => format!("manager, cap {cpus}"),
        }
    }
}

impl Serialize for Scenario {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

/// Runs of each program alone on all CPUs, in one round.
#[derive(Serialize)]
pub struct Alone {
    pub rigid: Vec<Run>,
    pub malleable: Vec<Run>,
    /// Runs of the malleable program under lissom, with its number of threads there.
    pub under_lissom: Vec<Run>,
    /// Fraction of the CPUs that other processes used: the largest of the three.
    pub others: f64,
}

/// Runs of one scenario, in one round.
#[derive(Serialize)]
pub struct Round {
    pub rigid: Vec<Run>,
    pub malleable: Vec<Run>,
    /// Fraction of the CPUs that processes outside the benchmark used, or the host of a virtual
    /// machine.
    pub others: f64,
    /// Fraction of one CPU that the manager itself used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager_cpu: Option<f64>,
}

#[derive(Serialize)]
pub struct Cell {
    pub scenario: Scenario,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Figures>,
    pub rounds: Vec<Round>,
}

/// Figures of a scenario over all rounds. Ratios compare runs of the same round.
#[derive(Clone, Serialize)]
pub struct Figures {
    /// Seconds of a run of N: for each round, the geometric mean of its complete runs.
    pub rigid: Spread,
    /// Seconds of a run of M: for each round, the geometric mean of its complete runs.
    pub malleable: Spread,
    /// Time of N relative to its time alone.
    pub rigid_slowdown: Spread,
    /// Time of M relative to its time alone.
    pub malleable_slowdown: Spread,
    /// System throughput: the sum of time alone / time here of both programs.
    pub stp: Spread,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_stock: Option<Relative>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager_cpu: Option<Spread>,
}

/// Speeds relative to the scenario `stock`, as in the paper.
#[derive(Clone, Serialize)]
pub struct Relative {
    pub rigid: Spread,
    pub malleable: Spread,
    /// Mean of both speeds.
    pub stp: Spread,
}

#[derive(Serialize)]
pub struct Mix {
    pub rigid: &'static str,
    pub malleable: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Figures of each program alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<AloneFigures>,
    pub cells: Vec<Cell>,
    pub rounds_alone: Vec<Alone>,
}

#[derive(Clone, Serialize)]
pub struct AloneFigures {
    /// Seconds of a run of N.
    pub rigid: Spread,
    /// Seconds of a native run of M.
    pub malleable: Spread,
    /// Seconds of a run of M under lissom.
    pub under_lissom: Spread,
    /// Fraction of the CPUs that N leaves idle.
    pub rigid_idle: Spread,
}

pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0), |(sum, n), v| (sum + v.ln(), n + 1));
    (sum / f64::from(count)).exp()
}

fn seconds(runs: &[Run]) -> f64 {
    geometric_mean(runs.iter().map(|r| r.seconds))
}

/// Return the fraction of `cpus` that the runs left idle.
fn idle(runs: &[Run], cpus: u32) -> f64 {
    let (used, there) =
        runs.iter().fold((0.0, 0.0), |(u, t), r| (u + r.cpu_seconds, t + r.seconds));
    (1.0 - used / (there * f64::from(cpus))).max(0.0)
}

impl Mix {
    pub fn name(&self) -> String {
        format!("{} + {}", self.rigid, self.malleable)
    }

    /// Return the largest fraction of the CPUs that other processes used in any round.
    pub fn others(&self) -> f64 {
        let alone = self.rounds_alone.iter().map(|a| a.others);
        alone.chain(self.cells.iter().flat_map(|c| &c.rounds).map(|r| r.others)).fold(0.0, f64::max)
    }

    /// Compute the figures from the rounds. `cpus`: number of CPUs of the benchmark.
    pub fn reckon(&mut self, cpus: u32) {
        let alone = |of: fn(&Alone) -> &Vec<Run>| -> Vec<f64> {
            self.rounds_alone.iter().map(|a| seconds(of(a))).collect()
        };
        let (rigid, malleable) = (alone(|a| &a.rigid), alone(|a| &a.malleable));
        let idle: Vec<f64> = self.rounds_alone.iter().map(|a| idle(&a.rigid, cpus)).collect();
        self.alone = figures_alone(&rigid, &malleable, &alone(|a| &a.under_lissom), &idle);
        let stock =
            self.cells.iter().find(|c| c.scenario == Scenario::Stock && c.state == State::Ok);
        let base = stock.map(|c| Times::of(&c.rounds, &rigid, &malleable));
        for cell in &mut self.cells {
            let times = Times::of(&cell.rounds, &rigid, &malleable);
            cell.result = match cell.state {
                State::Ok => times.figures(base.as_ref(), &cell.rounds),
                _ => None,
            };
        }
    }

    pub fn figures(&self, scenario: Scenario) -> Option<&Figures> {
        self.cells.iter().find(|c| c.scenario == scenario)?.result.as_ref()
    }
}

fn figures_alone(
    rigid: &[f64],
    malleable: &[f64],
    under_lissom: &[f64],
    idle: &[f64],
) -> Option<AloneFigures> {
    Some(AloneFigures {
        rigid: Spread::of(rigid)?,
        malleable: Spread::of(malleable)?,
        under_lissom: Spread::of(under_lissom)?,
        rigid_idle: Spread::of(idle)?,
    })
}

/// Times of a scenario, by round.
struct Times {
    rigid: Vec<f64>,
    malleable: Vec<f64>,
    /// Times of N and M relative to their times alone.
    slowdowns: Vec<(f64, f64)>,
    stp: Vec<f64>,
}

impl Times {
    fn of(rounds: &[Round], rigid_alone: &[f64], malleable_alone: &[f64]) -> Times {
        let rigid: Vec<f64> = rounds.iter().map(|r| seconds(&r.rigid)).collect();
        let malleable: Vec<f64> = rounds.iter().map(|r| seconds(&r.malleable)).collect();
        let over = |times: &[f64], alone: &[f64]| -> Vec<f64> {
            times.iter().zip(alone).map(|(t, a)| t / a).collect()
        };
        let slowdowns: Vec<(f64, f64)> =
            over(&rigid, rigid_alone).into_iter().zip(over(&malleable, malleable_alone)).collect();
        let stp = slowdowns.iter().map(|(a, b)| 1.0 / a + 1.0 / b).collect();
        Times { rigid, malleable, slowdowns, stp }
    }

    fn relative_to(&self, base: &Times) -> Option<Relative> {
        let speeds = |of: fn(&Times) -> &Vec<f64>| -> Vec<f64> {
            of(base).iter().zip(of(self)).map(|(stock, here)| stock / here).collect()
        };
        let (rigid, malleable) = (speeds(|t| &t.rigid), speeds(|t| &t.malleable));
        let means: Vec<f64> = rigid.iter().zip(&malleable).map(|(n, m)| (n + m) / 2.0).collect();
        Some(Relative {
            rigid: Spread::of(&rigid)?,
            malleable: Spread::of(&malleable)?,
            stp: Spread::of(&means)?,
        })
    }

    fn figures(&self, base: Option<&Times>, rounds: &[Round]) -> Option<Figures> {
        let each = |of: fn(&(f64, f64)) -> f64| {
            Spread::of(&self.slowdowns.iter().map(of).collect::<Vec<f64>>())
        };
        let manager: Vec<f64> = rounds.iter().filter_map(|r| r.manager_cpu).collect();
        Some(Figures {
            rigid: Spread::of(&self.rigid)?,
            malleable: Spread::of(&self.malleable)?,
            rigid_slowdown: each(|s| s.0)?,
            malleable_slowdown: each(|s| s.1)?,
            stp: Spread::of(&self.stp)?,
            to_stock: base.and_then(|base| self.relative_to(base)),
            manager_cpu: Spread::of(&manager),
        })
    }
}

/// Geometric means of a scenario over mixes.
#[derive(Serialize)]
pub struct Summary {
    pub scenario: Scenario,
    /// Fraction of the CPUs that N leaves idle at least; other mixes do not count.
    pub idle_at_least: f64,
    /// Number of mixes that count.
    pub mixes: usize,
    pub stp: f64,
    pub rigid_slowdown: f64,
    pub malleable_slowdown: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_stock: Option<Means>,
}

/// Geometric means of `Relative` over mixes.
#[derive(Serialize)]
pub struct Means {
    pub rigid: f64,
    pub malleable: f64,
    pub stp: f64,
}

impl Means {
    fn of(list: &[&Relative]) -> Means {
        let mean = |what: fn(&Relative) -> f64| geometric_mean(list.iter().map(|r| what(r)));
        Means {
            rigid: mean(|r| r.rigid.median),
            malleable: mean(|r| r.malleable.median),
            stp: mean(|r| r.stp.median),
        }
    }
}

/// Fraction of idle CPUs above which a manager should improve the throughput.
pub const IDLE: f64 = 0.4;

pub fn summaries(mixes: &[Mix], scenarios: &[Scenario]) -> Vec<Summary> {
    let mut list = Vec::new();
    for idle_at_least in [0.0, IDLE] {
        for &scenario in scenarios {
            let idle =
                |m: &&Mix| m.alone.as_ref().is_some_and(|a| a.rigid_idle.median >= idle_at_least);
            let of: Vec<&Figures> =
                mixes.iter().filter(idle).filter_map(|m| m.figures(scenario)).collect();
            if of.is_empty() {
                continue;
            }
            let mean = |what: fn(&Figures) -> f64| geometric_mean(of.iter().map(|f| what(f)));
            let relative: Option<Vec<&Relative>> = of.iter().map(|f| f.to_stock.as_ref()).collect();
            list.push(Summary {
                scenario,
                idle_at_least,
                mixes: of.len(),
                stp: mean(|f| f.stp.median),
                rigid_slowdown: mean(|f| f.rigid_slowdown.median),
                malleable_slowdown: mean(|f| f.malleable_slowdown.median),
                to_stock: relative.map(|list| Means::of(&list)),
            });
        }
    }
    list
}

/// Distribution of a program's number of runnable threads over time.
#[derive(Serialize)]
pub struct Profile {
    pub program: &'static str,
    pub threads: u32,
    pub seconds: f64,
    /// Element i is the share of the time with i runnable threads, the last one with i or more.
    pub shares: Vec<f64>,
}

/// Time of a program, by its number of threads.
#[derive(Serialize)]
pub struct Scaling {
    pub program: &'static str,
    pub points: Vec<Point>,
}

#[derive(Serialize)]
pub struct Point {
    pub threads: u32,
    pub seconds: Spread,
    /// Speedup over one thread in the same round.
    pub speedup: Spread,
}

#[derive(Serialize)]
pub struct Options {
    pub cpus: u32,
    pub switch: &'static str,
    /// Threads of M, except in `stock`.
    pub malleable_threads: u32,
    /// Threads of N, except in `stock`.
    pub rigid_threads: u32,
    /// OpenMP's wait policy in native runs: `passive` or `default`.
    pub wait_policy: &'static str,
    /// Number of rounds.
    pub runs: usize,
    /// Minimum number of complete runs of each program in a scenario.
    pub completed: usize,
    pub timeout: f64,
    pub scale: f64,
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
    pub mixes: Vec<Mix>,
    pub summary: Vec<Summary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<Profile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
    pub notes: Vec<String>,
    /// The signal that interrupted the benchmark.
    pub interrupted: Option<i32>,
}

impl Report {
    /// Return 128 + the signal if interrupted, 1 if something failed or was too slow under lissom,
    /// else 0. A native scenario that is too slow is a result.
    pub fn exit_code(&self) -> i32 {
        if let Some(signal) = self.interrupted {
            return 128 + signal;
        }
        let managed = |s| matches!(s, Scenario::Lissom | Scenario::Manager | Scenario::Capped(_));
        let bad =
            |c: &Cell| c.state == State::Failed || c.state == State::Timeout && managed(c.scenario);
        i32::from(self.mixes.iter().any(|m| m.error.is_some() || m.cells.iter().any(bad)))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn runs(seconds: &[f64]) -> Vec<Run> {
        seconds.iter().map(|&seconds| Run { seconds, cpu_seconds: seconds }).collect()
    }

    fn cell(scenario: Scenario, rigid: &[f64], malleable: &[f64]) -> Cell {
        let round = Round {
            rigid: runs(rigid),
            malleable: runs(malleable),
            others: 0.2,
            manager_cpu: None,
        };
        Cell { scenario, state: State::Ok, error: None, result: None, rounds: vec![round] }
    }

    /// Make a mix on two CPUs. Alone, N takes 1 s and uses one CPU, and M takes 2 s.
    pub fn mix() -> Mix {
        let alone = Alone {
            rigid: runs(&[1.0]),
            malleable: runs(&[2.0]),
            under_lissom: runs(&[2.5]),
            others: 0.0,
        };
        let mut failed = cell(Scenario::Manager, &[], &[]);
        (failed.state, failed.error) = (State::Failed, Some("lissom manager has ended".into()));
        let mut mix = Mix {
            rigid: "blackscholes",
            malleable: "ep",
            error: None,
            alone: None,
            cells: vec![
                cell(Scenario::Stock, &[1.0, 4.0], &[4.0, 4.0, 4.0]),
                cell(Scenario::Lissom, &[1.25], &[2.5]),
                failed,
            ],
            rounds_alone: vec![alone],
        };
        mix.reckon(2);
        mix
    }

    #[test]
    fn figures_of_a_mix() {
        let mix = mix();
        assert_eq!(mix.alone.as_ref().map(|a| a.rigid_idle.median), Some(0.5));
        let stock = mix.figures(Scenario::Stock).expect("figures");
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(stock.rigid.median, 2.0);
        near(stock.stp.median, 1.0);
        let lissom = mix.figures(Scenario::Lissom).expect("figures");
        near(lissom.stp.median, 1.6);
        near(lissom.rigid_slowdown.median, 1.25);
        let relative = lissom.to_stock.as_ref().expect("ratios");
        near(relative.rigid.median, 1.6);
        near(relative.malleable.median, 1.6);
        near(relative.stp.median, 1.6);
        assert!(mix.figures(Scenario::Manager).is_none());
    }

    #[test]
    fn summaries_are_of_what_there_is() {
        let all = [Scenario::Stock, Scenario::Lissom, Scenario::Manager];
        let (mut idle, mut busy) = (mix(), mix());
        busy.rounds_alone[0].rigid[0].cpu_seconds = 2.0;
        idle.reckon(2);
        busy.reckon(2);
        let list = summaries(&[idle, busy], &all);
        let counts: Vec<(Scenario, f64, usize)> =
            list.iter().map(|s| (s.scenario, s.idle_at_least, s.mixes)).collect();
        let expected = [
            (Scenario::Stock, 0.0, 2),
            (Scenario::Lissom, 0.0, 2),
            (Scenario::Stock, IDLE, 1),
            (Scenario::Lissom, IDLE, 1),
        ];
        assert_eq!(counts, expected);
        assert!((list[1].stp - 1.6).abs() < 1e-12);
    }
}
