//! `lissom bench locks`: glibc's mutex, locks of the literature in its place, and lissom.

use std::ffi::OsString;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::harness::{Group, NATIVE, Scenario};
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
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct LocksArgs {
    /// Patterns to measure [default: all]
    #[arg(value_name = "PATTERN", value_parser = PossibleValuesParser::new(PATTERNS.iter().map(|p| p.0)))]
    pub patterns: Vec<String>,

    /// Numbers of threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2,8,32",
        value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    #[command(flatten)]
    pub calibration: Calibration,

    #[command(flatten)]
    pub common: Common,
}

/// And rounds: few enough that the slowest lock is done in seconds.
const PATTERNS: [(&str, f64); 3] = [("mutex", 300e3), ("cond", 1000.0), ("queue", 100e3)];
const NAMES: [&str; 4] = ["adaptive", "mutexee", "mcs-tp", "shfllock"];

pub fn prepare(args: &LocksArgs, session: &Session) -> anyhow::Result<Bench> {
    let per_us = args.calibration.per_us(session)?;
    let library = workload::compile(session, LOCKS)?;
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(&library);
    let mut groups = Vec::new();
    let wanted =
        |p: &&(&str, f64)| args.patterns.is_empty() || args.patterns.iter().any(|n| n == p.0);
    for &(name, rounds) in PATTERNS.iter().filter(wanted) {
        let rounds = (rounds * args.common.scale).ceil().to_string();
        // The program is compiled once; a command for each number of threads.
        let cpus = session.cpus();
        let mut commands = std::collections::BTreeMap::new();
        for threads in args.threads.iter().copied().chain([cpus]) {
            let mut command = sync::timed(name, session, threads, per_us)?;
            command.extend(["--rounds".into(), rounds.clone().into()]);
            commands.insert(threads, command);
        }
        for &threads in &args.threads {
            let mut list =
                scenarios(threads, Some(cpus), &args.common, |threads| commands[&threads].clone());
            let at = list.iter().position(|s| s.name == NATIVE).map_or(list.len(), |i| i + 1);
            list.splice(at..at, NAMES.map(|lock| with_lock(lock, &preload, &commands[&threads])));
            groups.push(Group {
                workload: name.into(),
                threads,
                scenarios: list,
                ..Group::of(sync::TIME)
            });
        }
    }
    Ok(Bench {
        name: "locks",
        timeout: args.common.timeout(60.0),
        groups,
        watches: vec![],
        parameters: json!({ "iterations_per_us": per_us, "compiler": workload::compiler_version(session) }),
        notes: vec![],
        summary: None,
    })
}

fn with_lock(name: &'static str, preload: &OsString, command: &[OsString]) -> Scenario {
    let around = vec!["env".into(), format!("LOCK={name}").into(), preload.clone()];
    Scenario { name, switch: None, around, command: command.to_vec(), effort: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_told_which_lock() {
        let scenario = with_lock("mutexee", &"LD_PRELOAD=/p".into(), &["sync".into()]);
        assert_eq!(scenario.around, ["env", "LOCK=mutexee", "LD_PRELOAD=/p"]);
        assert!(scenario.switch.is_none());
    }
}
