//! Programs that are not timed: what counts is how often the runtime looked at their threads, and
//! how often it found them waiting in a loop.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::Session;
use super::child::{self, Ended};
use super::harness::Spread;
use super::markdown::{head, line};
use super::table::number;
use crate::program;
use ui::text::wrap;

/// Whether the threads wait whenever they are looked at, or never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// They do: how many samples are recognised?
    Sensitivity,
    /// The same by wait: in how many is the thread recognised at all?
    Waits,
    /// They do not: how many are mistaken?
    Specificity,
}

pub struct Watch {
    pub what: What,
    pub name: String,
    pub switch: &'static str,
    /// In front of lissom: what chooses the CPU.
    pub outside: Vec<OsString>,
    /// Of `lissom run`.
    pub options: Vec<&'static str>,
    pub command: Vec<OsString>,
    /// Only processes of this name count: not a shell or a compiler's driver, which sleep.
    pub process: &'static str,
    /// Samples, or waits, to be reached, by running the program again and again.
    pub samples: u64,
    /// It cannot be run; why not.
    pub missing: Option<String>,
    /// Runs with detection as it is, each with one without it behind: what detection costs. The
    /// program says its `seconds` and `rounds`.
    pub pairs: usize,
}

const PAIR: [&str; 2] = ["--spin=auto", "--spin=off"];

/// A program that is looked at so rarely that it would take more is left at what it has given by
/// then.
const MOST_RUNS: u64 = 300;
/// After so many runs that can be told; without a sample there will be none.
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
    /// How often a thread was looked at, and how often it was found waiting. Of Waits: all, and
    /// those found.
    pub samples: u64,
    pub waits: u64,
    /// Time of a round with detection against without, in percent above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Spread>,
    /// What the program said, by run, if it is JSON: of sensitivity, how much of it was on a CPU.
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

    /// The time of a round with `option`, or what went wrong.
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
            seconds_a_round(&output).ok_or_else(|| format!("it has not said its time: {output}"))
        }))
    }

    /// In turns, so that both share what the machine does meanwhile.
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

/// As the programs of suites say it.
fn seconds_a_round(output: &str) -> Option<f64> {
    let said: Value = serde_json::from_str(output.lines().last()?).ok()?;
    Some(said["seconds"].as_f64()? / said["rounds"].as_f64()?).filter(|s| *s > 0.0)
}

/// Why the program cannot be run, if so.
pub fn is_missing(program: &OsStr) -> Option<String> {
    program::find(program, std::env::var_os("PATH").as_deref()).err().map(|refused| refused.message)
}

pub fn watch(watch: &Watch, session: &Session, limit: Duration) -> anyhow::Result<Watched> {
    let command = watch.command(session);
    let mut watched = Watched {
        what: watch.what,
        name: watch.name.clone(),
        switch: watch.switch,
        command: command.iter().map(|s| s.to_string_lossy().into_owned()).collect(),
        state: Watching::Ok,
        error: None,
        runs: 0,
        samples: 0,
        waits: 0,
        overhead: None,
        outputs: Vec::new(),
    };
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
    /// Adds what a run has counted; the error, if that says nothing.
    fn add(&mut self, output: &str, statistics: &Value, process: &str) -> Option<String> {
        let output: Option<Value> = serde_json::from_str(output.trim()).ok();
        if let Some(why) = super::native_because(statistics) {
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
            .then(|| "its threads were not looked at".into())
    }

    fn hopeless(&self, samples: u64) -> bool {
        self.runs >= MOST_RUNS
            || (self.runs >= UNSEEN_RUNS && self.samples * MOST_RUNS < samples * self.runs)
    }

    /// Found of looked at, as 0 to 1.
    fn share(&self) -> f64 {
        self.waits as f64 / self.samples.max(1) as f64
    }
}

/// What workloads/spin_sensitivity.h says.
fn counted_waits(said: &Value) -> (u64, u64) {
    (said["waits"].as_u64().unwrap_or(0), said["waits_found"].as_u64().unwrap_or(0))
}

/// How often the processes of that name were looked at, and found waiting.
fn counted(statistics: &Value, process: &str) -> (u64, u64) {
    let processes = statistics["processes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named =
        processes.iter().filter(|p| p["name"].as_str().is_some_and(|n| n.starts_with(process)));
    named.fold((0, 0), |(samples, waits), p| {
        let counter = |name| p["counters"][name].as_u64().unwrap_or(0);
        (samples + counter("spin_scans"), waits + counter("spin_waits"))
    })
}

/// Each kind, its programs, and their cells by way of switching.
type Row<'a> = (&'a str, Vec<Option<&'a Watched>>);

fn rows(watched: &[Watched], what: What) -> (Vec<&'static str>, Vec<Row<'_>>) {
    let of_kind = || watched.iter().filter(move |w| w.what == what);
    let (mut switches, mut names) = (Vec::new(), Vec::new());
    for one in of_kind() {
        if !switches.contains(&one.switch) {
            switches.push(one.switch);
        }
        if !names.contains(&one.name.as_str()) {
            names.push(one.name.as_str());
        }
    }
    let cell = |name, switch| of_kind().find(|w| w.name == name && w.switch == switch);
    let row = |name| (name, switches.iter().map(|&s| cell(name, s)).collect());
    let rows = names.into_iter().map(row).collect();
    (switches, rows)
}

fn title(what: What) -> &'static str {
    match what {
        What::Sensitivity => {
            "sensitivity: samples of waiting threads, and how many were recognised"
        }
        What::Waits => "sensitivity: waits of 10 ms, and how many were recognised",
        What::Specificity => {
            "specificity: samples of working threads, and how many were taken for a wait"
        }
    }
}

fn cell(watched: Option<&Watched>) -> String {
    let Some(w) = watched else { return String::new() };
    match (w.state, w.what) {
        (Watching::Missing, _) => "not installed".into(),
        (Watching::Failed, _) => "failed".into(),
        (Watching::Ok, What::Sensitivity | What::Waits) => {
            // Rounded down: 100% is all of them.
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

/// For people, at most 80 columns wide: up to three ways of switching.
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
        let state = Watching::Ok;
        let (name, command, error, outputs) = ("gzip".into(), vec![], None, vec![]);
        let overhead = None;
        Watched {
            what,
            name,
            switch,
            command,
            state,
            error,
            runs: 1,
            samples,
            waits,
            overhead,
            outputs,
        }
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
        // Nearly all is not all.
        assert!(lines.iter().any(|l| l.ends_with("99.99% of 30.0k")), "{lines:?}");
        assert!(lines.iter().any(|l| l.ends_with("2 of 12.3k     not installed")), "{lines:?}");
        assert!(markdown(&all).contains("| gzip | 2 of 12.3k | not installed |"));
    }
}
