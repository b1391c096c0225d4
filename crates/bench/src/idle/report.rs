//! Compute the figures of the policies from the samples. Nothing here starts a process or reads a
//! clock.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::super::harness::{self, Cell, Compare, NATIVE, Spread, State, pairwise};
use super::super::series::{Read, Series, spread, spread_of};
use runtime::options::Idle;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Beside a program that computes
    Pair,
    /// Alone
    Alone,
    /// Almost idle programs, alone
    Idle,
}

#[derive(Serialize)]
pub struct Options {
    pub cpus: u32,
    pub rounds: usize,
    pub seconds: f64,
    pub timeout: f64,
    pub switch: &'static str,
    pub share: &'static str,
}

#[derive(Serialize)]
pub struct Policies {
    pub groups: Vec<Measured>,
    pub targets: Vec<Target>,
}

#[derive(Serialize)]
pub struct Measured {
    pub kind: Kind,
    #[serde(flatten)]
    pub measured: harness::Measured,
    /// The figures of each cell, in the same order.
    pub figures: Vec<Figures>,
}

/// Figures of a cell over all rounds. Ratios compare samples of the same round.
#[skip_serializing_none]
#[derive(Serialize)]
pub struct Figures {
    pub scenario: &'static str,
    /// Throughput of the program, relative to native.
    pub program: Option<Spread>,
    /// Throughput of the program that computes, relative to native.
    pub computes: Option<Spread>,
    /// Geometric mean of both ratios. For a program alone, its own ratio.
    pub both: Option<Spread>,
    /// Voluntary context switches a second, of both programs.
    pub voluntary: Option<Spread>,
    /// Involuntary context switches a second, of both programs.
    pub involuntary: Option<Spread>,
    /// CPU seconds a second that the program uses.
    pub cpus: Option<Spread>,
    /// CPU seconds a second that the program that computes uses.
    pub cpus_of_other: Option<Spread>,
    pub watts: Option<Spread>,
}

fn per_second(output: &Value, field: &str) -> Option<f64> {
    Some(output[field].as_f64()? / output["seconds"].as_f64()?)
}

/// Throughput of a cell relative to `base`, by round: of the program, of the program that computes,
/// and their geometric mean. The mean of one program alone is its own ratio.
fn throughput(cell: &Cell, base: &Cell) -> [Option<Spread>; 3] {
    let ratios = |of: Read| -> Series {
        let (here, base) = (cell.series(of)?, base.series(of)?);
        Some(here.iter().zip(&base).map(|(a, b)| a / b).collect())
    };
    let program = ratios(|o| Some(1e6 / o["us_per_round"].as_f64()?));
    let computes = ratios(|o| o["beside"]["per_second"].as_f64());
    let both = match (&program, &computes) {
        (Some(p), Some(c)) => Some(p.iter().zip(c).map(|(p, c)| (p * c).sqrt()).collect()),
        _ => program.clone(),
    };
    [program, computes, both].map(spread)
}

impl Measured {
    pub fn new(kind: Kind, measured: harness::Measured) -> Measured {
        let native = measured.cells.iter().find(|c| c.scenario == NATIVE);
        let figures = measured.cells.iter().map(|cell| figures(cell, native)).collect();
        Measured { kind, measured, figures }
    }

    pub fn cell(&self, policy: Idle) -> Option<&Cell> {
        self.measured.cells.iter().find(|c| c.scenario == policy.name() && c.state == State::Ok)
    }
}

fn figures(cell: &Cell, native: Option<&Cell>) -> Figures {
    let native = native.filter(|_| cell.scenario != NATIVE);
    let [program, computes, both] = native.map_or([None; 3], |native| throughput(cell, native));
    let all = |field: &'static str| {
        spread_of(cell, |o| {
            Some(per_second(o, field)? + per_second(&o["beside"], field).unwrap_or(0.0))
        })
    };
    Figures {
        scenario: cell.scenario,
        program,
        computes,
        both,
        voluntary: all("voluntary"),
        involuntary: all("involuntary"),
        cpus: spread_of(cell, |o| per_second(o, "cpu_seconds")),
        cpus_of_other: spread_of(cell, |o| per_second(&o["beside"], "cpu_seconds")),
        watts: spread_of(cell, |o| o["watts"].as_f64()),
    }
}

/// Maximum loss of throughput against the better policy that still reaches the target.
const LESS: f64 = 0.03;
/// Maximum additional CPU time of an almost idle program that still reaches the target, in percent
/// of a CPU.
const MORE: f64 = 2.0;

/// Comparison of `haltpoll` with the better of `sleep` and `poll`; in the part `idle` with `sleep`.
#[skip_serializing_none]
#[derive(Serialize)]
pub struct Target {
    pub kind: Kind,
    pub workload: String,
    pub threads: u32,
    pub against: &'static str,
    /// Throughput (in pairs: of both programs) relative to the better policy. In the part `idle`:
    /// additional CPU time, in percent of a CPU.
    pub value: Spread,
    /// Relative throughput of the program, in pairs.
    pub program: Option<Spread>,
    /// Relative throughput of the program that computes, in pairs.
    pub computes: Option<Spread>,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Verdict {
    #[serde(rename = "reached")]
    Reached,
    /// The median missed the target, but at least one round reached it.
    #[serde(rename = "missed, within the noise")]
    Unsure,
    #[serde(rename = "missed")]
    Missed,
}

impl Verdict {
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Reached => "reached",
            Verdict::Unsure => "missed (noise)",
            Verdict::Missed => "missed",
        }
    }

    /// `reached`: by the median. `best`: by the best round.
    fn of(reached: bool, best: bool) -> Verdict {
        match (reached, best) {
            (true, _) => Verdict::Reached,
            (false, true) => Verdict::Unsure,
            (false, false) => Verdict::Missed,
        }
    }
}

/// Compare `haltpoll` with the other policies. Returns `None` if a policy has no figures.
pub fn targets(group: &Measured) -> Option<Target> {
    let haltpoll = group.cell(Idle::Haltpoll)?;
    let target = |against, value: Spread, program, computes, verdict| Target {
        kind: group.kind,
        workload: group.measured.workload.clone(),
        threads: group.measured.threads,
        against,
        value,
        program,
        computes,
        verdict,
    };
    if group.kind == Kind::Idle {
        let sleep = group.cell(Idle::Sleep)?;
        let more = pairwise(&haltpoll.values(), &sleep.values(), Compare::Difference)?;
        let verdict = Verdict::of(more.median <= MORE, more.least <= MORE);
        return Some(target(sleep.scenario, more, None, None, verdict));
    }
    let of = |policy| {
        let cell = group.cell(policy)?;
        let [program, computes, both] = throughput(haltpoll, cell);
        Some((cell.scenario, both?, program, computes))
    };
    let (sleep, poll) = (of(Idle::Sleep)?, of(Idle::Poll)?);
    // The smaller the ratio, the better the policy that it compares with.
    let (against, value, program, computes) =
        if sleep.1.median <= poll.1.median { sleep } else { poll };
    let computes = computes.filter(|_| group.kind == Kind::Pair);
    let program = program.filter(|_| group.kind == Kind::Pair);
    let verdict = Verdict::of(value.median >= 1.0 - LESS, value.most >= 1.0 - LESS);
    Some(target(against, value, program, computes, verdict))
}

#[cfg(test)]
pub mod tests {
    use super::super::super::series::tests::{measured, near};
    use super::super::super::sync::TIME;
    use super::super::CPU;
    use super::*;
    use serde_json::json;

    /// Make a group of three rounds. `values`: for native and each policy, the microseconds per
    /// round of the program and the rate of the program that computes.
    pub fn group(kind: Kind, values: [(f64, f64); 4]) -> Measured {
        let names = [NATIVE, "sleep", "poll", "haltpoll"];
        let metric = if kind == Kind::Idle { CPU } else { TIME };
        let measured = measured("gomp-barrier", 128, metric, names, |name, factor| {
            let (us, rate) = values[names.iter().position(|n| *n == name).expect("its name")];
            let mut output = json!({ "seconds": 0.5, "cpu_seconds": 0.75, "voluntary": 5000, "involuntary": 10, "others": 0.0 });
            output[metric.field] = json!(us * factor);
            if kind == Kind::Pair {
                output["beside"] = json!({ "seconds": 0.6, "cpu_seconds": 0.6, "voluntary": 6, "involuntary": 600, "per_second": rate });
            }
            output
        });
        Measured::new(kind, measured)
    }

    #[test]
    fn throughput_of_both_is_set_against_native() {
        let group =
            group(Kind::Pair, [(100.0, 1000.0), (50.0, 900.0), (40.0, 400.0), (80.0, 1000.0)]);
        let sleep = &group.figures[1];
        assert!(near(sleep.program, 2.0) && near(sleep.computes, 0.9), "{:?}", sleep.program);
        assert!(near(sleep.both, 1.8f64.sqrt()));
        assert!(near(sleep.voluntary, 10_010.0) && near(sleep.involuntary, 1020.0));
        assert!(near(sleep.cpus, 1.5) && near(sleep.cpus_of_other, 1.0));
        assert!(group.figures[0].program.is_none() && sleep.watts.is_none());
    }

    #[test]
    fn haltpoll_is_set_against_the_better_one() {
        let target = |values| targets(&group(Kind::Pair, values)).expect("all have figures");
        let found = target([(100.0, 1000.0), (50.0, 900.0), (40.0, 400.0), (80.0, 1000.0)]);
        assert_eq!((found.against, found.verdict), ("sleep", Verdict::Missed));
        assert!(near(Some(found.value), (50.0f64 / 80.0 * 1000.0 / 900.0).sqrt()));
        assert!(near(found.program, 0.625));
        let found = target([(100.0, 1000.0), (50.0, 500.0), (40.0, 900.0), (41.0, 900.0)]);
        assert_eq!((found.against, found.verdict), ("poll", Verdict::Reached));
        let alone =
            targets(&group(Kind::Alone, [(10.0, 0.0), (20.0, 0.0), (30.0, 0.0), (19.0, 0.0)]));
        let alone = alone.expect("all have figures");
        assert!(
            alone.against == "sleep"
                && alone.computes.is_none()
                && near(Some(alone.value), 20.0 / 19.0)
        );
    }

    #[test]
    fn with_nothing_to_do_the_cpu_time_counts() {
        let found = |haltpoll| {
            targets(&group(Kind::Idle, [(0.5, 0.0), (1.0, 0.0), (90.0, 0.0), (haltpoll, 0.0)]))
        };
        let verdict = |haltpoll| found(haltpoll).expect("all have figures").verdict;
        assert_eq!(verdict(1.5), Verdict::Reached);
        assert_eq!(verdict(9.0), Verdict::Missed);
    }
}
