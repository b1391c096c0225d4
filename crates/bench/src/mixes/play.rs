//! Run programs beside each other. Each restarts until all have completed the wanted number of
//! runs.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use serde::Serialize;

use super::super::Session;
use super::super::child::{Ended, Running};
use super::programs::Program;
use os::process;

/// A program that runs beside others.
pub struct Part<'a> {
    pub program: &'a Program,
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

pub enum Outcome {
    /// The complete runs of each part, and the fraction of the CPUs that other processes used, or
    /// the host of a virtual machine.
    Done(Vec<Vec<Run>>, f64),
    Failed(String),
    Timeout,
}

/// Maximum interval between checks of the manager.
const LOOK: Duration = Duration::from_millis(500);

/// Start all parts at the same time, and restart each until all have `completed` runs. Faster parts
/// continue until then, so no part has the machine to itself. Their last, incomplete runs do not
/// count. `limit`: maximum duration of all runs together.
pub fn play(
    session: &Session,
    parts: &[Part],
    completed: usize,
    limit: Duration,
    mut manager: Option<&mut Manager>,
) -> anyhow::Result<Outcome> {
    let (begun, busy) = (Instant::now(), busy_seconds());
    let deadline = begun + limit;
    // CPU seconds of all programs started here.
    let mut used = 0.0;
    let start = |part: &Part, i: usize| {
        Running::start(&part.command, &session.scratch, &format!("part{i}"), part.cpus.as_deref())
    };
    let mut done: Vec<Vec<Run>> = vec![Vec::new(); parts.len()];
    let mut running = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        running.push(start(part, i)?);
    }
    loop {
        for (i, part) in parts.iter().enumerate() {
            let Some(exited) = running[i].poll()? else { continue };
            let name = part.program.name.text();
            used += exited.used.cpu_seconds();
            match exited.ended {
                Ended::Well(output) => {
                    if let Some(why) = part.program.check(&output) {
                        return Ok(Outcome::Failed(format!("{name}: {why}")));
                    }
                    done[i].push(Run {
                        seconds: exited.seconds,
                        cpu_seconds: exited.used.cpu_seconds(),
                    });
                }
                Ended::Badly(why) => return Ok(Outcome::Failed(format!("{name}: {why}"))),
                Ended::TooSlow => return Ok(Outcome::Timeout),
            }
            if done.iter().all(|runs| runs.len() >= completed) {
                drop(running.swap_remove(i));
                for other in running {
                    used += other.stop()?;
                }
                let there = begun.elapsed().as_secs_f64() * process::allowed_cpus().len() as f64;
                return Ok(Outcome::Done(
                    done,
                    ((busy_seconds() - busy - used) / there).clamp(0.0, 1.0),
                ));
            }
            running[i] = start(part, i)?;
        }
        if let Some(why) = manager.as_mut().map(|m| m.ended()).transpose()?.flatten() {
            return Ok(Outcome::Failed(why));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Outcome::Timeout);
        }
        session.signals.wait_for_child(left.min(LOOK))?;
    }
}

/// Return for how many seconds the CPUs that this process may use were busy since the boot. Time
/// that the host of a virtual machine took (steal) counts as busy.
pub fn busy_seconds() -> f64 {
    let (cpus, text) =
        (process::allowed_cpus(), std::fs::read_to_string("/proc/stat").unwrap_or_default());
    let ticks: f64 = text.lines().filter_map(|line| busy_ticks(line, &cpus)).sum();
    ticks / procfs::ticks_per_second().max(1) as f64
}

/// Return the busy ticks of a line `cpu3 user nice system idle iowait irq softirq steal ...` of
/// /proc/stat, if it is one of `cpus`.
fn busy_ticks(line: &str, cpus: &[usize]) -> Option<f64> {
    let (cpu, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
    if !cpus.contains(&cpu.parse().ok()?) {
        return None;
    }
    let ticks = fields.split_whitespace().take(8).enumerate().filter(|(i, _)| ![3, 4].contains(i));
    ticks.map(|(_, t)| t.parse::<f64>().ok()).sum()
}

/// Environment variable with the path of the manager's socket.
pub const SOCKET: &str = "LISSOM_MANAGER";

/// Return words in front of a command that make it use the manager's socket at `path`.
pub fn with_socket(path: &Path) -> Vec<OsString> {
    let mut setting = OsString::from(format!("{SOCKET}="));
    setting.push(path);
    vec!["env".into(), setting]
}

/// A running `lissom manager`. Dropping it kills the manager.
pub struct Manager {
    running: Running,
    socket: PathBuf,
}

/// Maximum time until the manager listens.
const START: Duration = Duration::from_secs(5);

impl Manager {
    /// Start a manager, and wait until it listens at `socket`. Nothing may exist at that path. The
    /// inner error says why the manager does not listen.
    pub fn start(
        session: &Session,
        command: &[OsString],
        socket: &Path,
    ) -> anyhow::Result<Result<Manager, String>> {
        let command: Vec<OsString> =
            with_socket(socket).into_iter().chain(command.iter().cloned()).collect();
        let running = Running::start(&command, &session.scratch, "manager", None)?;
        let mut manager = Manager { running, socket: socket.into() };
        let deadline = Instant::now() + START;
        loop {
            if let Some(why) = manager.ended()? {
                return Ok(Err(why));
            }
            if std::fs::metadata(socket).is_ok_and(|m| m.file_type().is_socket()) {
                return Ok(Ok(manager));
            }
            if Instant::now() > deadline {
                return Ok(Err(format!(
                    "lissom manager did not listen at {} within 5 s",
                    socket.display()
                )));
            }
            session.signals.wait_for_child(Duration::from_millis(10))?;
        }
    }

    /// Return why the manager has exited, or `None` if it runs. Must not be called after the exit.
    fn ended(&mut self) -> anyhow::Result<Option<String>> {
        Ok(self.running.poll()?.map(|exited| match exited.ended {
            Ended::Badly(why) => format!("lissom manager has ended: {why}"),
            _ => "lissom manager has ended".into(),
        }))
    }

    /// Kill the manager, and remove its socket. Returns the fraction of one CPU that it used.
    pub fn stop(self) -> anyhow::Result<f64> {
        let seconds = self.running.seconds();
        let used = self.running.stop()?;
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
    fn time_of_cpus() {
        assert_eq!(busy_ticks("cpu1 10 20 30 1000 500 1 2 3 0 0", &[1, 2]), Some(66.0));
        assert_eq!(busy_ticks("cpu11 10 20 30 1000 500 1 2 3 0 0", &[1, 2]), None);
        assert_eq!(busy_ticks("cpu  10 20 30 1000 500 1 2 3 0 0", &[1, 2]), None);
        assert!(busy_seconds() > 0.0);
    }

    #[test]
    fn a_manager_that_ends_is_said() {
        let session = session();
        let socket = session.scratch.path().join("manager.sock");
        let started = Manager::start(&session, &shell("echo no >&2; exit 3"), &socket).expect("sh");
        assert_eq!(started.err().as_deref(), Some("lissom manager has ended: exit code 3: no"));
    }

    #[test]
    fn a_manager_is_waited_for_and_stopped() {
        let session = session();
        let socket = session.scratch.path().join("manager.sock");
        let script = format!("[ \"$LISSOM_MANAGER\" = '{}' ] && exec sleep 100", socket.display());
        let listener = UnixListener::bind(&socket).expect("a socket");
        let mut manager = match Manager::start(&session, &shell(&script), &socket).expect("sh") {
            Ok(manager) => manager,
            Err(why) => panic!("{why}"),
        };
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(manager.ended().expect("wait4"), None);
        assert!(manager.stop().expect("wait4") < 0.9);
        assert!(!socket.exists());
        drop(listener);
    }
}
