//! How many of those who wait in a loop are recognised, for each of the locks and for some other
//! kinds of loops.

use std::ffi::OsString;

use anyhow::Context as _;

use super::Session;
use super::spin::{SpinArgs, variants};
use super::watch::{Watch, What, is_missing};
use super::workload::{self, SPIN};

/// Loops that only this benchmark has, as locks of workloads/spin.c.
pub const LOOPS: [&str; 3] = ["backoff", "call", "counted"];

const TASKSET: &str = "taskset";

/// Two ways to count, each with all threads on one CPU.
struct Way {
    what: What,
    option: &'static str,
    threads: u32,
    /// What who holds the lock does, for how long, and how often in a run.
    hold: &'static str,
    seconds: f64,
    holds: f64,
    /// To be reached, or waits.
    samples: f64,
}

const WAYS: [Way; 2] = [
    // Nobody runs but those who wait, so each sample is of a thread that does, but for the few
    // moments between two waits. Nothing is done about them, or there would be a few samples only.
    Way {
        what: What::Sensitivity,
        option: "--spin=observe",
        threads: 3,
        hold: "sleep",
        seconds: 0.1,
        holds: 10.0,
        samples: 1000.0,
    },
    // Longer than the longest time between two samples, which is 6 ms: a thread is looked at if it
    // has not let another one run from one tick of 3 ms to the next.
    Way {
        what: What::Waits,
        option: "--spin=auto",
        threads: 2,
        hold: "compute",
        seconds: 0.01,
        holds: 1000.0,
        samples: 1000.0,
    },
];

pub fn watches(args: &SpinArgs, session: &Session) -> anyhow::Result<Vec<Watch>> {
    let spin = workload::compile(session, SPIN)?;
    let cpu = crate::process::allowed_cpus().first().copied().context("no CPU")?;
    let mut locks: Vec<&str> = args.locks().collect();
    if args.lock.is_empty() {
        locks.extend(LOOPS);
    }
    let mut watches = Vec::new();
    for way in &WAYS {
        for (lock, pause) in variants(&locks, args) {
            for switch in args.common.switches() {
                let mut command: Vec<OsString> = vec![spin.clone().into(), "sensitivity".into()];
                let mut option =
                    |name: &str, value: &str| command.extend([name.into(), value.into()]);
                option("--lock", lock);
                option("--threads", &way.threads.to_string());
                option("--hold", way.hold);
                option("--seconds", &way.seconds.to_string());
                option("--rounds", &(way.holds * args.common.scale).ceil().to_string());
                command.extend(pause.option().map(OsString::from));
                watches.push(Watch {
                    what: way.what,
                    name: pause.name(lock),
                    switch,
                    outside: vec![TASKSET.into(), "-c".into(), cpu.to_string().into()],
                    options: vec![way.option],
                    command,
                    process: "spin",
                    samples: (way.samples * args.common.scale).ceil() as u64,
                    missing: is_missing(TASKSET.as_ref()),
                });
            }
        }
    }
    Ok(watches)
}
