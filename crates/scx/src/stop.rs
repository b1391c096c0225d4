//! `lissom sched stop`: end the running scheduler, whichever process started it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{find, load, refuse};
use os::sched_ext::SchedExt;

/// Stop the scheduler of lissom sched start
///
/// Waits until the kernel's own scheduler has all threads again. Needs root.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0 if it has ended, 1 if it does not run or cannot be ended.")]
pub struct StopArgs {}

/// Longest wait for the process: it may be judging, or be blocked by a stopped terminal.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the exit code.
pub fn stop(_args: &StopArgs) -> anyhow::Result<i32> {
    let before = refuse::kernel()?;
    let Some(running) = find::running()? else {
        bail!("lissom's scheduler does not run: {}", who(&before));
    };
    let pid = running.state.pid;
    // The ID is not reused: the process had the scheduler's maps open a moment ago.
    kill(Pid::from_raw(pid as libc::pid_t), Signal::SIGTERM)
        .with_context(|| format!("cannot end process {pid}"))?;
    let end = Instant::now() + PATIENCE;
    while running.is_alive() {
        if Instant::now() > end {
            bail!(
                "process {pid} has not ended after {} s: kill -9 {pid} also ends the scheduler",
                PATIENCE.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    load::wait_until_off()?;
    println!("ended: process {pid}");
    Ok(0)
}

/// Describe what schedules instead of lissom's scheduler.
pub fn who(now: &SchedExt) -> String {
    match &now.scheduler {
        _ if now.is_off() => "the kernel's own scheduler runs".into(),
        Some(name) => format!("another scheduler runs, {name}"),
        None => format!("sched_ext is {}", now.state),
    }
}
