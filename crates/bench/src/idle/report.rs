//! Compute the figures of the policies from the samples. Nothing here starts a process or reads a
//! clock.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use super::super::harness::{self, Cell, Compare, NATIVE, Spread, State, pairwise};
use super::super::machine::Machine;
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
pub struct Report {
    pub version: &'static str,
    pub benchmark: &'static str,
    /// Time of the start, in seconds since 1970.
    pub time: u64,
    pub machine: Machine,
    pub options: Options,
    pub parameters: Value,
    pub groups: Vec<Measured>,
    pub targets: Vec<Target>,
    pub notes: Vec<String>,
    /// The signal that interrupted the benchmark.
    pub interrupted: Option<i32>,
}

impl Report {
    /// Return 128 + the signal if interrupted, 1 if something failed or was too slow, else 0. A
    /// missed target is a result, not a failure.
    pub fn exit_code(&self) -> i32 {
        if let Some(signal) = self.interrupted {
            return 128 + signal;
        }
        i32::from(self.groups.iter().flat_map(|g| &g.measured.cells).any(|c| c.state != State::Ok))
    }
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
#[derive(Serialize)]
pub struct Figures {
    pub scenario: &'static str,
    /// Throughput of the program, relative to native.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Spread>,
    /// Throughput of the program that computes, relative to native.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computes: Option<Spread>,
    /// Geometric mean of both ratios. For a program alone, its own ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub both: Option<Spread>,
    /// Voluntary context switches a second, of both programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary: Option<Spread>,
    /// Involuntary context switches a second, of both programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary: Option<Spread>,
    /// CPU seconds a second that the program uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Spread>,
    /// CPU seconds a second that the program that computes uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_of_other: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<Spread>,
}

/// Numbers by round. `None` if a round lacks one.
type Series = Option<Vec<f64>>;

fn per_second(output: &Value, field: &str) -> Option<f64> {
    Some(output[field].as_f64()? / output["seconds"].as_f64()?)
}

/// Throughput of a cell, by round: units of work a second.
struct Throughput {
    program: Series,
    computes: Series,
}

impl Throughput {
    fn of(cell: &Cell) -> Throughput {
        Throughput {
            program: cell.series(|o| Some(1e6 / o["us_per_round"].as_f64()?)),
            computes: cell.series(|o| o["beside"]["per_second"].as_f64()),
        }
    }

    fn ratio(of: &Series, base: &Series) -> Series {
        let pairs = of.as_ref()?.iter().zip(base.as_ref()?);
        Some(pairs.map(|(a, b)| a / b).collect())
    }

    /// Return the ratios of the program, of the program that computes, and their geometric mean.
    /// The mean of one program alone is its own ratio.
    fn against(&self, base: &Throughput) -> (Series, Series, Series) {
        let program = Throughput::ratio(&self.program, &base.program);
        let computes = Throughput::ratio(&self.computes, &base.computes);
        let both = match (&program, &computes) {
            (Some(p), Some(c)) => Some(p.iter().zip(c).map(|(p, c)| (p * c).sqrt()).collect()),
            _ => program.clone(),
        };
        (program, computes, both)
    }
}

fn spread(series: &Series) -> Option<Spread> {
    Spread::of(series.as_ref()?)
}

impl Measured {
    pub fn new(kind: Kind, measured: harness::Measured) -> Measured {
        let native = measured.cells.iter().find(|c| c.scenario == NATIVE).map(Throughput::of);
        let figures = measured.cells.iter().map(|cell| figures(cell, native.as_ref())).collect();
        Measured { kind, measured, figures }
    }

    pub fn name(&self) -> String {
        format!("{}, {} threads", self.measured.workload, self.measured.threads)
    }

    pub fn cell(&self, policy: Idle) -> Option<&Cell> {
        self.measured.cells.iter().find(|c| c.scenario == policy.name() && c.state == State::Ok)
    }
}

fn figures(cell: &Cell, native: Option<&Throughput>) -> Figures {
    let mut throughput = (None, None, None);
    if let Some(native) = native.filter(|_| cell.scenario != NATIVE) {
        throughput = Throughput::of(cell).against(native);
    }
    let all = |field: &'static str| {
        spread(&cell.series(|o| {
            Some(per_second(o, field)? + per_second(&o["beside"], field).unwrap_or(0.0))
        }))
    };
    Figures {
        scenario: cell.scenario,
        program: spread(&throughput.0),
        computes: spread(&throughput.1),
        both: spread(&throughput.2),
        voluntary: all("voluntary"),
        involuntary: all("involuntary"),
        cpus: spread(&cell.series(|o| per_second(o, "cpu_seconds"))),
        cpus_of_other: spread(&cell.series(|o| per_second(&o["beside"], "cpu_seconds"))),
        watts: spread(&cell.series(|o| o["watts"].as_f64())),
    }
}

/// Maximum loss of throughput against the better policy that still reaches the target.
const LESS: f64 = 0.03;
/// Maximum additional CPU time of an almost idle program that still reaches the target, in percent
/// of a CPU.
const MORE: f64 = 2.0;

/// Comparison of `haltpoll` with the better of `sleep` and `poll`; in the part `idle` with `sleep`.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Spread>,
    /// Relative throughput of the program that computes, in pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    let own = Throughput::of(haltpoll);
    let of = |policy| {
        let cell = group.cell(policy)?;
        let (program, computes, both) = own.against(&Throughput::of(cell));
        Some((cell.scenario, spread(&both)?, spread(&program), spread(&computes)))
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
    use super::super::super::harness::{Metric, Outcome, Ran, Sample, Scenario, Turn};
    use super::*;
    use serde_json::json;

    /// Make a group of three rounds. `values`: for native and each policy, the microseconds per
    /// round of the program and the rate of the program that computes.
    pub fn group(kind: Kind, values: [(f64, f64); 4]) -> Measured {
        let scenario = |name| Scenario {
            name,
            switch: Some("auto"),
            around: vec![],
            command: vec![],
            effort: None,
        };
        let names = [NATIVE, "sleep", "poll", "haltpoll"];
        let (field, unit, compare) = match kind {
            Kind::Idle => ("cpu_percent", "% of a CPU", Compare::Difference),
            _ => ("us_per_round", "us a round", Compare::Ratio),
        };
        let group = harness::Group {
            workload: "gomp-barrier".into(),
            threads: 128,
            scenarios: names.map(scenario).into(),
            ..harness::Group::of(Metric { field, unit, compare })
        };
        let measured = harness::measure(&group, 3, |scenario, turn, _| {
            let (us, rate) =
                values[names.iter().position(|n| *n == scenario.name).expect("its name")];
            // A spread of 2%.
            let factor = if turn == Turn::Round(2) { 1.02 } else { 1.0 };
            let mut output = json!({ "seconds": 0.5, "cpu_seconds": 0.75, "voluntary": 5000, "involuntary": 10, "others": 0.0 });
            output[field] = json!(us * factor);
            if kind == Kind::Pair {
                output["beside"] = json!({ "seconds": 0.6, "cpu_seconds": 0.6, "voluntary": 6, "involuntary": 600, "per_second": rate });
            }
            let sample = Sample { value: us * factor, output, process: Default::default() };
            Ok::<_, ()>(Ran {
                outcome: Outcome::Done(sample),
                statistics: None,
                native_because: None,
                counted: None,
            })
        });
        Measured::new(kind, measured.expect("no errors"))
    }

    fn near(spread: Option<Spread>, value: f64) -> bool {
        spread.is_some_and(|s| (s.median - value).abs() < 1e-9)
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
