//! How many of those who wait in a loop are recognised, for each of the locks and for some other kinds of
//! loops.

use std::ffi::OsString;

use anyhow::Context as _;

use super::Session;
use super::spin::{SpinArgs, variants};
use super::watch::{Watch, What, is_missing};
use super::workload::{self, SPIN};

/// Loops that only this benchmark has, as locks of workloads/spin.c.
pub const LOOPS: [&str; 3] = ["backoff", "call", "counted"];

const TASKSET: &str = "taskset";

/// Samples are taken while threads are ready and a slot keeps its own: so two wait, by turns on one CPU. The
/// one that holds the lock sleeps, or it would be sampled too.
const THREADS: &str = "3";
const HOLD_SECONDS: &str = "0.1";
const HOLDS: f64 = 10.0;

/// At least. One run gives hundreds where waits are recognised, as the next sample comes the sooner then; ten
/// if not.
const SAMPLES: f64 = 100.0;

pub fn watches(args: &SpinArgs, session: &Session) -> anyhow::Result<Vec<Watch>> {
    let spin = workload::compile(session, SPIN)?;
    let cpu = super::child::allowed_cpus().first().copied().context("no CPU")?;
    let mut locks: Vec<&str> = args.locks().collect();
    if args.lock.is_empty() {
        locks.extend(LOOPS);
    }
    let mut watches = Vec::new();
    for (lock, pause) in variants(&locks, args) {
        for switch in args.common.switches() {
            let mut command: Vec<OsString> = vec![spin.clone().into(), "sensitivity".into()];
            command.extend(["--lock".into(), lock.into(), "--threads".into(), THREADS.into()]);
            command.extend(["--hold".into(), "sleep".into(), "--seconds".into(), HOLD_SECONDS.into()]);
            let holds = (HOLDS * args.common.scale).ceil();
            command.extend(["--rounds".into(), holds.to_string().into()]);
            command.extend(pause.option().map(OsString::from));
            watches.push(Watch {
                what: What::Sensitivity,
                name: pause.name(lock),
                switch,
                outside: vec![TASKSET.into(), "-c".into(), cpu.to_string().into()],
                options: &["--spin=auto"],
                command,
                process: "spin",
                samples: (SAMPLES * args.common.scale).ceil() as u64,
                missing: is_missing(TASKSET.as_ref()),
            });
        }
    }
    Ok(watches)
}
