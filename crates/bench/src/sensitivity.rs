//! Sensitivity of the detection of busy-waiting: count how many waits it recognises, for each lock
//! and some other loops.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Context as _;

use super::Session;
use super::command::{add, words};
use super::spin::{SpinArgs, variants};
use super::watch::{Watch, What, is_missing};
use super::workload::{self, SPIN};
use runtime::abi;

/// Waiting loops that only this benchmark uses. workloads/spin.c takes them as locks.
pub const LOOPS: [&str; 3] = ["backoff", "call", "counted"];

const TASKSET: &str = "taskset";

/// A way to count. All threads share one CPU.
struct Way {
    what: What,
    option: &'static str,
    /// Activity of the lock holder: `sleep` or `compute`.
    hold: &'static str,
    /// Length of a hold.
    seconds: f64,
    /// Holds per run.
    holds: f64,
    /// Scans, or waits, to reach.
    samples: f64,
}

const THREADS: &str = "2";
/// Default of --samples at --scale 1.
const TRIES: f64 = 50_000.0;
/// Length of a hold, relative to the time of all scans at their period: the monitor may be late.
const SLACK: f64 = 1.5;

/// Count scans in one hold per run. The holder sleeps, so nearly all scans see the waiting thread.
/// The runtime only observes: if it acted on the wait, there would be few scans.
fn for_ever(args: &SpinArgs) -> Way {
    let samples = args.samples.map_or(TRIES * args.common.scale, |n| n as f64);
    Way {
        what: What::Sensitivity,
        option: "--spin=observe",
        hold: "sleep",
        seconds: (samples * args.period.as_secs_f64() * SLACK).clamp(0.1, 10.0),
        holds: 1.0,
        samples,
    }
}

fn short(args: &SpinArgs) -> Way {
    // A hold is longer than the longest time between two scans, which is 6 ms. A thread is scanned
    // if no other thread ran from one tick of 3 ms to the next.
    Way {
        what: What::Waits,
        option: "--spin=auto",
        hold: "compute",
        seconds: 0.01,
        holds: (1000.0 * args.common.scale).ceil(),
        samples: 1000.0 * args.common.scale,
    }
}

/// Return the words in front of `lissom run --spin=observe` that set the time between two scans.
pub fn scan_every(period: Duration) -> Vec<OsString> {
    words!["env", format!("{}={}", abi::ENV_SPIN_PERIOD, period.as_micros())]
}

pub fn watches(args: &SpinArgs, session: &Session) -> anyhow::Result<Vec<Watch>> {
    let spin = workload::compile(session, SPIN)?;
    let cpu = os::process::allowed_cpus().first().copied().context("no CPU")?;
    let mut locks: Vec<&str> = args.locks().collect();
    if args.lock.is_empty() {
        locks.extend(LOOPS);
    }
    let mut watches = Vec::new();
    for way in [for_ever(args), short(args)] {
        for (lock, pause) in variants(&locks, args) {
            for switch in args.common.switches() {
                let mut command = words![&spin, "sensitivity", "--lock", lock];
                command.extend(words!["--threads", THREADS, "--hold", way.hold]);
                add(&mut command, &[("--seconds", way.seconds), ("--rounds", way.holds)]);
                command.extend(pause.option().map(OsString::from));
                let mut outside = words![TASKSET, "-c", cpu.to_string()];
                outside.extend(scan_every(args.period));
                watches.push(Watch {
                    what: way.what,
                    name: pause.name(lock),
                    switch,
                    outside,
                    options: vec![way.option],
                    command,
                    process: "spin",
                    samples: way.samples.ceil() as u64,
                    missing: is_missing(TASKSET.as_ref()),
                    pairs: 0,
                });
            }
        }
    }
    Ok(watches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SpinArgs,
    }

    #[test]
    fn a_hold_lasts_for_all_scans() {
        let way = |line: &str| {
            let args = Line::try_parse_from(line.split(' ')).expect("good options").args;
            let way = for_ever(&args);
            (way.samples, way.seconds)
        };
        assert_eq!(way("x sensitivity"), (50_000.0, 7.5));
        assert_eq!(way("x sensitivity --scale 0.1"), (5000.0, 0.75));
        assert_eq!(way("x sensitivity --samples 100000 --period 1000"), (100_000.0, 10.0));
        assert_eq!(way("x sensitivity --tries 10"), (10.0, 0.1));
    }
}
