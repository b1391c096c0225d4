//! Programs that are not timed: count how often the runtime scanned their threads, and how often it
//! found them busy-waiting.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use itertools::Itertools as _;
use serde::Serialize;
use serde_json::Value;

use super::Session;
use super::child::{self, Ended};
use super::command::shown;
use super::harness::Spread;
use super::markdown::{head, line};
use super::table::number;
use os::program;
use ui::text::wrap;

/// The ratio to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Threads busy-wait at all times: the scans that recognise the wait, of all scans.
    Sensitivity,
    /// Threads busy-wait for a limited time: the waits that are recognised, of all waits.
    Waits,
    /// Threads never busy-wait: the scans that are mistaken, of all scans.
    Specificity,
}

pub struct Watch {
    pub what: What,
    pub name: String,
    pub switch: &'static str,
    /// Words in front of `lissom run`: they set the CPU or the scan period.
    pub outside: Vec<OsString>,
    /// Options of `lissom run`.
    pub options: Vec<&'static str>,
    pub command: Vec<OsString>,
    /// Count only processes whose name begins with this. Shells and compiler drivers merely sleep.
    pub process: &'static str,
    /// Scans, or waits, to reach by running the program repeatedly.
    pub samples: u64,
    /// Why the program cannot be run, if so.
    pub missing: Option<String>,
    /// Pairs of runs, with and without detection, that measure its overhead. The program must
    /// report its `seconds` and `rounds`.
    pub pairs: usize,
}

const PAIR: [&str; 2] = ["--spin=auto", "--spin=off"];

/// Maximum number of runs. Stop early if a program is scanned so rarely that it would need more.
const MOST_RUNS: u64 = 300;
/// Runs needed to estimate the scans per run. A program without a scan by then fails.
const UNSEEN_RUNS: u64 = 3;

#[derive(Serialize)]
pub struct Watched {
    pub what: What,
    pub name: String,
    pub switch: &'static str,
    pub command: Vec<String>,
    pub state: Watching,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub runs: u64,
    /// Scans of threads. For `What::Waits`, waits.
    pub samples: u64,
    /// Scans that found a wait. For `What::Waits`, waits that were found.
    pub waits: u64,
    /// Time per round with detection, in percent above that without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Spread>,
    /// JSON output of the program, by run. For sensitivity, it has the CPU time of the waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Watching {
    Ok,
    Missing,
    Failed,
}

impl Watch {
    pub fn describe(&self) -> String {
        format!("{}, {}", self.name, self.switch)
    }

    fn command(&self, session: &Session) -> Vec<OsString> {
        let mut command = self.outside.clone();
        command.extend(session.under_lissom(self.switch, &self.options, true));
        command.extend(self.command.iter().cloned());
        command
    }

    /// Run the program with `option` of `lissom run`. Returns the seconds per round. The inner
    /// error says what failed.
    fn round(
        &self,
        option: &str,
        session: &Session,
        limit: Duration,
    ) -> anyhow::Result<Result<f64, String>> {
        let mut command = session.under_lissom(self.switch, &[option], false);
        command.extend(self.command.iter().cloned());
        let ended = child::run(&command, &session.signals, &session.scratch, limit)?;
        Ok(output_of(ended, limit).and_then(|output| {
            seconds_a_round(&output).ok_or_else(|| format!("its output has no time: {output}"))
        }))
    }

    /// Measure the overhead of detection. Runs with and without it alternate, so that drift of the
    /// machine's speed affects both. The inner error says what failed.
    fn overhead(
        &self,
        session: &Session,
        limit: Duration,
    ) -> anyhow::Result<Result<Option<Spread>, String>> {
        let mut percent = Vec::new();
        for _ in 0..self.pairs {
            let mut times = [0.0; 2];
            for (time, option) in times.iter_mut().zip(PAIR) {
                match self.round(option, session, limit)? {
                    Ok(seconds) => *time = seconds,
                    Err(why) => return Ok(Err(why)),
                }
            }
            percent.push((times[0] / times[1] - 1.0) * 100.0);
        }
        Ok(Ok(Spread::of(&percent)))
    }
}

fn output_of(ended: Ended, limit: Duration) -> Result<String, String> {
    match ended {
        Ended::Well(output) => Ok(output),
        Ended::Badly(why) => Err(why),
        Ended::TooSlow => Err(format!("not finished in {} s (--timeout)", limit.as_secs_f64())),
    }
}

/// Read the seconds per round from the last line of a suite program's output.
fn seconds_a_round(output: &str) -> Option<f64> {
    let said: Value = serde_json::from_str(output.lines().last()?).ok()?;
    Some(said["seconds"].as_f64()? / said["rounds"].as_f64()?).filter(|s| *s > 0.0)
}

/// Return why the program cannot be run, or `None` if it can.
pub fn is_missing(program: &OsStr) -> Option<String> {
    program::find(program, std::env::var_os("PATH").as_deref()).err().map(|refused| refused.message)
}

pub fn watch(watch: &Watch, session: &Session, limit: Duration) -> anyhow::Result<Watched> {
    let command = watch.command(session);
    let mut watched = Watched::new(watch.what, &watch.name, watch.switch, &command);
    if let Some(why) = &watch.missing {
        (watched.state, watched.error) = (Watching::Missing, Some(why.clone()));
        return Ok(watched);
    }
    while watched.samples < watch.samples && !watched.hopeless(watch.samples) {
        let ended = child::run(&command, &session.signals, &session.scratch, limit)?;
        let error = match output_of(ended, limit) {
            Ok(output) => {
                let statistics = session.statistics().unwrap_or_default();
                watched.add(&output, &statistics, watch.process)
            }
            Err(why) => Some(why),
        };
        if error.is_some() {
            (watched.state, watched.error) = (Watching::Failed, error);
            return Ok(watched);
        }
    }
    match watch.overhead(session, limit)? {
        Ok(overhead) => watched.overhead = overhead,
        Err(why) => (watched.state, watched.error) = (Watching::Failed, Some(why)),
    }
    Ok(watched)
}

impl Watched {
    fn new(what: What, name: &str, switch: &'static str, command: &[OsString]) -> Watched {
        Watched {
            what,
            name: name.into(),
            switch,
            command: shown(command),
            state: Watching::Ok,
            error: None,
            runs: 0,
            samples: 0,
            waits: 0,
            overhead: None,
            outputs: Vec::new(),
        }
    }

    /// Add the counts of a run. Returns an error if they are meaningless.
    fn add(&mut self, output: &str, statistics: &Value, process: &str) -> Option<String> {
        let output: Option<Value> = serde_json::from_str(output.trim()).ok();
        if let Some(why) = super::statistics::native_because(statistics) {
            return Some(format!("it ran natively: {why}"));
        }
        let (samples, waits) = match (self.what, &output) {
            (What::Waits, Some(said)) => counted_waits(said),
            _ => counted(statistics, process),
        };
        self.outputs.extend(output);
        self.runs += 1;
        self.samples += samples;
        self.waits += waits;
        (self.samples == 0 && self.runs == UNSEEN_RUNS)
            .then(|| "its threads were not scanned".into())
    }

    fn hopeless(&self, samples: u64) -> bool {
        self.runs >= MOST_RUNS
            || (self.runs >= UNSEEN_RUNS && self.samples * MOST_RUNS < samples * self.runs)
    }

    /// Return `waits` / `samples`, 0 to 1.
    fn share(&self) -> f64 {
        self.waits as f64 / self.samples.max(1) as f64
    }
}

/// Return the waits and the waits found that workloads/spin_sensitivity.h reports.
fn counted_waits(said: &Value) -> (u64, u64) {
    (said["waits"].as_u64().unwrap_or(0), said["waits_found"].as_u64().unwrap_or(0))
}

/// Count scans, and scans that found a wait, in processes whose name begins with `process`.
fn counted(statistics: &Value, process: &str) -> (u64, u64) {
    let processes = statistics["processes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named =
        processes.iter().filter(|p| p["name"].as_str().is_some_and(|n| n.starts_with(process)));
    named.fold((0, 0), |(samples, waits), p| {
        let counter = |name| p["counters"][name].as_u64().unwrap_or(0);
        (samples + counter("spin_scans"), waits + counter("spin_waits"))
    })
}

/// A program, and its cells by way of switching.
type Row<'a> = (&'a str, Vec<Option<&'a Watched>>);

fn rows(watched: &[Watched], what: What) -> (Vec<&'static str>, Vec<Row<'_>>) {
    let of_kind = || watched.iter().filter(move |w| w.what == what);
    let switches: Vec<_> = of_kind().map(|w| w.switch).unique().collect();
    let cell = |name, switch| of_kind().find(|w| w.name == name && w.switch == switch);
    let row = |name| (name, switches.iter().map(|&s| cell(name, s)).collect());
    let rows = of_kind().map(|w| w.name.as_str()).unique().map(row).collect();
    (switches, rows)
}

fn title(what: What) -> &'static str {
    match what {
        What::Sensitivity => {
            "sensitivity: share of scans of waiting threads that detected the wait"
        }
        What::Waits => "sensitivity: share of waits of 10 ms that were detected",
        What::Specificity => "specificity: scans that took a working thread for a waiting one",
    }
}

fn cell(watched: Option<&Watched>) -> String {
    let Some(w) = watched else { return String::new() };
    match (w.state, w.what) {
        (Watching::Missing, _) => "not installed".into(),
        (Watching::Failed, _) => "failed".into(),
        (Watching::Ok, What::Sensitivity | What::Waits) => {
            // Round down: only all of them are 100%.
            format!("{:.2}% of {}", (w.share() * 1e4).floor() / 1e2, number(w.samples as f64))
        }
        (Watching::Ok, What::Specificity) => format!("{} of {}", w.waits, number(w.samples as f64)),
    }
}

fn overhead(watched: &Watched) -> Option<String> {
    let percent = watched.overhead?;
    Some(format!(
        "{}, {}: overhead {}%, {}..{}%",
        watched.name,
        watched.switch,
        number(percent.median),
        number(percent.least),
        number(percent.most)
    ))
}

const KINDS: [What; 3] = [What::Sensitivity, What::Waits, What::Specificity];

/// Render the lines of the text table, at most 80 columns wide with three ways of switching.
pub fn table(watched: &[Watched]) -> Vec<String> {
    let mut lines = Vec::new();
    for what in KINDS {
        let (switches, rows) = rows(watched, what);
        if rows.is_empty() {
            continue;
        }
        lines.extend([String::new(), title(what).into()]);
        let heading: String = switches.iter().map(|s| format!("{s:>18}")).collect();
        lines.push(format!("{:24}{heading}", ""));
        for (name, cells) in rows {
            let cells: String = cells.into_iter().map(|c| format!("{:>18}", cell(c))).collect();
            lines.push(format!("{name:24}{cells}"));
        }
        lines.extend(watched.iter().filter(|w| w.what == what).filter_map(overhead));
        for w in watched.iter().filter(|w| w.what == what && w.state == Watching::Failed) {
            let error = w.error.as_deref().unwrap_or_default();
            lines.extend(wrap(&format!("{}, {} failed: {error}", w.name, w.switch), "", 2));
        }
    }
    lines
}

pub fn markdown(watched: &[Watched]) -> String {
    let mut text = String::new();
    for what in KINDS {
        let (switches, rows) = rows(watched, what);
        if rows.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{}\n", title(what)));
        text.push_str(&head(&[&[""], &switches[..]].concat()));
        for (name, cells) in rows {
            let cells = cells.into_iter().map(cell);
            text.push_str(&line(&[name.to_string()].into_iter().chain(cells).collect::<Vec<_>>()));
        }
        let of_kind = watched.iter().filter(|w| w.what == what);
        text.extend(of_kind.filter_map(overhead).map(|line| format!("\n{line}\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn watched(what: What, switch: &'static str, samples: u64, waits: u64) -> Watched {
        let new = Watched::new(what, "gzip", switch, &[]);
        Watched { runs: 1, samples, waits, ..new }
    }

    #[test]
    fn only_the_named_process_counts() {
        let process = |name: &str, samples: u64| json!({ "name": name, "counters": { "spin_scans": samples, "spin_waits": 1 } });
        let statistics = json!({ "processes": [process("sh", 7), process("python3.11", 10), process("python3", 20)] });
        assert_eq!(counted(&statistics, "python3"), (30, 2));
        assert_eq!(counted(&Value::Null, "python3"), (0, 0));
    }

    #[test]
    fn what_is_not_there_is_found_out() {
        assert_eq!(is_missing(OsStr::new("sh")), None);
        assert!(is_missing(OsStr::new("no-such-program")).is_some());
    }

    #[test]
    fn the_overhead_is_of_a_round() {
        let said = "a warning\n{\"seconds\": 3.0, \"rounds\": 2}\n";
        assert_eq!(seconds_a_round(said), Some(1.5));
        assert_eq!(seconds_a_round("{\"seconds\": 3.0}"), None);
        let mut one = watched(What::Specificity, "auto", 500_000, 1);
        one.overhead = Spread::of(&[-0.5, 0.25, 1.0]);
        let lines = table(&[one]);
        assert!(
            lines.contains(&"gzip, auto: overhead 0.25%, -0.50..1.00%".to_string()),
            "{lines:?}"
        );
    }

    #[test]
    fn tables() {
        let mut missing = watched(What::Specificity, "user", 0, 0);
        missing.state = Watching::Missing;
        let all = [
            watched(What::Sensitivity, "kernel", 30_000, 29_999),
            watched(What::Specificity, "kernel", 12_345, 2),
            missing,
        ];
        let lines = table(&all);
        assert!(lines.iter().all(|l| l.chars().count() <= 80), "{lines:?}");
        // 29,999 of 30,000 are not 100%.
        assert!(lines.iter().any(|l| l.ends_with("99.99% of 30.0k")), "{lines:?}");
        assert!(lines.iter().any(|l| l.ends_with("2 of 12.3k     not installed")), "{lines:?}");
        assert!(markdown(&all).contains("| gzip | 2 of 12.3k | not installed |"));
    }
}
