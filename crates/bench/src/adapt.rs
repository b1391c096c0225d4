//! `lissom bench adapt`: the adaptive spin threshold, compared with fixed ones.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use ui::time::Unit;

use super::command::{self, words};
use super::harness::{Compare, Group, Measured, Scenario, Spread, State, pairwise};
use super::series::geometric_mean;
use super::sync::TIME;
use super::workload::{self, Calibration, Program, SPIN, SYNC};
use super::{Bench, Common, Session};
use runtime::abi;

/// Compare the adaptive spin threshold with fixed ones
///
/// Each program runs with --spin-threshold=auto and with each of --fixed, in turns.
///
///   mutex          one lock, 100 ns inside it and 100 ns outside
///   barrier        60 us between two barriers of pthreads
///   short-barrier  the same with 2 us
///   lock-pipeline  a token; each stage spins for a ticket lock; 2.5 us of work,
///                  divided among the stages, each time around
///
/// One half of the rounds selects the best fixed threshold for a program, and the
/// other half compares it with auto, and vice versa: the least of several noisy
/// numbers is too low.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct AdaptArgs {
    /// Patterns to measure [default: all]
    #[arg(value_name = "PATTERN", value_parser = clap::builder::PossibleValuesParser::new(names()))]
    pub patterns: Vec<String>,

    /// Numbers of threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2,8,32",
        value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    /// Fixed thresholds, 0s to 1ms
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "200ns,500ns,1500ns,4us,12us,50us",
        value_parser = ui::time::parser(Unit::Ns, "0s", "1ms"))]
    pub fixed: Vec<Duration>,

    #[command(flatten)]
    pub calibration: Calibration,

    #[command(flatten)]
    pub common: Common,
}

struct Pattern {
    name: &'static str,
    workload: &'static str,
    program: Program,
    /// Work of a round, in us: per thread, or if `split` per CPU, split among all threads.
    work: f64,
    split: bool,
    outside: f64,
    rounds: f64,
    /// In a round, all threads run one after the other, and the program divides `work` among them:
    /// divide `rounds` by their number.
    serial: bool,
}

const BARRIER: Pattern = Pattern {
    name: "barrier",
    workload: "barrier",
    program: SYNC,
    work: 60.0,
    split: true,
    outside: 0.0,
    rounds: 5000.0,
    serial: false,
};

const PATTERNS: [Pattern; 4] = [
    Pattern {
        name: "mutex",
        workload: "mutex",
        work: 0.1,
        split: false,
        outside: 0.1,
        rounds: 2e6,
        ..BARRIER
    },
    BARRIER,
    Pattern { name: "short-barrier", work: 2.0, rounds: 30_000.0, ..BARRIER },
    Pattern {
        name: "lock-pipeline",
        workload: "lock-pipeline",
        program: SPIN,
        work: 2.5,
        split: false,
        rounds: 100_000.0,
        serial: true,
        ..BARRIER
    },
];

const AUTO: &str = "auto";

fn names() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|p| p.name)
}

pub fn prepare(args: &AdaptArgs, session: &Session) -> anyhow::Result<Bench> {
    let per_us = args.calibration.per_us(session)?;
    let fixed_ns: Vec<u32> = args.fixed.iter().map(Duration::subsec_nanos).collect();
    // Names of scenarios are static: leak these.
    let fixed: Vec<(&'static str, u32)> =
        fixed_ns.iter().map(|&ns| (&*format!("{ns} ns").leak(), ns)).collect();
    let mut groups = Vec::new();
    for pattern in PATTERNS.iter().filter(|p| super::is_chosen(&args.patterns, p.name)) {
        let program = workload::compile(session, pattern.program)?;
        for switch in args.common.switches() {
            for &threads in &args.threads {
                let words =
                    pattern.command(&program, threads, session.cpus(), per_us, args.common.scale);
                let scenario = |name, value: String| Scenario {
                    around: command::with_variable(abi::ENV_SPIN_THRESHOLD, value),
                    ..Scenario::of(name, Some(switch), words.clone())
                };
                let mut scenarios = vec![scenario(AUTO, AUTO.into())];
                scenarios.extend(fixed.iter().map(|&(name, ns)| scenario(name, ns.to_string())));
                groups.push(Group {
                    workload: format!("{}, --switch={switch}", pattern.name),
                    threads,
                    scenarios,
                    ..Group::of(TIME)
                });
            }
        }
    }
    Ok(Bench {
        name: "adapt",
        timeout: args.common.timeout(60.0),
        groups,
        parameters: json!({ "iterations_per_us": per_us, "fixed_ns": fixed_ns }),
        summary: Some(summary),
        ..Bench::default()
    })
}

impl Pattern {
    fn command(
        &self,
        program: &Path,
        threads: u32,
        cpus: u32,
        per_us: f64,
        scale: f64,
    ) -> Vec<OsString> {
        let work = if self.split { self.work * f64::from(cpus) } else { self.work };
        let rounds = if self.serial { self.rounds / f64::from(threads) } else { self.rounds };
        let options = [
            ("--threads", threads.into()),
            ("--work", (work * per_us).round()),
            ("--outside", (self.outside * per_us).round()),
            ("--rounds", (rounds * scale).ceil()),
        ];
        let mut command = command::workload(program, self.workload, &options);
        if self.program == SPIN {
            command.extend(words!["--lock", "ticket"]);
        }
        command
    }
}

/// Compare auto with the best fixed threshold of each row, and with each threshold over all rows.
fn summary(groups: &[Measured]) -> Vec<String> {
    let row = |group: &Measured| {
        let (ratio, best) = against_best(&series(group))?;
        Some(format!(
            "{}: auto takes {:.2} ({:.2}-{:.2}) x the time of the best fixed threshold ({best}).",
            group.place(),
            ratio.median,
            ratio.least,
            ratio.most
        ))
    };
    let mut lines: Vec<String> = groups.iter().filter_map(row).collect();
    let overall = over_all(groups);
    if !overall.is_empty() {
        let list: Vec<String> = overall.iter().map(|(name, x)| format!("{name} {x:.2}")).collect();
        lines.push(format!(
            "Over all rows (geometric mean), time with a fixed threshold divided by that of auto: {}.",
            list.join(", ")
        ));
    }
    lines
}

/// Return the values, by round, of each scenario that completed all rounds. Auto comes first.
fn series(group: &Measured) -> Vec<(&'static str, Vec<f64>)> {
    let whole = group.cells.iter().filter(|c| c.state == State::Ok);
    whole.map(|c| (c.scenario, c.values())).collect()
}

fn median_of(values: &[f64], keep: impl Fn(usize) -> bool) -> f64 {
    let kept: Vec<f64> =
        values.iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, v)| *v).collect();
    Spread::of(&kept).map_or(f64::INFINITY, |s| s.median)
}

/// Return the ratios of auto to the best fixed threshold, round by round. That threshold is the
/// best in the other half of the rounds. Also returns the threshold that is best in all rounds.
fn against_best(series: &[(&'static str, Vec<f64>)]) -> Option<(Spread, &'static str)> {
    let (&(first, ref auto), fixed) = series.split_first()?;
    if first != AUTO || auto.len() < 2 || fixed.is_empty() {
        return None;
    }
    let best = |keep: &dyn Fn(usize) -> bool| {
        fixed.iter().min_by(|a, b| median_of(&a.1, keep).total_cmp(&median_of(&b.1, keep)))
    };
    let halves = [best(&|i| i % 2 == 1)?, best(&|i| i % 2 == 0)?];
    let ratios: Vec<f64> =
        auto.iter().enumerate().filter_map(|(i, a)| Some(a / halves[i % 2].1.get(i)?)).collect();
    Some((Spread::of(&ratios)?, best(&|_| true)?.0))
}

/// Return the geometric mean, over all groups, of each fixed threshold's time / auto's.
fn over_all(groups: &[Measured]) -> Vec<(&'static str, f64)> {
    let Some(first) = groups.first() else { return Vec::new() };
    let mean = |name: &'static str| {
        let ratio = |group| {
            let series = series(group);
            let of = |name| series.iter().find(|s| s.0 == name).map(|s| &s.1[..]);
            Some(pairwise(of(name)?, of(AUTO)?, Compare::Ratio)?.median)
        };
        let ratios: Option<Vec<f64>> = groups.iter().map(ratio).collect();
        Some((name, geometric_mean(ratios?)))
    };
    first.cells.iter().filter(|c| c.scenario != AUTO).filter_map(|c| mean(c.scenario)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_chosen_by_the_other_half() {
        // By luck, `low` is best in even rounds, but not in odd ones.
        let series = [
            (AUTO, vec![10.0; 6]),
            ("low", vec![5.0, 20.0, 5.0, 20.0, 5.0, 20.0]),
            ("even", vec![10.0; 6]),
        ];
        let (ratio, _) = against_best(&series).expect("a comparison");
        // Even rounds are compared with the best of the odd ones (`even`: 1.0), odd rounds with
        // `low` (0.5).
        assert_eq!((ratio.least, ratio.median, ratio.most), (0.5, 0.75, 1.0));
    }

    #[test]
    fn one_round_says_nothing() {
        assert!(against_best(&[(AUTO, vec![1.0]), ("200 ns", vec![1.0])]).is_none());
        assert!(against_best(&[]).is_none());
    }

    #[test]
    fn a_pipeline_passes_the_token_as_often_with_any_number_of_threads() {
        let text = |threads| {
            let command = PATTERNS[3].command(Path::new("spin"), threads, 2, 100.0, 1.0);
            command::shown(&command).join(" ")
        };
        assert_eq!(
            text(8),
            "spin lock-pipeline --threads 8 --work 250 --outside 0 --rounds 12500 --lock ticket"
        );
        assert_eq!(
            text(2),
            "spin lock-pipeline --threads 2 --work 250 --outside 0 --rounds 50000 --lock ticket"
        );
    }
}
