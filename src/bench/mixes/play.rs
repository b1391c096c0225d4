//! Programs that run beside each other: each is started again until all have completed as many runs
//! as wanted.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use serde::Serialize;

use super::super::Session;
use super::super::child::{Ended, Running};
use super::programs::Program;
use crate::process;

/// One of those that run beside each other.
pub struct Part<'a> {
    pub program: &'a Program,
    pub command: Vec<OsString>,
    /// Those that it may use, or else all that there are.
    pub cpus: Option<Vec<usize>>,
}

/// A complete run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Run {
    pub seconds: f64,
    pub cpu_seconds: f64,
}

pub enum Outcome {
    /// The complete runs, by part, and the part of the CPUs that was taken by others, the host of a
    /// virtual machine included.
    Done(Vec<Vec<Run>>, f64),
    Failed(String),
    Timeout,
}

/// How often somebody looks whether the manager is still there.
const LOOK: Duration = Duration::from_millis(500);

/// All begin at the same time. The one that takes longest decides when it is over: the others go on
/// until then, so that nobody has the machine for itself, and their last runs, which are not
/// complete, do not count. `limit`: of the whole.
pub fn play(
    session: &Session,
    parts: &[Part],
    completed: usize,
    limit: Duration,
    mut manager: Option<&mut Manager>,
) -> anyhow::Result<Outcome> {
    let (begun, busy) = (Instant::now(), busy_seconds());
    let deadline = begun + limit;
    // Of all that was started here.
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

/// How long the CPUs that this process may use were busy so far, or their virtual machine had to
/// wait.
pub fn busy_seconds() -> f64 {
    let (cpus, text) =
        (process::allowed_cpus(), std::fs::read_to_string("/proc/stat").unwrap_or_default());
    let ticks: f64 = text.lines().filter_map(|line| busy_ticks(line, &cpus)).sum();
    // SAFETY: plain call.
    ticks / unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64
}

/// Of a line `cpu3 user nice system idle iowait irq softirq steal ...`, if it is one of `cpus`.
fn busy_ticks(line: &str, cpus: &[usize]) -> Option<f64> {
    let (cpu, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
    if !cpus.contains(&cpu.parse().ok()?) {
        return None;
    }
    let ticks = fields.split_whitespace().take(8).enumerate().filter(|(i, _)| ![3, 4].contains(i));
    ticks.map(|(_, t)| t.parse::<f64>().ok()).sum()
}

/// Where the programs under lissom and their manager find each other.
pub const SOCKET: &str = "LISSOM_MANAGER";

/// In front of a command: with this socket, which nobody else knows.
pub fn with_socket(path: &Path) -> Vec<OsString> {
    let mut setting = OsString::from(format!("{SOCKET}="));
    setting.push(path);
    vec!["env".into(), setting]
}

/// `lissom manager`, for as long as this lives.
pub struct Manager {
    running: Running,
    socket: PathBuf,
}

/// How long it may take until it listens.
const START: Duration = Duration::from_secs(5);

impl Manager {
    /// Post: it listens at `socket`, or the text says why not. Pre: nothing is there.
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
                return Ok(Err(format!("lissom manager does not listen at {}", socket.display())));
            }
            session.signals.wait_for_child(Duration::from_millis(10))?;
        }
    }

    /// Why there is none any more, if so; it is not asked again then.
    fn ended(&mut self) -> anyhow::Result<Option<String>> {
        Ok(self.running.poll()?.map(|exited| match exited.ended {
            Ended::Badly(why) => format!("lissom manager has ended: {why}"),
            _ => "lissom manager has ended".into(),
        }))
    }

    /// Ends it. Post: the part of one CPU that it has used.
    pub fn stop(self) -> anyhow::Result<f64> {
        let seconds = self.running.seconds();
        let used = self.running.stop()?;
        if std::fs::remove_file(&self.socket).is_err() && self.socket.exists() {
            bail!("{} cannot be removed", self.socket.display());
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
