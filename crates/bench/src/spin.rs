//! `lissom bench spin`: programs whose threads busy-wait in their own loops, one per pattern.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::command::{add, words};
use super::harness::{BOUND, Effort, Group, Metric};
use super::workload::{self, Calibration, Program, SPIN, SPIN_OMP, SYNC_OMP};
use super::{Bench, Common, Session, scenarios, sensitivity, specificity, sync};

/// Measure programs whose threads busy-wait, with --spin=auto
///
/// Natively, such programs may take 10,000 times as long if threads outnumber CPUs,
/// so each run does as many rounds as fit into a tenth of --timeout. If a single
/// round does not finish within --timeout, the cell shows a lower limit.
/// All patterns take an hour: name some, or pass --lock and --scale.
///
///   pipeline           a token goes around; 2.5 us of work a stage, flag by flag
///   pipeline-bare      the same, without the `pause` instruction
///   pipeline-volatile  pipeline with flags that are volatile, but not atomic
///   lock-pipeline      pipeline with a lock for each stage, for each of --lock
///   contended          all threads take one lock [default: pthread_spin_lock],
///                      1.6 million times, 100 ns inside it and 100 ns outside
///   barrier            60 us between two barriers with busy-waiting
///   spin-then-block    a token; waiters spin for a while, then sleep
///   omp-flags          OpenMP threads with flags and `flush`, as in NPB LU
///   omp-active         60 us between OpenMP barriers, OMP_WAIT_POLICY=active
///   omp-default        the same without OMP_WAIT_POLICY
///   omp-passive        the same with OMP_WAIT_POLICY=passive
///
/// Not timed, and only if named:
///
///   sensitivity        for each lock, how many scans of a waiting thread, and how
///                      many waits of 10 ms, are detected. For the scans, two
///                      threads share a CPU, and one always holds the lock
///   specificity        how many scans take a working program for a waiting one.
///                      For NPB's programs also the overhead: time with --spin=auto
///                      relative to --spin=off, in percent, of --runs alternating
///                      runs. 500,000 scans take a minute a program on 2 CPUs
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct SpinArgs {
    /// Patterns to measure [default: all timed ones]
    #[arg(value_name = "PATTERN", value_parser = PossibleValuesParser::new(names()))]
    pub patterns: Vec<String>,

    /// Numbers of threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "8,32",
        value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    /// Locks for lock-pipeline, contended and sensitivity [default: the first eleven; for contended
    /// pthread, for sensitivity all]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(LOCKS.iter().chain(&sensitivity::LOOPS)))]
    pub lock: Vec<String>,

    /// Whether lock-pipeline and sensitivity wait with the `pause` instruction
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', default_value = "yes,no")]
    pub pause: Vec<Pause>,

    /// Minimum number of scans for each lock of sensitivity and each program of specificity; the
    /// program runs repeatedly until then [default: 50000 x --scale for a lock, 500000 x --scale
    /// for NPB's programs, 10000 for others]
    #[arg(long, visible_alias = "tries", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub samples: Option<u64>,

    /// Time between two scans of a thread, for sensitivity and NPB's programs
    #[arg(long, value_name = "TIME", default_value = "100us",
        value_parser = ui::time::parser(ui::time::Unit::Us, "10us", "1s"))]
    pub period: Duration,

    /// Programs for specificity: npb for all NPB programs that do not busy-wait, or single ones
    /// (npb-is); gzip, sort, python3, delay loop, ... [default: all except NPB's]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(specificity::names()),
        hide_possible_values = true)]
    pub program: Vec<String>,

    /// Python for specificity, with or without NumPy [default: target/venv/bin/python3 if it
    /// exists, otherwise python3]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,

    #[command(flatten)]
    pub calibration: Calibration,

    #[command(flatten)]
    pub common: Common,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pause {
    Yes,
    No,
}

impl Pause {
    /// Return the option of workloads/spin.c that stops it from using `pause`, if wanted.
    pub fn option(self) -> Option<&'static str> {
        (self == Pause::No).then_some("--no-pause")
    }

    pub fn name(self, name: &str) -> String {
        match self {
            Pause::Yes => name.into(),
            Pause::No => format!("{name}-bare"),
        }
    }
}

/// The locks of workloads/locks that the patterns use.
const LOCKS: [&str; 11] = [
    "array",
    "clh",
    "mcs",
    "malthusian",
    "partitioned",
    "pthread",
    "ticket",
    "ttas",
    "cna",
    "queued",
    "aqs",
];

impl SpinArgs {
    /// Return the locks that --lock names, or else all of `LOCKS`.
    pub fn locks(&self) -> impl Iterator<Item = &str> {
        let all = LOCKS.iter().copied().filter(|_| self.lock.is_empty());
        self.lock.iter().map(String::as_str).chain(all)
    }

    fn wants(&self, name: &str) -> bool {
        self.patterns.iter().any(|p| p == name)
    }
}

/// Return every lock with every value of --pause.
pub fn variants<'a>(locks: &[&'a str], args: &SpinArgs) -> Vec<(&'a str, Pause)> {
    locks.iter().flat_map(|&lock| args.pause.iter().map(move |&pause| (lock, pause))).collect()
}

struct Pattern {
    name: &'static str,
    program: Program,
    /// The program's first argument, which names the workload, and options.
    command: &'static [&'static str],
    environment: &'static [&'static str],
    locks: Locks,
    unit: Unit,
    /// Units per run at --scale 1. The bound then takes about half a second.
    count: f64,
    work: Work,
    metric: Metric,
}

enum Locks {
    None,
    /// One row per lock and value of --pause.
    Pipeline,
    /// One row per lock that --lock names, or else pthread's only.
    Contended,
}

/// The unit to which the metric refers.
enum Unit {
    /// A hand-off; a round has one per thread.
    HandOff,
    Round,
}

/// The work of a round, in microseconds.
enum Work {
    /// Per stage, independent of the number of stages: only one works at a time.
    Stage(f64),
    /// Per CPU, split among all threads.
    Split(f64),
    /// Per thread, inside the lock and again outside.
    InAndOut(f64),
}

/// Default of --timeout, in seconds.
const LIMIT: f64 = 20.0;
/// Fraction of --timeout that a run aims to take at --scale 1.
const AIM: f64 = 0.1;
/// Lower bound of --scale for the length of a run: shorter runs would measure thread creation.
const SCALE_LEAST: f64 = 0.02;

const OPTIONS: &[&str] = &["--spin=auto"];

const PIPELINE: Pattern = Pattern {
    name: "pipeline",
    program: SPIN,
    command: &["pipeline"],
    environment: &[],
    locks: Locks::None,
    unit: Unit::HandOff,
    count: 200_000.0,
    work: Work::Stage(2.5),
    metric: Metric::ratio("us_per_handoff", "us a stage"),
};

const BARRIER: Pattern = Pattern {
    name: "barrier",
    command: &["barrier"],
    unit: Unit::Round,
    count: 8000.0,
    work: Work::Split(60.0),
    metric: sync::TIME,
    ..PIPELINE
};

const OMP: Pattern =
    Pattern { name: "omp-default", program: SYNC_OMP, command: &["gomp-barrier"], ..BARRIER };

const PATTERNS: [Pattern; 11] = [
    PIPELINE,
    Pattern { name: "pipeline-bare", command: &["pipeline", "--no-pause"], ..PIPELINE },
    Pattern { name: "pipeline-volatile", command: &["pipeline", "--flag", "volatile"], ..PIPELINE },
    Pattern {
        name: "lock-pipeline",
        command: &["lock-pipeline"],
        locks: Locks::Pipeline,
        ..PIPELINE
    },
    Pattern {
        name: "contended",
        command: &["contended"],
        locks: Locks::Contended,
        count: 1.6e6,
        work: Work::InAndOut(0.1),
        metric: Metric::ratio("us_per_round", "us an acquisition"),
        ..BARRIER
    },
    BARRIER,
    Pattern { name: "spin-then-block", command: &["spin-then-block"], ..PIPELINE },
    Pattern {
        name: "omp-flags",
        program: SPIN_OMP,
        command: &["lu-flush"],
        count: 250.0,
        work: Work::Split(2000.0),
        ..BARRIER
    },
    Pattern { name: "omp-active", environment: &["OMP_WAIT_POLICY=active"], ..OMP },
    OMP,
    Pattern { name: "omp-passive", environment: &["OMP_WAIT_POLICY=passive"], ..OMP },
];

const SENSITIVITY: &str = "sensitivity";
const SPECIFICITY: &str = "specificity";

fn names() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|p| p.name).chain([SENSITIVITY, SPECIFICITY])
}

pub fn prepare(args: &SpinArgs, session: &Session) -> anyhow::Result<Bench> {
    let wanted: Vec<&Pattern> =
        PATTERNS.iter().filter(|p| super::is_wanted(&args.patterns, p.name)).collect();
    // Patterns without a time need no calibration.
    let per_us = if wanted.is_empty() { 0.0 } else { args.calibration.per_us(session)? };
    let mut groups = Vec::new();
    let mut notes = Vec::new();
    for pattern in wanted {
        let program = pattern.program;
        if let Some(program) =
            workload::compile_if_possible(session, pattern.name, program, &mut notes)?
        {
            groups.extend(pattern.groups(args, session.cpus(), &program, per_us));
        }
    }
    let mut watches = Vec::new();
    if args.wants(SENSITIVITY) {
        watches.extend(sensitivity::watches(args, session)?);
    }
    if args.wants(SPECIFICITY) {
        watches.extend(specificity::watches(args, session)?);
    }
    Ok(Bench {
        name: "spin",
        timeout: args.common.timeout(LIMIT),
        groups,
        watches,
        parameters: json!({
            "iterations_per_us": per_us,
            "compiler": workload::compiler_version(session),
        }),
        notes,
        ..Bench::default()
    })
}

/// Return the command, the metric and the metric's units per round of a pattern without locks.
/// The caller appends `--rounds` to the command.
pub fn timed(
    name: &str,
    session: &Session,
    threads: u32,
    per_us: f64,
) -> anyhow::Result<(Vec<OsString>, Metric, f64)> {
    let pattern = PATTERNS
        .iter()
        .find(|p| p.name == name)
        .with_context(|| format!("unknown pattern {name}"))?;
    let program = workload::compile(session, pattern.program)?;
    let command = pattern.command(&program, None, Pause::Yes, threads, session.cpus(), per_us);
    Ok((command, pattern.metric, pattern.unit.of_round(threads)))
}

impl Unit {
    /// Return the number of units in a round of `threads` threads.
    fn of_round(&self, threads: u32) -> f64 {
        match self {
            Unit::HandOff => threads.into(),
            Unit::Round => 1.0,
        }
    }
}

impl Pattern {
    fn groups(&self, args: &SpinArgs, cpus: u32, program: &Path, per_us: f64) -> Vec<Group> {
        let variants: Vec<(Option<&str>, Pause)> = match self.locks {
            Locks::None => vec![(None, Pause::Yes)],
            Locks::Contended if args.lock.is_empty() => vec![(Some("pthread"), Pause::Yes)],
            Locks::Contended => args.locks().map(|lock| (Some(lock), Pause::Yes)).collect(),
            Locks::Pipeline => {
                let locks: Vec<&str> = args.locks().collect();
                let all = variants(&locks, args).into_iter();
                all.map(|(lock, pause)| (Some(lock), pause)).collect()
            }
        };
        let mut groups = Vec::new();
        for (lock, pause) in variants {
            let name = lock.map_or(self.name.into(), |lock| format!("{}-{lock}", self.name));
            groups.extend(args.threads.iter().map(|&threads| {
                let mut scenarios = scenarios(threads, Some(cpus), &args.common, |threads| {
                    self.command(program, lock, pause, threads, cpus, per_us)
                });
                for scenario in &mut scenarios {
                    let threads = if scenario.name == BOUND { cpus } else { threads };
                    scenario.effort = Some(self.effort(threads, &args.common));
                }
                Group {
                    workload: pause.name(&name),
                    threads,
                    options: OPTIONS,
                    environment: self.environment,
                    scenarios,
                    ..Group::of(self.metric)
                }
            }));
        }
        groups
    }

    /// Build the command without `--rounds`, which the harness appends. `per_us`: iterations of the
    /// work loop per microsecond.
    fn command(
        &self,
        program: &Path,
        lock: Option<&str>,
        pause: Pause,
        threads: u32,
        cpus: u32,
        per_us: f64,
    ) -> Vec<OsString> {
        let mut command = words![program];
        command.extend(self.command.iter().chain(&pause.option()).map(OsString::from));
        if let Some(lock) = lock {
            command.extend(words!["--lock", lock]);
        }
        add(&mut command, &[("--threads", threads.into())]);
        match self.work {
            // The workload divides the work among the stages.
            Work::Stage(us) => {
                add(&mut command, &[("--work", (us * per_us).round() * f64::from(threads))]);
            }
            Work::Split(us) => {
                add(&mut command, &[("--work", (us * per_us * f64::from(cpus)).round())]);
            }
            Work::InAndOut(us) => {
                let work = (us * per_us).round();
                add(&mut command, &[("--work", work), ("--outside", work)]);
            }
        }
        command
    }

    fn effort(&self, threads: u32, common: &Common) -> Effort {
        let units = self.unit.of_round(threads);
        let limit = common.timeout(LIMIT);
        Effort {
            rounds: (self.count * common.scale / units).ceil() as u64,
            units,
            limit,
            aim: limit * AIM * common.scale.clamp(SCALE_LEAST, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::shown;
    use super::*;
    use clap::Parser;
    use itertools::Itertools as _;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SpinArgs,
    }

    fn groups(line: &str) -> Vec<Group> {
        let args = Line::try_parse_from(line.split(' ')).expect("good options").args;
        let wanted = PATTERNS.iter().filter(|p| args.patterns.is_empty() || args.wants(p.name));
        wanted.flat_map(|p| p.groups(&args, 4, Path::new("spin"), 500.0)).collect()
    }

    fn commands(group: &Group) -> Vec<String> {
        group.scenarios.iter().map(|s| shown(&s.command).join(" ")).collect()
    }

    #[test]
    fn a_stage_has_the_same_work_whatever_their_number() {
        let groups = groups("spin pipeline-bare --threads 8");
        let commands = commands(&groups[0]);
        assert_eq!(commands[0], "spin pipeline --no-pause --threads 4 --work 5000");
        assert_eq!(commands[1], "spin pipeline --no-pause --threads 8 --work 10000");
        let efforts: Vec<Effort> = groups[0].scenarios.iter().filter_map(|s| s.effort).collect();
        assert_eq!((efforts[0].rounds, efforts[1].rounds), (50_000, 25_000));
        assert_eq!((efforts[0].units, efforts[1].units), (4.0, 8.0));
    }

    #[test]
    fn locks_and_pauses_are_rows() {
        let names = |line| groups(line).into_iter().map(|g| g.workload).collect::<Vec<_>>();
        assert_eq!(names("spin lock-pipeline --threads 8").len(), 2 * LOCKS.len());
        assert_eq!(
            names("spin lock-pipeline --threads 8 --pause no --lock mcs"),
            ["lock-pipeline-mcs-bare"]
        );
        assert_eq!(names("spin contended --threads 8"), ["contended-pthread"]);
        assert_eq!(
            names("spin contended --threads 8 --lock clh,cna"),
            ["contended-clh", "contended-cna"]
        );
        assert!(names("spin sensitivity").is_empty());
    }

    #[test]
    fn names_are_unique() {
        assert!(names().all_unique());
    }
}
