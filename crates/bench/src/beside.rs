//! Run one program, and optionally another beside it that computes until the first one exits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Session;
use super::child::{Ended, Running};
use super::energy::Energy;
use super::mixes::busy_seconds;
use os::process;

pub enum Outcome {
    /// The program's output, with `others` (fraction of the CPUs that other processes used),
    /// `watts` if known, and `beside` (output of the second program).
    Done(Value),
    Failed(String),
    Timeout,
}

/// Maximum time until the other program computes, and until it exits after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);

/// Run `program` for at most `limit`. `computes`: the command of the program beside it, if any.
pub fn run(
    session: &Session,
    program: &[OsString],
    computes: Option<&[OsString]>,
    energy: Option<&Energy>,
    limit: Duration,
) -> anyhow::Result<Outcome> {
    let (begun, busy) = (Instant::now(), busy_seconds());
    let mut beside = None;
    if let Some(command) = computes {
        let mut other = Beside::start(session, command)?;
        if let Err(why) = other.await_ready(session)? {
            return Ok(Outcome::Failed(why));
        }
        beside = Some(other);
    }
    let joules = energy.and_then(Energy::read);
    let mut running = Running::start(program, &session.scratch, "program", None)?;
    let deadline = Instant::now() + limit;
    let exited = loop {
        if let Some(exited) = running.poll()? {
            break exited;
        }
        if let Some(why) = beside.as_mut().map(Beside::ended).transpose()?.flatten() {
            return Ok(Outcome::Failed(why));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Outcome::Timeout);
        }
        session.signals.wait_for_child(left)?;
    };
    let joules = energy.zip(joules).and_then(|(energy, begun)| energy.since(&begun));
    let mut used = exited.used.cpu_seconds();
    let text = match exited.ended {
        Ended::Well(text) => text,
        Ended::Badly(why) => return Ok(Outcome::Failed(why)),
        Ended::TooSlow => return Ok(Outcome::Timeout),
    };
    let line = text.lines().last().unwrap_or_default();
    let Ok(mut value) = serde_json::from_str::<Value>(line) else {
        return Ok(Outcome::Failed(format!("its output is not JSON: {line}")));
    };
    if let Some(other) = beside {
        let reported = value["reported_at"].as_f64().unwrap_or(0.0);
        let window = (reported - value["seconds"].as_f64().unwrap_or(0.0), reported);
        match other.stop(session, window)? {
            Ok((found, cpu_seconds)) => {
                value["beside"] = found;
                used += cpu_seconds;
            }
            Err(why) => return Ok(Outcome::Failed(why)),
        }
    }
    let there = begun.elapsed().as_secs_f64() * process::allowed_cpus().len() as f64;
    value["others"] = json!(((busy_seconds() - busy - used) / there).clamp(0.0, 1.0));
    if let Some(joules) = joules {
        value["watts"] = json!(joules / exited.seconds);
    }
    Ok(Outcome::Done(value))
}

/// The program that computes: workloads/work.c, which runs until SIGTERM.
pub struct Beside {
    running: Running,
    out: PathBuf,
}

impl Beside {
    pub fn start(session: &Session, command: &[OsString]) -> anyhow::Result<Beside> {
        let running = Running::start(command, &session.scratch, "beside", None)?;
        Ok(Beside { running, out: session.scratch.path().join("beside.stdout") })
    }

    /// Return why the program has exited, or `None` if it runs. Must not be called after the exit.
    pub fn ended(&mut self) -> anyhow::Result<Option<String>> {
        Ok(self.running.poll()?.map(|exited| match exited.ended {
            Ended::Badly(why) => format!("the computing program ended: {why}"),
            _ => "the computing program ended".into(),
        }))
    }

    /// Wait until all threads of the program compute. The inner error says why they do not.
    pub fn await_ready(&mut self, session: &Session) -> anyhow::Result<Result<(), String>> {
        let deadline = Instant::now() + PATIENCE;
        while std::fs::metadata(&self.out)?.len() == 0 {
            if let Some(why) = self.ended()? {
                return Ok(Err(why));
            }
            if Instant::now() > deadline {
                return Ok(Err("the computing program did not start".into()));
            }
            session.signals.wait_for_child(LOOK)?;
        }
        Ok(Ok(()))
    }

    /// Stop the program. Returns its output, with the rate in `window`, and all its CPU seconds.
    /// `window`: start and end by CLOCK_MONOTONIC, in seconds. The inner error says what failed.
    pub fn stop(
        mut self,
        session: &Session,
        window: (f64, f64),
    ) -> anyhow::Result<Result<(Value, f64), String>> {
        self.running.ask_to_end();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(exited) = self.running.poll()? {
                return Ok(match exited.ended {
                    Ended::Well(text) => {
                        read(&text, window).map(|value| (value, exited.used.cpu_seconds()))
                    }
                    Ended::Badly(why) => Err(format!("the computing program failed: {why}")),
                    Ended::TooSlow => Err("the computing program did not end".into()),
                });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Err("the computing program did not end".into()));
            }
            session.signals.wait_for_child(left)?;
        }
    }
}

/// Return the last line of the program's output, with its rate in the window as `per_second`.
fn read(text: &str, window: (f64, f64)) -> Result<Value, String> {
    let lines: Vec<Value> = text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let points: Vec<(f64, f64)> = lines
        .iter()
        .filter_map(|l| l["progress"].as_array())
        .flatten()
        .filter_map(|p| Some((p[0].as_f64()?, p[1].as_f64()?)))
        .collect();
    let rate = rate(&points, window)
        .ok_or("the computing program ran for less time than its neighbour")?;
    let mut value = lines.last().cloned().unwrap_or_default();
    value["per_second"] = json!(rate);
    Ok(value)
}

/// Return the rate between two times. Interpolate `points`, (time, count) in order of time; the
/// count is 0 before the first point. After the last point, extrapolate from the last two: the
/// thread that records points does not run all the time.
fn rate(points: &[(f64, f64)], (from, to): (f64, f64)) -> Option<f64> {
    let at = |time: f64| {
        if time <= points.first()?.0 {
            return Some(0.0);
        }
        let behind =
            points.partition_point(|p| p.0 < time).clamp(1, points.len().checked_sub(1)?.max(1));
        let (a, b) = (points.get(behind - 1)?, points.get(behind)?);
        Some(a.1 + (b.1 - a.1) * (time - a.0) / (b.0 - a.0))
    };
    (to > from).then_some((at(to)? - at(from)?) / (to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_in_a_window() {
        let points = [(1.0, 0.0), (2.0, 100.0), (4.0, 300.0), (5.0, 350.0)];
        assert_eq!(rate(&points, (2.0, 4.0)), Some(100.0));
        assert_eq!(rate(&points, (1.5, 4.5)), Some((325.0 - 50.0) / 3.0));
        assert_eq!(rate(&points, (4.0, 6.0)), Some(50.0));
        assert_eq!(rate(&points, (0.0, 2.0)), Some(50.0));
        assert_eq!(rate(&points, (3.0, 3.0)), None);
        assert_eq!(rate(&points[..1], (0.5, 2.0)), None);
        assert_eq!(rate(&[], (1.5, 2.0)), None);
    }

    #[test]
    fn what_it_says() {
        let text =
            "{\"ready\": true}\n{\"progress\": [[1.0, 0], [3.0, 50]]}\n{\"cpu_seconds\": 2.5}\n";
        let value = read(text, (1.0, 2.0)).expect("a rate");
        assert_eq!(
            (value["per_second"].as_f64(), value["cpu_seconds"].as_f64()),
            (Some(25.0), Some(2.5))
        );
        assert!(read("{\"ready\": true}\n", (1.0, 2.0)).is_err());
    }
}
