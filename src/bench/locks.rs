//! `lissom bench locks`: glibc's mutex, locks of the literature in its place, and lissom.

use std::ffi::OsString;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::harness::{Group, NATIVE, Scenario};
use super::programs;
use super::sync;
use super::workload::{self, Calibration, LOCKS};
use super::{Bench, Common, Session, scenarios};

/// Other locks in the place of glibc's mutexes, and lissom
///
/// The programs are the same and are not compiled anew: a preloaded library has
/// the locks, which were written from their papers (workloads/locks).
///
///   adaptive   glibc's PTHREAD_MUTEX_ADAPTIVE_NP: spins for a moment, then sleeps
///   mutexee    spins for longer, and hands over in user space if it can (Falsafi
///              et al., 2016)
///   mcs-tp     a queue whose waiters publish the time, so that those that were
///              preempted are passed over (He, Scherer, Scott, 2005)
///   shfllock   a queue whose waiters put themselves in order while they wait, and
///              sleep (Kashyap et al., 2019)
///
/// Beside them the bound (glibc's, a thread for each CPU), native (glibc's) and
/// lissom.
///
///   mutex      one lock, 100 ns inside it and 100 ns outside
///   cond       a broadcast to all threads, an acknowledgement by each
///   queue      half of the threads produce for the other half
///
/// Programs of the papers that lock mutexes often, of the class that `bench
/// programs` would take at this --scale; only if they are named:
///
///   parsec-fluidanimate, splash-ocean, parsec-streamcluster, splash-barnes,
///   parsec-dedup, splash-volrend, splash-radix
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct LocksArgs {
    /// Patterns and programs to measure [default: all patterns]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    pub names: Vec<String>,

    /// Numbers of threads [default: 2, 8 and 32; of programs 4 times as many as CPUs]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    #[command(flatten)]
    pub calibration: Calibration,

    #[command(flatten)]
    pub common: Common,
}

/// Seconds after which a run is killed.
const LIMIT: f64 = 60.0;
/// And rounds: few enough that the slowest lock is done in seconds.
const PATTERNS: [(&str, f64); 3] = [("mutex", 300e3), ("cond", 1000.0), ("queue", 100e3)];
/// Those of the papers that call pthread_mutex_lock most often a second (docs/bench.md).
const PROGRAMS: [&str; 7] = [
    "parsec-fluidanimate",
    "splash-ocean",
    "parsec-streamcluster",
    "splash-barnes",
    "parsec-dedup",
    "splash-volrend",
    "splash-radix",
];
const NAMES: [&str; 4] = ["adaptive", "mutexee", "mcs-tp", "shfllock"];

fn names() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|p| p.0).chain(PROGRAMS)
}

pub fn prepare(args: &LocksArgs, session: &Session) -> anyhow::Result<Bench> {
    let library = workload::compile(session, LOCKS)?;
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(&library);
    let named = |name: &str| args.names.iter().any(|n| n == name);
    let mut groups = Vec::new();
    for name in PROGRAMS.into_iter().filter(|p| named(p)) {
        groups.extend(of_program(name, args, session, &preload)?);
    }
    let patterns: Vec<_> =
        PATTERNS.iter().filter(|p| args.names.is_empty() || named(p.0)).collect();
    // A program has its own work.
    let per_us = if patterns.is_empty() { 0.0 } else { args.calibration.per_us(session)? };
    let threads = if args.threads.is_empty() { vec![2, 8, 32] } else { args.threads.clone() };
    for &&(name, rounds) in &patterns {
        let rounds = (rounds * args.common.scale).ceil().to_string();
        // The program is compiled once; a command for each number of threads.
        let cpus = session.cpus();
        let mut commands = std::collections::BTreeMap::new();
        for threads in threads.iter().copied().chain([cpus]) {
            let mut command = sync::timed(name, session, threads, per_us)?;
            command.extend(["--rounds".into(), rounds.clone().into()]);
            commands.insert(threads, command);
        }
        for &threads in &threads {
            groups.push(Group {
                workload: name.into(),
                threads,
                scenarios: columns(threads, cpus, args, &preload, |t| commands[&t].clone()),
                ..Group::of(sync::TIME)
            });
        }
    }
    Ok(Bench {
        name: "locks",
        timeout: args.common.timeout(LIMIT),
        groups,
        watches: vec![],
        parameters: json!({ "iterations_per_us": per_us, "compiler": workload::compiler_version(session) }),
        notes: vec![],
        summary: None,
    })
}

fn of_program(
    name: &str,
    args: &LocksArgs,
    session: &Session,
    preload: &OsString,
) -> anyhow::Result<Vec<Group>> {
    let program = programs::paper(name, session, args.common.scale)?;
    let cpus = session.cpus();
    let threads = if args.threads.is_empty() { vec![4 * cpus] } else { args.threads.clone() };
    let group = |threads| Group {
        workload: program.name.clone(),
        threads,
        check: program.check.as_ref().map(programs::shared),
        limit: Some(args.common.timeout(LIMIT)),
        scenarios: columns(threads, cpus, args, preload, |t| (program.command)(t)),
        ..Group::of(program.metric)
    };
    Ok(threads.into_iter().map(group).collect())
}

/// The bound, native, each of the locks, and lissom.
fn columns(
    threads: u32,
    cpus: u32,
    args: &LocksArgs,
    preload: &OsString,
    command: impl Fn(u32) -> Vec<OsString>,
) -> Vec<Scenario> {
    let mut list = scenarios(threads, Some(cpus), &args.common, &command);
    let at = list.iter().position(|s| s.name == NATIVE).map_or(list.len(), |i| i + 1);
    list.splice(at..at, NAMES.map(|lock| with_lock(lock, preload, &command(threads))));
    list
}

fn with_lock(name: &'static str, preload: &OsString, command: &[OsString]) -> Scenario {
    let around = vec!["env".into(), format!("LOCK={name}").into(), preload.clone()];
    Scenario { name, switch: None, around, command: command.to_vec(), effort: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: LocksArgs,
    }

    #[test]
    fn locks_stand_between_native_and_lissom() {
        let line = "locks parsec-dedup --switch auto".split(' ');
        let args = Line::try_parse_from(line).expect("good options").args;
        let list = columns(8, 2, &args, &"LD_PRELOAD=/p".into(), |t| vec![t.to_string().into()]);
        let names: Vec<&str> = list.iter().map(|s| s.name).collect();
        assert_eq!(names, ["bound", "native", "adaptive", "mutexee", "mcs-tp", "shfllock", "auto"]);
        assert_eq!((&list[0].command, &list[5].command), (&vec!["2".into()], &vec!["8".into()]));
        assert!(Line::try_parse_from(["locks", "npb-ep"]).is_err());
    }

    #[test]
    fn the_library_is_told_which_lock() {
        let scenario = with_lock("mutexee", &"LD_PRELOAD=/p".into(), &["sync".into()]);
        assert_eq!(scenario.around, ["env", "LOCK=mutexee", "LD_PRELOAD=/p"]);
        assert!(scenario.switch.is_none());
    }
}
