//! The file of measurements: `run` adds to it, and `report` renders it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::version;

/// Version of the file's format. Files of other versions are refused.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
pub struct Study {
    pub format: u32,
    /// Results by name of the measurement.
    pub measured: BTreeMap<String, Measured>,
}

#[derive(Serialize, Deserialize)]
pub struct Measured {
    /// Command line of lissom.
    pub command: String,
    pub quick: bool,
    /// Version of lissom.
    pub version: String,
    /// Commit from which lissom was built, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether files of the build differed from that commit.
    #[serde(default)]
    pub dirty: bool,
    /// Time of the start, in seconds since 1970.
    pub time: u64,
    /// Duration of the measurement.
    pub seconds: f64,
    /// Description of the machine, as in reports of benchmarks.
    pub machine: Value,
    pub state: State,
    /// Reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// JSON report of the benchmark, pruned.
    pub report: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    /// Something failed or was too slow; the other numbers exist.
    Partly,
    Failed,
    Interrupted,
}

impl Measured {
    /// Describe the measured commit, and how much `code` has changed since. Returns `None` if only
    /// comments have changed, or if a clean commit is not in this checkout.
    pub fn age(&self, code: &[&str]) -> Option<String> {
        let Some(commit) = &self.commit else {
            return Some("Which commit was measured is not known.".into());
        };
        let short: String = commit.chars().take(12).collect();
        let dirty = if self.dirty { " and uncommitted changes" } else { "" };
        let changes = version::changes_since(commit, code);
        match changes {
            Some(0) if !self.dirty => None,
            Some(n) => Some(format!(
                "Older than the code: measured at {short}{dirty}; {} changed the code of {} since.",
                ui::text::plural(n as u64, "commit"),
                code.join(" or ")
            )),
            None if self.dirty => Some(format!("Measured at {short}{dirty}.")),
            None => None,
        }
    }

    /// Return the number of rounds, if the report has it.
    pub fn rounds(&self) -> Option<u64> {
        ["runs", "rounds"].iter().find_map(|n| self.report["parameters"][n].as_u64())
    }
}

impl Study {
    pub fn empty() -> Study {
        Study { format: VERSION, measured: BTreeMap::new() }
    }

    /// Read the file, or return an empty study if it does not exist.
    pub fn read_or_empty(path: &Path) -> anyhow::Result<Study> {
        if path.exists() { Study::read(path) } else { Ok(Study::empty()) }
    }

    pub fn read(path: &Path) -> anyhow::Result<Study> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let study: Study = serde_json::from_str(&text)
            .with_context(|| format!("{} was not written by `lissom study run`", path.display()))?;
        anyhow::ensure!(
            study.format == VERSION,
            "{} is of another version of lissom: move it away and measure again",
            path.display()
        );
        Ok(study)
    }

    /// Write the file atomically: if this fails, the previous file remains.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let name = || path.display().to_string();
        let part = path.with_extension("part");
        let mut text = serde_json::to_string(self).context("cannot write the study as JSON")?;
        text.push('\n');
        fs::write(&part, text).with_context(name)?;
        fs::rename(&part, path).with_context(name)
    }
}

/// Fields of a program's own output that figures show.
const SAID: [&str; 4] = ["mean_us", "p95_us", "p99_us", "throughput"];

/// Remove fields that no figure shows, because they make up most of the size, and round numbers to
/// seven digits.
pub fn prune(report: &mut Value) {
    match report {
        Value::Object(fields) => {
            let said = fields.get_mut("output").and_then(Value::as_object_mut);
            let shown = said.is_some_and(|said| {
                said.retain(|name, _| SAID.contains(&name.as_str()));
                !said.is_empty()
            });
            fields.retain(|name, _| {
                let unseen =
                    matches!(name.as_str(), "statistics" | "command" | "commands" | "outputs");
                !unseen && (name != "output" || shown)
            });
            fields.values_mut().for_each(prune);
        }
        Value::Array(list) => list.iter_mut().for_each(prune),
        Value::Number(number) => {
            // Measurements are less precise than seven digits.
            if let Some(value) = number.as_f64().filter(|_| number.is_f64()) {
                let short: f64 = format!("{value:.6e}").parse().unwrap_or(value);
                *report = Value::from(short);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_read_as_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.json");
        let mut study = Study::read_or_empty(&path).expect("an empty one");
        study.measured.insert(
            "sync".into(),
            Measured {
                command: "lissom bench sync".into(),
                quick: true,
                version: "1".into(),
                commit: Some("abc".into()),
                dirty: false,
                time: 1,
                seconds: 2.5,
                machine: json!({ "cpus": 2 }),
                state: State::Ok,
                error: None,
                report: json!({}),
            },
        );
        study.write(&path).expect("written");
        let read = Study::read(&path).expect("read");
        assert_eq!(read.measured["sync"].seconds, 2.5);
        fs::write(&path, "{\"format\": 99, \"measured\": {}}").expect("written");
        assert!(Study::read(&path).is_err());
        fs::write(&path, "no").expect("written");
        assert!(Study::read(&path).is_err());
    }

    #[test]
    fn pruning_keeps_numbers() {
        let mut report =
            json!({ "a": [1.23456789, { "statistics": 1, "b": 7, "command": [], "output": "x" }] });
        prune(&mut report);
        assert_eq!(report, json!({ "a": [1.234568, { "b": 7 }] }));
        let mut said = json!({ "output": { "p99_us": 2, "requests": 1 } });
        prune(&mut said);
        assert_eq!(said, json!({ "output": { "p99_us": 2 } }));
    }
}
