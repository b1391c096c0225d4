//! `lissom bench sync`: programs that only synchronize, one per pattern.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use itertools::Itertools as _;
use serde_json::json;

use super::command::{add, words};
use super::harness::{Compare, Group, Metric};
use super::workload::{self, Calibration, Program, SYNC, SYNC_OMP};
use super::{Bench, Common, Session, scenarios};

/// Measure synchronization patterns: barriers, condition variables, locks and more
///
/// The threads share the work of a round, so a perfect scheduler would take as long
/// with any number of threads as with one per CPU: the bound. The programs are
/// written in C; cc compiles them first.
///
///   barrier       60 us between two barriers of pthreads
///   gomp-barrier  the same with GCC's OpenMP
///   cond          a broadcast to all threads, and an acknowledgement from each
///   mutex         one lock, 100 ns inside it and 100 ns outside
///   fairness      the same for a second: the smallest share of a thread
///   late          a thread that sleeps beside computing threads: how late it
///                 wakes up (90th percentile)
///   sem           pairs of threads that pass a turn to each other
///   queue         half of the threads produce, the other half consume
///   idle          memory of 1000 waiting threads
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct SyncArgs {
    /// Patterns to measure [default: all]
    #[arg(value_name = "PATTERN", value_parser = clap::builder::PossibleValuesParser::new(names()))]
    pub patterns: Vec<String>,

    /// Numbers of threads [default: 2,8,32,128]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    /// Numbers of CPUs that the programs may use [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub cpus: Vec<u32>,

    #[command(flatten)]
    pub calibration: Calibration,

    #[command(flatten)]
    pub common: Common,
}

enum Threads {
    /// The numbers of --threads, and a bound with one thread per CPU.
    Asked,
    Fixed(u32),
}

struct Pattern {
    name: &'static str,
    /// The program's first argument, which names the workload.
    workload: &'static str,
    program: Program,
    threads: Threads,
    /// Rounds at --scale 1. The bound then takes about half a second.
    rounds: f64,
    work: Work,
    /// Microseconds of work per round outside the lock.
    outside_us: f64,
    /// Length of a run, if above 0: it replaces `rounds`.
    seconds: f64,
    metric: Metric,
}

/// The work of a round, in microseconds.
#[derive(Clone, Copy)]
enum Work {
    /// Per CPU, split among all threads.
    Split(f64),
    /// Per thread.
    Each(f64),
}

pub const TIME: Metric = Metric::ratio("us_per_round", "us a round");
const FAIRNESS: Metric = Metric {
    field: "fairness",
    unit: "least thread's share of the mean",
    compare: Compare::Nothing,
};
const LATENESS: Metric = Metric::ratio("late_us", "us late");
const MEMORY: Metric = Metric {
    field: "rss_kib_per_thread",
    unit: "resident KiB a thread",
    compare: Compare::Difference,
};

const BARRIER: Pattern = Pattern {
    name: "barrier",
    workload: "barrier",
    program: SYNC,
    threads: Threads::Asked,
    rounds: 8000.0,
    work: Work::Split(60.0),
    outside_us: 0.0,
    seconds: 0.0,
    metric: TIME,
};

const PATTERNS: [Pattern; 9] = [
    BARRIER,
    Pattern { name: "gomp-barrier", workload: "gomp-barrier", program: SYNC_OMP, ..BARRIER },
    Pattern { name: "cond", workload: "cond", ..BARRIER },
    Pattern {
        name: "mutex",
        workload: "mutex",
        rounds: 1e6,
        work: Work::Each(0.1),
        outside_us: 0.1,
        ..BARRIER
    },
    Pattern {
        name: "fairness",
        workload: "mutex",
        work: Work::Each(0.1),
        outside_us: 0.1,
        seconds: 1.0,
        metric: FAIRNESS,
        ..BARRIER
    },
    Pattern {
        name: "late",
        workload: "late",
        work: Work::Each(0.0),
        seconds: 2.0,
        metric: LATENESS,
        ..BARRIER
    },
    Pattern { name: "sem", workload: "sem", rounds: 1e5, work: Work::Each(1.0), ..BARRIER },
    Pattern { name: "queue", workload: "queue", rounds: 3e5, work: Work::Each(1.0), ..BARRIER },
    Pattern {
        name: "idle",
        workload: "idle",
        threads: Threads::Fixed(1000),
        work: Work::Each(0.0),
        metric: MEMORY,
        ..BARRIER
    },
];

fn names() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|p| p.name)
}

pub fn prepare(args: &SyncArgs, session: &Session) -> anyhow::Result<Bench> {
    let per_us = args.calibration.per_us(session)?;
    let cpus = super::numbers_of_cpus(&args.cpus, session)?;
    let mut groups = Vec::new();
    let mut notes = Vec::new();
    for pattern in PATTERNS.iter().filter(|p| super::is_wanted(&args.patterns, p.name)) {
        let program = pattern.program;
        let compiled = workload::compile_if_possible(session, pattern.name, program, &mut notes)?;
        for (program, &cpus) in compiled.iter().cartesian_product(&cpus) {
            groups.extend(pattern.groups(args, cpus, program, per_us));
        }
    }
    Ok(Bench {
        name: "sync",
        timeout: args.common.timeout(120.0),
        groups,
        parameters: json!({
            "iterations_per_us": per_us,
            "compiler": workload::compiler_version(session),
        }),
        notes,
        ..Bench::default()
    })
}

/// Return the command of a pattern whose metric is the time of a round. The caller appends
/// `--rounds`. Fails if there is no such pattern.
pub fn timed(
    name: &str,
    session: &Session,
    threads: u32,
    per_us: f64,
) -> anyhow::Result<Vec<OsString>> {
    let pattern = PATTERNS.iter().find(|p| p.name == name && p.metric.field == TIME.field);
    let pattern = pattern.with_context(|| format!("{name} is not a timed pattern"))?;
    let program = workload::compile(session, pattern.program)?;
    let mut command = pattern.command(&program, threads, session.cpus(), per_us, 1.0);
    command.truncate(command.len() - 2);
    Ok(command)
}

impl Pattern {
    fn groups(&self, args: &SyncArgs, cpus: u32, program: &Path, per_us: f64) -> Vec<Group> {
        let threads = match self.threads {
            Threads::Fixed(threads) => vec![threads],
            Threads::Asked if args.threads.is_empty() => vec![2, 8, 32, 128],
            Threads::Asked => args.threads.clone(),
        };
        let bound = matches!(self.threads, Threads::Asked).then_some(cpus);
        let around = super::confined(cpus);
        let group = |threads| {
            let mut scenarios = scenarios(threads, bound, &args.common, |threads| {
                self.command(program, threads, cpus, per_us, args.common.scale)
            });
            scenarios.iter_mut().for_each(|s| s.around = around.clone());
            Group {
                workload: super::with_cpus(self.name, &args.cpus, cpus),
                threads,
                scenarios,
                ..Group::of(self.metric)
            }
        };
        threads.into_iter().map(group).collect()
    }

    fn command(
        &self,
        program: &Path,
        threads: u32,
        cpus: u32,
        per_us: f64,
        scale: f64,
    ) -> Vec<OsString> {
        let work = match self.work {
            Work::Split(us) => us * f64::from(cpus),
            Work::Each(us) => us,
        };
        let length = if self.seconds > 0.0 {
            ("--seconds", (self.seconds * scale).max(0.1))
        } else {
            ("--rounds", (self.rounds * scale).ceil())
        };
        let work = ("--work", (work * per_us).round());
        let outside = ("--outside", (self.outside_us * per_us).round());
        let mut command = words![program, self.workload];
        add(&mut command, &[("--threads", threads.into()), work, outside, length]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::shown;
    use super::*;

    #[test]
    fn the_work_of_a_round_does_not_depend_on_the_number_of_threads() {
        let text = |pattern: &Pattern, threads| {
            let command = pattern.command(Path::new("sync"), threads, 4, 500.0, 0.5);
            shown(&command).join(" ")
        };
        assert_eq!(
            text(&PATTERNS[0], 2),
            "sync barrier --threads 2 --work 120000 --outside 0 --rounds 4000"
        );
        assert_eq!(
            text(&PATTERNS[0], 128),
            "sync barrier --threads 128 --work 120000 --outside 0 --rounds 4000"
        );
        assert_eq!(
            text(&PATTERNS[3], 8),
            "sync mutex --threads 8 --work 50 --outside 50 --rounds 500000"
        );
        assert_eq!(
            text(&PATTERNS[4], 8),
            "sync mutex --threads 8 --work 50 --outside 50 --seconds 0.5"
        );
    }

    #[test]
    fn names_are_unique() {
        assert!(names().all_unique());
    }
}
