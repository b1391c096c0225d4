//! `lissom bench elastic`: programs whose number of CPUs changes while they run.

mod resize;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;
use ui::time::Unit;

use super::command::{after, with_variable, words};
use super::harness::{BOUND, Compare, Group, Metric, NATIVE, Scenario};
use super::python::python_with;
use super::workload::{self, Calibration, SCHEDULE, SPIN, SYNC_OMP};
use super::{Bench, Common, Session, ml};
use os::process;

/// Measure programs while their number of CPUs changes
///
/// The result is the CPU time that was available to a program until it ended; less
/// is better. 2 CPUs for a second and 1 for two are 4 CPU seconds. The bound of
/// `affinity` and `cpuset` is the program natively with one thread per CPU, on all
/// CPUs all the time; the bound of `quota` has the same quota.
///
///   affinity-omp       60 us between OpenMP barriers, while the mask of all
///                      threads changes from outside, as by `taskset -a`
///   affinity-spin      a token, passed by flags with busy-waiting
///   affinity-histgb    scikit-learn's HistGradientBoosting
///   cpuset-*           the same with a cgroup's cpuset (needs root)
///   quota-*            the same with a CPU quota (needs root)
///
/// With --more, two more columns run natively while CPUs change: `fewer` with one
/// thread per CPU of the first step, and `placed`, where OpenMP binds its threads
/// to CPUs (OMP_PROC_BIND).
///
/// In the programs below, the number of CPUs changes once (--cpus-from, --cpus-to,
/// --after, --by). They run only if named, with 4 threads per CPU of the start. The
/// result is the time from start to end in seconds.
///
///   resize-ep, resize-streamcluster, resize-ocean, resize-cg
///
/// Their columns: `fewer` (one thread per CPU of the start), native, `pinned`
/// (natively, each thread bound to a CPU of the start, round-robin; if that CPU is
/// removed, the thread moves to the remaining ones), and lissom. On 2 CPUs they
/// take three minutes a round, with --scale 0.5 half of that.
///
/// `throttled_percent` in the JSON is the share of a quota's periods in which the
/// program was throttled.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct ElasticArgs {
    /// Patterns to measure [default: all except resize; without root only affinity]
    #[arg(value_name = "PATTERN", value_parser = PossibleValuesParser::new(names()))]
    pub patterns: Vec<String>,

    /// Numbers of threads [default: one per CPU, and 16 per CPU; for resize 4 per CPU of the start]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    /// Numbers of CPUs with their durations, such as 2:500ms,1:500ms, repeated until the end, for
    /// affinity and cpuset [default: all, then half of them, half a second each]
    #[arg(long, value_name = "CPUS:TIME,...", value_parser = schedule)]
    pub schedule: Option<String>,

    /// The same for quota, where CPUs may be fractions [default: half of the CPUs all the time]
    #[arg(long, value_name = "CPUS[:TIME],...", value_parser = schedule)]
    pub quota: Option<String>,

    /// Add columns for two more ways to run natively
    #[arg(long)]
    pub more: bool,

    /// Python with scikit-learn [default: target/venv/bin/python3 if it exists, otherwise python3]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,

    #[command(flatten)]
    pub resize: resize::ResizeArgs,

    #[command(flatten)]
    pub calibration: Calibration,

    #[command(flatten)]
    pub common: Common,
}

/// Returns the schedule as the program `schedule` takes it, with durations in seconds.
fn schedule(text: &str) -> Result<String, String> {
    let step = |step: &str| {
        let (cpus, time) = step.split_once(':').map_or((step, None), |(c, t)| (c, Some(t)));
        let is_number = cpus.parse::<f64>().is_ok_and(|n| n > 0.0 && n < 1e6);
        match (is_number, time) {
            (false, _) => Err("expected CPUS:TIME, with CPUS above 0, separated by commas".into()),
            (true, None) => Ok(cpus.into()),
            (true, Some(time)) => {
                let seconds = ui::time::seconds(Unit::S, "1ms", "240h")(time)?;
                Ok(format!("{cpus}:{seconds}"))
            }
        }
    };
    Ok(text.split(',').map(step).collect::<Result<Vec<String>, String>>()?.join(","))
}

const NAMES: [&str; 9] = [
    "affinity-omp",
    "affinity-spin",
    "affinity-histgb",
    "cpuset-omp",
    "cpuset-spin",
    "cpuset-histgb",
    "quota-omp",
    "quota-spin",
    "quota-histgb",
];

fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain(resize::PATTERNS.iter().map(|p| p.0))
}

const CPU_TIME: Metric = Metric {
    field: "cpu_seconds",
    unit: "CPU seconds available until done",
    compare: Compare::Ratio,
};

const FEWER: &str = "fewer";
const PLACED: &str = "placed";
/// Default of --timeout, in seconds.
const LIMIT: f64 = 60.0;

/// Return the number of CPUs in the first step, rounded up.
fn first_cpus(steps: &str) -> u32 {
    let first = steps.split([',', ':']).next().and_then(|n| n.parse::<f64>().ok());
    first.map_or(1, |n| n.ceil() as u32)
}

/// Microseconds of work per CPU between two barriers. At --scale 1, each program below takes about
/// two seconds of all CPUs.
const BARRIER_US: f64 = 60.0;
const BARRIERS: f64 = 30_000.0;
const STAGE_US: f64 = 2.5;
const STAGES: f64 = 800_000.0;
const ROWS: f64 = 100_000.0;
const TREES: f64 = 100.0;

struct Programs {
    schedule: PathBuf,
    omp: PathBuf,
    spin: PathBuf,
    python: PathBuf,
    ml: PathBuf,
    per_us: f64,
    cpus: u32,
    scale: f64,
}

impl Programs {
    fn command(&self, program: &str, threads: u32) -> Vec<OsString> {
        let (first, work, rounds) = match program {
            "omp" => (
                words![self.omp, "gomp-barrier"],
                ("--work", BARRIER_US * f64::from(self.cpus) * self.per_us),
                ("--rounds", BARRIERS * self.scale),
            ),
            "spin" => (
                words![self.spin, "pipeline"],
                ("--work", STAGE_US * f64::from(threads) * self.per_us),
                ("--rounds", STAGES * self.scale / f64::from(threads)),
            ),
            _ => (
                words![self.python, self.ml, "--library", "histgb"],
                ("--rows", ROWS),
                ("--trees", TREES * self.scale),
            ),
        };
        let options = [("--threads", threads.into()), work, rounds];
        let options = options.map(|(name, value)| words![name, value.ceil().to_string()]);
        first.into_iter().chain(options.into_iter().flatten()).collect()
    }
}

/// Build the command that changes the number of CPUs of `command` in `steps`.
fn scheduled(schedule: &Path, way: &str, steps: &str, command: &[OsString]) -> Vec<OsString> {
    after(&words![schedule, "--by", way, "--steps", steps, "--"], command)
}

pub fn prepare(args: &ElasticArgs, session: &Session) -> anyhow::Result<Bench> {
    let mut bench = Bench {
        name: "elastic",
        timeout: args.common.timeout(LIMIT),
        groups: resize::groups(&args.patterns, &args.resize, &args.threads, &args.common, session)?,
        parameters: json!({ "compiler": workload::compiler_version(session) }),
        ..Bench::default()
    };
    if NAMES.iter().any(|name| super::is_chosen(&args.patterns, name)) {
        add_scheduled(args, session, &mut bench)?;
    }
    Ok(bench)
}

/// Add the patterns whose number of CPUs changes repeatedly.
fn add_scheduled(args: &ElasticArgs, session: &Session, bench: &mut Bench) -> anyhow::Result<()> {
    let cpus = session.cpus();
    let python =
        python_with(session, args.python.as_ref(), "sklearn.ensemble", "has no scikit-learn");
    let omp = workload::compile(session, SYNC_OMP);
    let without_sklearn = python.as_ref().err().map(|why| format!("{why}"));
    let without_openmp = omp.is_err().then_some("the compiler does not support OpenMP");
    let programs = Programs {
        schedule: workload::compile(session, SCHEDULE)?,
        omp: omp.unwrap_or_default(),
        spin: workload::compile(session, SPIN)?,
        python: python.unwrap_or_default(),
        ml: session.scratch.write("ml.py", ml::PROGRAM)?,
        per_us: args.calibration.per_us(session)?,
        cpus,
        scale: args.common.scale,
    };
    let half = f64::from(cpus) / 2.0;
    let changing =
        args.schedule.clone().unwrap_or_else(|| format!("{cpus}:0.5,{}:0.5", half.ceil()));
    let quota = args.quota.clone().unwrap_or_else(|| half.to_string());
    for name in NAMES.into_iter().filter(|name| super::is_chosen(&args.patterns, name)) {
        let (way, program) = name.split_once('-').unwrap_or_default();
        let needs_root = way != "affinity" && process::euid() != 0 && args.patterns.is_empty();
        let missing = match program {
            _ if needs_root => Some("creating cgroups needs root"),
            "histgb" => without_sklearn.as_deref(),
            "omp" => without_openmp,
            _ => None,
        };
        if let Some(why) = missing {
            bench.notes.push(format!("{name} is left out: {why}"));
            continue;
        }
        let (steps, way_of_bound) =
            if way == "quota" { (&quota, "quota") } else { (&changing, "nothing") };
        for threads in super::or_default(&args.threads, [cpus, 16 * cpus]) {
            let scenario = |column, switch, threads| {
                let way = if column == BOUND { way_of_bound } else { way };
                let mut command = programs.command(program, threads);
                if column == PLACED {
                    command = after(&with_variable("OMP_PROC_BIND", "true"), &command);
                }
                Scenario::of(column, switch, scheduled(&programs.schedule, way, steps, &command))
            };
            let mut scenarios = vec![scenario(BOUND, None, cpus), scenario(NATIVE, None, threads)];
            scenarios.extend(args.common.switches().map(|s| scenario(s, Some(s), threads)));
            if args.more && threads > cpus {
                scenarios.push(scenario(FEWER, None, first_cpus(steps).min(cpus)));
                if program != "spin" {
                    scenarios.push(scenario(PLACED, None, threads));
                }
            }
            let workload = name.into();
            bench.groups.push(Group { workload, threads, scenarios, ..Group::of(CPU_TIME) });
        }
    }
    bench.parameters["iterations_per_us"] = json!(programs.per_us);
    bench.parameters["schedule"] = json!(changing);
    bench.parameters["quota"] = json!(quota);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::command::shown;
    use super::*;

    #[test]
    fn schedules() {
        for good in ["1", "2:500ms,1:0.5s", "0.5", "64:10s,1:3m,2"] {
            assert!(schedule(good).is_ok(), "{good}");
        }
        assert_eq!(schedule("2:500ms,1:1m,2").as_deref(), Ok("2:0.5,1:60,2"));
        for bad in ["", "0", "1:", ":1s", "1:0s", "a:1s", "1,,2", "-1:1s"] {
            assert!(schedule(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn cpus_of_the_first_step() {
        assert_eq!(first_cpus("2:0.5,1:0.5"), 2);
        assert_eq!(first_cpus("0.5"), 1);
    }

    #[test]
    fn the_work_does_not_depend_on_the_number_of_threads() {
        let programs = Programs {
            schedule: "schedule".into(),
            omp: "omp".into(),
            spin: "spin".into(),
            python: "python3".into(),
            ml: "ml.py".into(),
            per_us: 100.0,
            cpus: 2,
            scale: 0.5,
        };
        let text = |way, program, threads| {
            let command = programs.command(program, threads);
            shown(&scheduled(&programs.schedule, way, "2:1,1:1", &command)).join(" ")
        };
        assert_eq!(
            text("affinity", "omp", 32),
            "schedule --by affinity --steps 2:1,1:1 -- omp gomp-barrier --threads 32 --work 12000 --rounds 15000"
        );
        assert_eq!(
            text("quota", "spin", 8),
            "schedule --by quota --steps 2:1,1:1 -- spin pipeline --threads 8 --work 2000 --rounds 50000"
        );
    }
}
