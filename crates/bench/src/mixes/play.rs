//! Run programs beside each other. Each restarts until all have completed the wanted number of
//! runs.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use serde::Serialize;

use super::super::Session;
use super::super::background::{Background, Bad};
use super::super::child::Running;
use super::super::command::{after, with_variable};
use super::super::meter::Meter;
use super::super::programs::Ready;

/// A program that runs beside others.
pub struct Part<'a> {
    pub program: &'a Ready,
    pub command: Vec<OsString>,
    /// CPUs that it may use. `None`: all CPUs.
    pub cpus: Option<Vec<usize>>,
}

/// A complete run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Run {
    pub seconds: f64,
    pub cpu_seconds: f64,
}

/// Maximum interval between checks of the manager.
const LOOK: Duration = Duration::from_millis(500);

/// Start all parts at the same time, and restart each until all have `completed` runs. Faster parts
/// continue until then, so no part has the machine to itself. Their last, incomplete runs do not
/// count. `limit`: maximum duration of all runs together. Returns the complete runs of each part,
/// and the fraction of the CPUs that other processes used, or the host of a virtual machine.
pub fn play(
    session: &Session,
    parts: &[Part],
    completed: usize,
    limit: Duration,
    mut manager: Option<&mut Manager>,
) -> anyhow::Result<(Vec<Vec<Run>>, f64)> {
    let (meter, deadline) = (Meter::start(None), Instant::now() + limit);
    // CPU seconds of all programs started here.
    let mut used = 0.0;
    let start = |(i, part): (usize, &Part)| {
        Running::start(&part.command, &session.scratch, &format!("part{i}"), part.cpus.as_deref())
    };
    let mut done: Vec<Vec<Run>> = vec![Vec::new(); parts.len()];
    let mut running = parts.iter().enumerate().map(start).collect::<anyhow::Result<Vec<_>>>()?;
    loop {
        for (i, part) in parts.iter().enumerate() {
            let Some(exited) = running[i].poll()? else { continue };
            let run = Run { seconds: exited.seconds, cpu_seconds: exited.used.cpu_seconds() };
            used += run.cpu_seconds;
            part.program.check(exited.ended).map_err(|bad| bad.of(&part.program.name))?;
            done[i].push(run);
            if done.iter().all(|runs| runs.len() >= completed) {
                drop(running.swap_remove(i));
                for other in running {
                    used += other.stop()?;
                }
                return Ok((done, meter.others(used)));
            }
            running[i] = start((i, part))?;
        }
        if let Some(manager) = &mut manager {
            manager.process.check()?;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Bad::Timeout.into());
        }
        session.signals.wait_for_child(left.min(LOOK))?;
    }
}

/// Environment variable with the path of the manager's socket.
pub const SOCKET: &str = "LISSOM_MANAGER";

/// A running `lissom manager`. Dropping it kills the manager.
pub struct Manager {
    process: Background,
    socket: PathBuf,
}

impl Manager {
    /// Start a manager, and wait until it listens at `socket`. Nothing may exist at that path.
    pub fn start(
        session: &Session,
        command: &[OsString],
        socket: &Path,
    ) -> anyhow::Result<Manager> {
        let command = after(&with_variable(SOCKET, socket), command);
        let mut process = Background::start(session, "lissom manager", &command, "manager")?;
        let is_there = || std::fs::metadata(socket).is_ok_and(|m| m.file_type().is_socket());
        process.await_ready(session, is_there)?;
        Ok(Manager { process, socket: socket.into() })
    }

    /// Kill the manager, and remove its socket. Returns the fraction of one CPU that it used.
    pub fn stop(self) -> anyhow::Result<f64> {
        let seconds = self.process.seconds();
        let used = self.process.kill()?;
        if std::fs::remove_file(&self.socket).is_err() && self.socket.exists() {
            bail!("cannot remove {}", self.socket.display());
        }
        Ok(used / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{session, shell};
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_manager_is_waited_for_and_stopped() {
        let session = session();
        let socket = session.scratch.path().join("manager.sock");
        let script = format!("[ \"$LISSOM_MANAGER\" = '{}' ] && exec sleep 100", socket.display());
        let listener = UnixListener::bind(&socket).expect("a socket");
        let mut manager = Manager::start(&session, &shell(&script), &socket).expect("sh");
        std::thread::sleep(Duration::from_millis(100));
        manager.process.check().expect("it runs");
        assert!(manager.stop().expect("wait4") < 0.9);
        assert!(!socket.exists());
        drop(listener);
    }
}
