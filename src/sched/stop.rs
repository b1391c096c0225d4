//! `lissom sched stop`: ends the one that runs, wherever it was started.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;

use super::{find, kernel::SchedExt, load, refuse};

/// End the scheduler that lissom sched start has started
///
/// Waits until the kernel's own scheduler has all threads again. Needs root.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0 if it is ended, 1 if none of lissom's runs or it cannot be ended.")]
pub struct StopArgs {}

/// It may be judging, or writing to a terminal that is stopped.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the exit code.
pub fn stop(_args: &StopArgs) -> anyhow::Result<i32> {
    let before = refuse::kernel()?;
    let Some(running) = find::running()? else {
        bail!("lissom's scheduler does not run: {}", who(&before));
    };
    let pid = running.state.pid;
    // SAFETY: plain numbers. That the process is the one was found by what it has open, a moment
    // ago.
    if unsafe { libc::kill(pid as libc::pid_t, libc::SIGTERM) } != 0 {
        let error = std::io::Error::last_os_error();
        bail!("process {pid} cannot be ended: {error}");
    }
    let end = Instant::now() + PATIENCE;
    while running.is_alive() {
        if Instant::now() > end {
            bail!(
                "process {pid} has not ended after {} s: kill -9 {pid} ends the scheduler, too",
                PATIENCE.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    load::wait_until_off()?;
    println!("ended: process {pid}");
    Ok(0)
}

/// What does run.
pub fn who(now: &SchedExt) -> String {
    match &now.scheduler {
        _ if now.is_off() => "the kernel's own does".into(),
        Some(name) => format!("another one does, {name}"),
        None => format!("sched_ext is {}", now.state),
    }
}
