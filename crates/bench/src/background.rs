//! Programs that run beside the measured one, and runs that do not count.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Session;
use super::child::{Ended, Exited, Running};
use super::counters::Process;
use super::harness::{Outcome, Ran, Sample, State};
use super::statistics::native_because;
use os::process;

/// Why a run does not count. As an error, it ends only this run.
#[derive(Debug)]
pub enum Bad {
    Failed(String),
    Timeout,
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bad::Failed(why) => f.write_str(why),
            Bad::Timeout => f.write_str("it did not end within the time limit"),
        }
    }
}

impl std::error::Error for Bad {}

impl Bad {
    /// Name the program that failed.
    pub fn of(self, name: &str) -> Bad {
        match self {
            Bad::Failed(why) => Bad::Failed(format!("{name}: {why}")),
            Bad::Timeout => Bad::Timeout,
        }
    }

    /// Return the state of a cell, and its error.
    pub fn state(self) -> (State, Option<String>) {
        match self {
            Bad::Failed(why) => (State::Failed, Some(why)),
            Bad::Timeout => (State::Timeout, None),
        }
    }
}

/// Return the error of a run that failed.
pub fn failed(why: impl Into<String>) -> anyhow::Error {
    Bad::Failed(why.into()).into()
}

/// Separate runs that do not count from errors that end the benchmark.
pub fn judge<T>(result: anyhow::Result<T>) -> anyhow::Result<Result<T, Bad>> {
    result.map(Ok).or_else(|error| Ok(Err(error.downcast::<Bad>()?)))
}

/// Return the outcome of a run whose value is `field` of its output.
pub fn outcome(result: anyhow::Result<Value>, field: &str) -> anyhow::Result<Outcome> {
    Ok(match judge(result)? {
        Ok(output) => match output[field].as_f64() {
            Some(value) => Outcome::Done(Sample { value, output, process: Process::default() }),
            None => Outcome::Failed(format!("its output has no {field}: {output}")),
        },
        Err(Bad::Failed(why)) => Outcome::Failed(why),
        Err(Bad::Timeout) => Outcome::Timeout,
    })
}

impl Session {
    /// Return the result of a run. `watched`: whether its command wrote statistics.
    pub fn ran(&self, outcome: Outcome, watched: bool) -> Ran {
        let statistics = watched.then(|| self.statistics()).flatten();
        let native_because = statistics.as_ref().and_then(native_because);
        Ran { statistics, native_because, ..Ran::of(outcome) }
    }
}

impl Ended {
    /// Return the standard output of a run that succeeded.
    pub fn output(self) -> Result<String, Bad> {
        match self {
            Ended::Well(output) => Ok(output),
            Ended::Badly(why) => Err(Bad::Failed(why)),
            Ended::TooSlow => Err(Bad::Timeout),
        }
    }
}

/// Wait until all programs exit, for at most `limit`. Returns each, and the time of its end, in
/// seconds by CLOCK_MONOTONIC. `check` fails if a program in the background has exited.
pub fn await_all(
    session: &Session,
    mut running: Vec<Running>,
    limit: Duration,
    mut check: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Vec<(Exited, f64)>> {
    let deadline = Instant::now() + limit;
    let mut done: Vec<Option<(Exited, f64)>> = running.iter().map(|_| None).collect();
    loop {
        for (program, done) in running.iter_mut().zip(&mut done).filter(|(_, d)| d.is_none()) {
            let exited = program.poll()?;
            *done = exited.map(|exited| (exited, process::monotonic().as_secs_f64()));
        }
        if done.iter().all(Option::is_some) {
            return Ok(done.into_iter().flatten().collect());
        }
        check()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Bad::Timeout.into());
        }
        session.signals.wait_for_child(left)?;
    }
}

/// Maximum time until a program is ready, and until it exits after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval between checks of a program.
const PAUSE: Duration = Duration::from_millis(3);

/// A program that has to run until it is stopped. Dropping it kills the program.
pub struct Background {
    running: Running,
    /// Name for people.
    name: &'static str,
}

impl Background {
    /// Start a program. `file`: name of its output files.
    pub fn start(
        session: &Session,
        name: &'static str,
        command: &[OsString],
        file: &str,
    ) -> anyhow::Result<Background> {
        Ok(Background { running: Running::start(command, &session.scratch, file, None)?, name })
    }

    pub fn seconds(&self) -> f64 {
        self.running.seconds()
    }

    /// Fail if the program has exited.
    pub fn check(&mut self) -> anyhow::Result<()> {
        match self.running.poll()?.map(|exited| exited.ended) {
            None => Ok(()),
            Some(Ended::Badly(why)) => Err(failed(format!("{} has ended: {why}", self.name))),
            Some(_) => Err(failed(format!("{} has ended", self.name))),
        }
    }

    pub fn await_ready(
        &mut self,
        session: &Session,
        is_ready: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !is_ready() {
            self.check()?;
            if Instant::now() > deadline {
                return Err(failed(format!("{} was not ready within 20 s", self.name)));
            }
            session.signals.wait_for_child(PAUSE)?;
        }
        Ok(())
    }

    /// Send SIGTERM, and wait until the program exits.
    pub fn stop(mut self, session: &Session) -> anyhow::Result<Exited> {
        self.running.ask_to_end();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(exited) = self.running.poll()? {
                return Ok(exited);
            }
            if Instant::now() > deadline {
                return Err(failed(format!("{} did not end within 20 s", self.name)));
            }
            session.signals.wait_for_child(PAUSE)?;
        }
    }

    /// Kill the program. Returns the CPU seconds that it used.
    pub fn kill(self) -> anyhow::Result<f64> {
        self.running.stop()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{session, shell};
    use super::*;

    fn start(session: &Session, script: &str) -> Background {
        Background::start(session, "the server", &shell(script), "server").expect("sh")
    }

    #[test]
    fn a_program_that_ends_is_said() {
        let session = session();
        let mut dead = start(&session, "echo no >&2; exit 3");
        let why = dead.await_ready(&session, || false).expect_err("it ends").to_string();
        assert_eq!(why, "the server has ended: exit code 3: no");
    }

    #[test]
    fn a_program_is_waited_for_and_stopped() {
        let session = session();
        let file = session.scratch.path().join("ready");
        let script =
            format!("trap 'exit 0' TERM; echo >'{}'; while :; do sleep 0.01; done", file.display());
        let mut server = start(&session, &script);
        server.await_ready(&session, || file.exists()).expect("a file");
        assert!(matches!(server.stop(&session).expect("wait4").ended, Ended::Well(_)));
        let idle = start(&session, "exec sleep 100");
        assert!(idle.kill().expect("wait4") < 0.9);
    }
}
