//! `lissom bench mechanisms`: the gain of each of lissom's mechanisms, by disabling one at a time.

use std::ffi::OsString;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::command::with_variable;
use super::harness::{BOUND, Effort, Group, Metric, NATIVE, Scenario};
use super::sync::{self, TIME};
use super::workload::Calibration;
use super::{Bench, Common, Session, spin};
use runtime::abi;

/// Measure lissom with one mechanism switched off at a time
///
/// The columns, besides the bound (natively, with one thread per CPU) and native:
///
///   lissom         all mechanisms on; threads are switched in user space
///   kernel-switch  threads stay on their own kernel threads (--switch=kernel)
///   no-detection   busy-waiting is not detected (--spin=off)
///   no-polling     an idle slot sleeps at once (--idle=sleep)
///   no-spinning    a waiter switches at once (--spin-threshold=0)
///   long-spinning  a waiter spins for 20 us (--spin-threshold=20000)
///
/// The effect of a mechanism is what the program loses without it. The programs:
///
///   barrier, gomp-barrier, cond, mutex, sem, queue    as in `lissom bench sync`
///   pipeline, spin-then-block, omp-flags, omp-active  as in `lissom bench spin`
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct MechanismsArgs {
    /// Programs to measure [default: all]
    #[arg(value_name = "PROGRAM", value_parser = PossibleValuesParser::new(SYNC.iter().chain(&SPIN)))]
    pub programs: Vec<String>,

    /// Numbers of threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "32",
        value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    #[command(flatten)]
    pub calibration: Calibration,

    // Its --switch has no effect here: each column sets its own way of switching.
    #[command(flatten)]
    pub common: Common,
}

const SYNC: [&str; 6] = ["barrier", "gomp-barrier", "cond", "mutex", "sem", "queue"];
const SPIN: [&str; 4] = ["pipeline", "spin-then-block", "omp-flags", "omp-active"];

/// A column: its name, the way of switching, and an environment variable to set.
type Column = (&'static str, &'static str, Option<(&'static str, &'static str)>);

const COLUMNS: [Column; 6] = [
    ("lissom", "user", None),
    ("kernel-switch", "kernel", None),
    ("no-detection", "user", Some((abi::ENV_SPIN, "off"))),
    ("no-polling", "user", Some((abi::ENV_IDLE, "sleep"))),
    ("no-spinning", "user", Some((abi::ENV_SPIN_THRESHOLD, "0"))),
    ("long-spinning", "user", Some((abi::ENV_SPIN_THRESHOLD, "20000"))),
];

/// Seconds that a run aims to take at --scale 1.
const AIM: f64 = 0.5;
/// Default of --timeout, in seconds.
const LIMIT: f64 = 10.0;

pub fn prepare(args: &MechanismsArgs, session: &Session) -> anyhow::Result<Bench> {
    let per_us = args.calibration.per_us(session)?;
    let timeout = args.common.timeout(LIMIT);
    let (mut groups, mut notes) = (Vec::new(), Vec::new());
    for name in SYNC.iter().chain(&SPIN).filter(|n| super::is_chosen(&args.programs, n)) {
        for &threads in &args.threads {
            let command = |threads| -> anyhow::Result<(Vec<OsString>, Metric, f64)> {
                if SYNC.contains(name) {
                    return Ok((sync::timed(name, session, threads, per_us)?, TIME, 1.0));
                }
                spin::timed(name, session, threads, per_us)
            };
            match command(threads).and_then(|many| Ok((many, command(session.cpus())?))) {
                Ok((many, few)) => {
                    groups.push(group(name, threads, many, few, timeout, args.common.scale))
                }
                // A compiler without OpenMP can still compile the other programs.
                Err(error) if name.contains("omp") => {
                    notes.push(format!("{name} is left out: {error:#}"))
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Bench {
        name: "mechanisms",
        timeout,
        groups,
        parameters: json!({ "iterations_per_us": per_us }),
        notes,
        ..Bench::default()
    })
}

fn group(
    name: &str,
    threads: u32,
    (many, metric, units): (Vec<OsString>, Metric, f64),
    (few, _, units_of_few): (Vec<OsString>, Metric, f64),
    limit: f64,
    scale: f64,
) -> Group {
    let scenario = |name, switch, around, command: &Vec<OsString>, units| Scenario {
        around,
        effort: Some(Effort { rounds: u64::MAX, units, limit, aim: AIM * scale }),
        ..Scenario::of(name, switch, command.clone())
    };
    let mut scenarios = vec![
        scenario(BOUND, None, vec![], &few, units_of_few),
        scenario(NATIVE, None, vec![], &many, units),
    ];
    scenarios.extend(COLUMNS.map(|(name, switch, setting)| {
        let around = setting.map_or(vec![], |(name, value)| with_variable(name, value));
        scenario(name, Some(switch), around, &many, units)
    }));
    let environment: &[&str] = if name == "omp-active" { &["OMP_WAIT_POLICY=active"] } else { &[] };
    Group { workload: name.into(), threads, environment, scenarios, ..Group::of(metric) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_off_in_each_column() {
        let metric = TIME;
        let command = |n: &str| (vec![OsString::from(n)], metric, 1.0);
        let group = group("barrier", 8, command("many"), command("few"), 10.0, 1.0);
        assert_eq!(group.scenarios.len(), 2 + COLUMNS.len());
        assert_eq!(group.scenarios[0].command, ["few"]);
        let around: Vec<usize> = group.scenarios.iter().map(|s| s.around.len()).collect();
        assert_eq!(around, [0, 0, 0, 0, 2, 2, 2, 2]);
        assert_eq!(group.scenarios[4].around[1], "LISSOM_SPIN=off");
    }
}
