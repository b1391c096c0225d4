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

/// Compare lissom with other locks in place of glibc's mutex
///
/// The programs are unmodified: a preloaded library replaces their mutexes. Its
/// locks are written from their papers (workloads/locks).
///
///   adaptive   glibc's PTHREAD_MUTEX_ADAPTIVE_NP: spin for a moment, then sleep
///   mutexee    spin for longer, and hand over in user space if possible (Falsafi
///              et al., 2016)
///   mcs-tp     a queue whose waiters publish the time, so that preempted waiters
///              are passed over (He, Scherer, Scott, 2005)
///   shfllock   a queue whose waiters put themselves in order while they wait, and
///              sleep (Kashyap et al., 2019)
///
/// The other columns are the bound (glibc's mutex, one thread per CPU), native
/// (glibc's mutex) and lissom. Patterns:
///
///   mutex      one lock, 100 ns inside it and 100 ns outside
///   cond       a broadcast to all threads, and an acknowledgement from each
///   queue      half of the threads produce, the other half consume
///
/// Programs of the papers that lock mutexes often, in the class that --scale
/// selects in `bench programs`; only if named:
///
///   parsec-fluidanimate, splash-ocean, parsec-streamcluster, splash-barnes,
///   parsec-dedup, splash-volrend, splash-radix
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct LocksArgs {
    /// Patterns and programs to measure [default: all patterns]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    pub names: Vec<String>,

    /// Numbers of threads [default: 2,8,32; for programs 4 per CPU]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    #[command(flatten)]
    pub calibration: Calibration,

    #[command(flatten)]
    pub common: Common,
}

/// Default of --timeout, in seconds.
const LIMIT: f64 = 60.0;
/// Pattern, and rounds at --scale 1: few enough that the slowest lock takes only seconds.
const PATTERNS: [(&str, f64); 3] = [("mutex", 300e3), ("cond", 1000.0), ("queue", 100e3)];
/// Programs of the papers with the most calls of pthread_mutex_lock per second
/// (docs/guide/bench-programs.md).
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
    // Programs have their own work and need no calibration.
    let per_us = if patterns.is_empty() { 0.0 } else { args.calibration.per_us(session)? };
    let threads = if args.threads.is_empty() { vec![2, 8, 32] } else { args.threads.clone() };
    for &&(name, rounds) in &patterns {
        let rounds = (rounds * args.common.scale).ceil().to_string();
        // Each number of threads has its own command, but the program is compiled only once.
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

/// Build the columns: the bound, native, each of the locks, and lissom.
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
