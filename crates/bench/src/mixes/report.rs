//! Compute the figures of the mixes from the runs. Nothing here starts a process or reads a clock.

use clap::ValueEnum;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::super::harness::{Compare, Spread, State, pairwise};
use super::super::name_of;
use super::super::series::geometric_mean;
use super::WaitPolicy;
use super::pairs::Pair;
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
            Scenario::Capped(cpus) => format!("manager, cap {cpus}"),
            _ => name_of(&self),
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
#[skip_serializing_none]
#[derive(Serialize)]
pub struct Round {
    pub rigid: Vec<Run>,
    pub malleable: Vec<Run>,
    /// Fraction of the CPUs that processes outside the benchmark used, or the host of a virtual
    /// machine.
    pub others: f64,
    /// Fraction of one CPU that the manager itself used.
    pub manager_cpu: Option<f64>,
}

#[skip_serializing_none]
#[derive(Serialize)]
pub struct Cell {
    pub scenario: Scenario,
    pub state: State,
    pub error: Option<String>,
    pub result: Option<Figures>,
    pub rounds: Vec<Round>,
}

/// Figures of a scenario over all rounds. Ratios compare runs of the same round.
#[skip_serializing_none]
#[derive(Serialize)]
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
    pub to_stock: Option<Relative>,
    pub manager_cpu: Option<Spread>,
}

/// Speeds relative to the scenario `stock`, as in the paper.
#[derive(Serialize)]
pub struct Relative {
    pub rigid: Spread,
    pub malleable: Spread,
    /// Mean of both speeds.
    pub stp: Spread,
}

#[skip_serializing_none]
#[derive(Serialize)]
pub struct Mix {
    pub rigid: &'static str,
    pub malleable: &'static str,
    pub error: Option<String>,
    /// Figures of each program alone.
    pub alone: Option<AloneFigures>,
    pub cells: Vec<Cell>,
    pub rounds_alone: Vec<Alone>,
}

#[derive(Serialize)]
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

fn seconds(runs: &[Run]) -> f64 {
    geometric_mean(runs.iter().map(|r| r.seconds))
}

/// Return the fraction of `cpus` that the runs left idle.
fn idle(runs: &[Run], cpus: u32) -> f64 {
    let (used, there) =
        runs.iter().fold((0.0, 0.0), |(u, t), r| (u + r.cpu_seconds, t + r.seconds));
    (1.0 - used / (there * f64::from(cpus))).max(0.0)
}

impl Cell {
    /// Return a cell without rounds.
    pub fn of(scenario: Scenario) -> Cell {
        Cell { scenario, state: State::Ok, error: None, result: None, rounds: vec![] }
    }
}

impl Mix {
    /// Return a mix without rounds.
    pub fn of((rigid, malleable): Pair, scenarios: &[Scenario]) -> Mix {
        let cells = scenarios.iter().map(|&scenario| Cell::of(scenario)).collect();
        Mix { rigid, malleable, error: None, alone: None, cells, rounds_alone: vec![] }
    }

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
        let rounds = self.rounds_alone.iter();
        let alone = Times::of(rounds.map(|a| (&a.rigid, &a.malleable)));
        self.alone = self.figures_alone(&alone, cpus);
        let times = |c: &Cell| Times::of(c.rounds.iter().map(|r| (&r.rigid, &r.malleable)));
        let is_stock = |c: &&Cell| c.scenario == Scenario::Stock && c.state == State::Ok;
        let stock = self.cells.iter().find(is_stock).map(times);
        for cell in self.cells.iter_mut().filter(|c| c.state == State::Ok) {
            cell.result = times(cell).figures(&alone, stock.as_ref(), &cell.rounds);
        }
    }

    fn figures_alone(&self, alone: &Times, cpus: u32) -> Option<AloneFigures> {
        let spread = |of: &dyn Fn(&Alone) -> f64| {
            Spread::of(&self.rounds_alone.iter().map(of).collect::<Vec<f64>>())
        };
        Some(AloneFigures {
            rigid: Spread::of(&alone.rigid)?,
            malleable: Spread::of(&alone.malleable)?,
            under_lissom: spread(&|a| seconds(&a.under_lissom))?,
            rigid_idle: spread(&|a| idle(&a.rigid, cpus))?,
        })
    }

    pub fn figures(&self, scenario: Scenario) -> Option<&Figures> {
        self.cells.iter().find(|c| c.scenario == scenario)?.result.as_ref()
    }
}

/// Seconds of a run of N and of M, by round.
struct Times {
    rigid: Vec<f64>,
    malleable: Vec<f64>,
}

impl Times {
    fn of<'a>(rounds: impl Iterator<Item = (&'a Vec<Run>, &'a Vec<Run>)>) -> Times {
        let (rigid, malleable) = rounds.map(|(n, m)| (seconds(n), seconds(m))).unzip();
        Times { rigid, malleable }
    }

    /// Return the speeds of N and M relative to `base`, and their sum divided by `divisor`.
    fn speeds(&self, base: &Times, divisor: f64) -> Option<Relative> {
        let ratios = |base: &[f64], here: &[f64]| -> Vec<f64> {
            base.iter().zip(here).map(|(base, here)| base / here).collect()
        };
        let rigid = ratios(&base.rigid, &self.rigid);
        let malleable = ratios(&base.malleable, &self.malleable);
        let both: Vec<f64> = rigid.iter().zip(&malleable).map(|(n, m)| (n + m) / divisor).collect();
        Some(Relative {
            rigid: Spread::of(&rigid)?,
            malleable: Spread::of(&malleable)?,
            stp: Spread::of(&both)?,
        })
    }

    fn figures(&self, alone: &Times, stock: Option<&Times>, rounds: &[Round]) -> Option<Figures> {
        let manager: Vec<f64> = rounds.iter().filter_map(|r| r.manager_cpu).collect();
        Some(Figures {
            rigid: Spread::of(&self.rigid)?,
            malleable: Spread::of(&self.malleable)?,
            rigid_slowdown: pairwise(&self.rigid, &alone.rigid, Compare::Ratio)?,
            malleable_slowdown: pairwise(&self.malleable, &alone.malleable, Compare::Ratio)?,
            stp: self.speeds(alone, 1.0)?.stp,
            to_stock: stock.and_then(|stock| self.speeds(stock, 2.0)),
            manager_cpu: Spread::of(&manager),
        })
    }
}

/// Geometric means of a scenario over mixes.
#[skip_serializing_none]
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
    pub program: String,
    pub threads: u32,
    pub seconds: f64,
    /// Element i is the share of the time with i runnable threads, the last one with i or more.
    pub shares: Vec<f64>,
}

/// Time of a program, by its number of threads.
#[derive(Serialize)]
pub struct Scaling {
    pub program: String,
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
    /// OpenMP's wait policy in native runs.
    pub wait_policy: WaitPolicy,
    /// Number of rounds.
    pub runs: usize,
    /// Minimum number of complete runs of each program in a scenario.
    pub completed: usize,
    pub timeout: f64,
    pub scale: f64,
}

#[derive(Serialize)]
pub struct Mixes {
    pub mixes: Vec<Mix>,
    pub summary: Vec<Summary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<Profile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
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
        Cell { rounds: vec![round], ..Cell::of(scenario) }
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
        let stock = cell(Scenario::Stock, &[1.0, 4.0], &[4.0, 4.0, 4.0]);
        let lissom = cell(Scenario::Lissom, &[1.25], &[2.5]);
        let mut mix = Mix {
            cells: vec![stock, lissom, failed],
            rounds_alone: vec![alone],
            ..Mix::of(("blackscholes", "ep"), &[])
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
