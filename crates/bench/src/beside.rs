//! Run one program, and optionally another beside it that computes until the first one exits.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Value, json};

use super::Session;
use super::background::{Background, await_all, failed};
use super::child::Running;
use super::command::words;
use super::energy::Energy;
use super::meter::Meter;
use super::workload::{self, WORK};

/// Run `program` for at most `limit`. `computes`: the command of the program beside it, if any.
/// Returns the program's output, with `others` (fraction of the CPUs that other processes used),
/// `watts` if known, and `beside` (output of the second program).
pub fn run(
    session: &Session,
    program: &[OsString],
    computes: Option<&[OsString]>,
    energy: Option<&Energy>,
    limit: Duration,
) -> anyhow::Result<Value> {
    let meter = Meter::start(None);
    let mut beside = computes.map(|command| Beside::start(session, command)).transpose()?;
    let power = Meter::start(energy);
    let running = Running::start(program, &session.scratch, "program", None)?;
    let check = || beside.as_mut().map_or(Ok(()), Beside::check);
    let (exited, _) = await_all(session, vec![running], limit, check)?.remove(0);
    let watts = power.watts();
    let mut used = exited.used.cpu_seconds();
    let text = exited.ended.output()?;
    let line = text.lines().last().unwrap_or_default();
    let mut value: Value = serde_json::from_str(line)
        .map_err(|_| failed(format!("its output is not JSON: {line}")))?;
    if let Some(other) = beside {
        let reported = value["reported_at"].as_f64().unwrap_or(0.0);
        let window = (reported - value["seconds"].as_f64().unwrap_or(0.0), reported);
        let (found, cpu_seconds) = other.stop(session, window)?;
        value["beside"] = found;
        used += cpu_seconds;
    }
    value["others"] = json!(meter.others(used));
    if let Some(watts) = watts {
        value["watts"] = json!(watts);
    }
    Ok(value)
}

/// Return the native command of the program that computes: workloads/work.c, until SIGTERM.
pub fn command(session: &Session, what: &str, threads: u32) -> anyhow::Result<Vec<OsString>> {
    let program = workload::compile(session, WORK)?;
    Ok(words![program, what, "--threads", threads.to_string()])
}

/// The program that computes.
pub struct Beside(Background);

impl Beside {
    /// Start the program, and wait until all its threads compute.
    pub fn start(session: &Session, command: &[OsString]) -> anyhow::Result<Beside> {
        let mut process = Background::start(session, "the computing program", command, "beside")?;
        let out = session.scratch.path().join("beside.stdout");
        let is_ready = || std::fs::metadata(&out).is_ok_and(|m| m.len() > 0);
        process.await_ready(session, is_ready)?;
        Ok(Beside(process))
    }

    /// Fail if the program has exited.
    pub fn check(&mut self) -> anyhow::Result<()> {
        self.0.check()
    }

    /// Stop the program. Returns its output, with the rate in `window`, and all its CPU seconds.
    /// `window`: start and end by CLOCK_MONOTONIC, in seconds.
    pub fn stop(self, session: &Session, window: (f64, f64)) -> anyhow::Result<(Value, f64)> {
        let exited = self.0.stop(session)?;
        let text = exited.ended.output().map_err(|bad| bad.of("the computing program"))?;
        Ok((read(&text, window).map_err(failed)?, exited.used.cpu_seconds()))
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
