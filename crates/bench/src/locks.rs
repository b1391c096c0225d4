//! `lissom bench locks`: glibc's mutex, locks of the literature in its place, and lissom.

use std::ffi::{OsStr, OsString};

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::command::words;
use super::harness::{BOUND, Group, NATIVE, Scenario};
use super::programs;
use super::sync;
use super::workload::{self, Calibration, LOCKS};
use super::{Bench, Common, Session};

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
    let patterns: Vec<_> = PATTERNS.iter().filter(|p| super::is_chosen(&args.names, p.0)).collect();
    // Programs have their own work and need no calibration.
    let per_us = if patterns.is_empty() { 0.0 } else { args.calibration.per_us(session)? };
    for (name, rounds) in patterns {
        let rounds = (rounds * args.common.scale).ceil().to_string();
        let command = |threads| -> anyhow::Result<Vec<OsString>> {
            Ok([sync::timed(name, session, threads, per_us)?, words!["--rounds", rounds]].concat())
        };
        let few = command(session.cpus())?;
        for threads in super::or_default(&args.threads, [2, 8, 32]) {
            groups.push(Group {
                workload: (*name).into(),
                threads,
                scenarios: columns(args, &preload, &few, &command(threads)?),
                ..Group::of(sync::TIME)
            });
        }
    }
    Ok(Bench {
        name: "locks",
        timeout: args.common.timeout(LIMIT),
        groups,
        parameters: json!({ "iterations_per_us": per_us, "compiler": workload::compiler_version(session) }),
        ..Bench::default()
    })
}

fn of_program(
    name: &str,
    args: &LocksArgs,
    session: &Session,
    preload: &OsStr,
) -> anyhow::Result<Vec<Group>> {
    let program = programs::paper(name, session, args.common.scale)?;
    let cpus = session.cpus();
    let few = (program.command)(cpus);
    let group = |threads| Group {
        limit: Some(args.common.timeout(LIMIT)),
        scenarios: columns(args, preload, &few, &(program.command)(threads)),
        ..program.group(threads)
    };
    Ok(super::or_default(&args.threads, [4 * cpus]).into_iter().map(group).collect())
}

/// Build the columns: the bound, native, each of the locks, and lissom. `few`, `many`: the command
/// with one thread per CPU, and with `threads`.
fn columns(
    args: &LocksArgs,
    preload: &OsStr,
    few: &[OsString],
    many: &[OsString],
) -> Vec<Scenario> {
    let scenario = |name, switch| Scenario::of(name, switch, many.to_vec());
    let with_lock = |name| Scenario {
        around: words!["env", format!("LOCK={name}"), preload],
        ..scenario(name, None)
    };
    [Scenario::of(BOUND, None, few.to_vec()), scenario(NATIVE, None)]
        .into_iter()
        .chain(NAMES.map(with_lock))
        .chain(args.common.switches().map(|switch| scenario(switch, Some(switch))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::chosen::tests::parse;
    use super::*;

    #[test]
    fn locks_stand_between_native_and_lissom() {
        let args = parse("parsec-dedup --switch auto").expect("good options");
        let list = columns(&args, "LD_PRELOAD=/p".as_ref(), &words!["2"], &words!["8"]);
        let names: Vec<&str> = list.iter().map(|s| s.name).collect();
        assert_eq!(names, ["bound", "native", "adaptive", "mutexee", "mcs-tp", "shfllock", "auto"]);
        assert_eq!((&list[0].command, &list[5].command), (&vec!["2".into()], &vec!["8".into()]));
        assert_eq!(list[3].around, ["env", "LOCK=mutexee", "LD_PRELOAD=/p"]);
        assert!(list[3].switch.is_none());
        assert!(parse::<LocksArgs>("npb-ep").is_err());
    }
}
