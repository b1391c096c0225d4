//! The results of a benchmark. Other programs read its JSON form.

use serde::Serialize;
use serde_json::Value;

use super::advice::Advice;
use super::harness::{Measured, State};
use super::machine::Machine;
use super::watch::{Watched, Watching};

#[derive(Serialize)]
pub struct Report {
    pub version: &'static str,
    pub benchmark: &'static str,
    /// Time of the start, in seconds since 1970.
    pub time: u64,
    pub machine: Machine,
    pub options: Options,
    /// Other parameters: versions, and the work per round.
    pub parameters: Value,
    pub groups: Vec<Measured>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<Watched>,
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// Reasons to doubt the numbers.
    pub noise: Vec<String>,
    /// The signal that interrupted the benchmark.
    pub interrupted: Option<i32>,
}

#[derive(Serialize)]
pub struct Options {
    pub runs: usize,
    pub timeout: f64,
    pub hog: bool,
    pub scale: f64,
}

impl Report {
    pub fn title(&self) -> String {
        let hog = if self.options.hog { ", beside a CPU hog on each" } else { "" };
        self.machine.title(self.benchmark, self.machine.cpus) + hog
    }

    /// Return 128 + the signal if interrupted, 1 if something failed or was too slow under lissom,
    /// else 0. A native run that is too slow is a result.
    pub fn exit_code(&self) -> i32 {
        if let Some(signal) = self.interrupted {
            return 128 + signal;
        }
        let cells = || self.groups.iter().flat_map(|g| &g.cells).filter(|c| !c.is_try);
        let failed = cells().any(|c| c.state == State::Failed);
        let too_slow = cells().any(|c| c.state == State::Timeout && c.managed);
        let watched = self.watched.iter().any(|w| matches!(w.state, Watching::Failed));
        i32::from(failed || too_slow || watched)
    }
}
