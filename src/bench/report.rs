//! All that a benchmark found out; its JSON is what other programs read.

use serde::Serialize;
use serde_json::Value;

use super::harness::{Measured, State};
use super::machine::Machine;
use super::watch::{Watched, Watching};

#[derive(Serialize)]
pub struct Report {
    pub version: &'static str,
    pub benchmark: &'static str,
    /// When it began, in seconds since 1970.
    pub time: u64,
    pub machine: Machine,
    pub options: Options,
    /// What else the numbers depend on: versions, and how much work a round was.
    pub parameters: Value,
    pub groups: Vec<Measured>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<Watched>,
    pub notes: Vec<String>,
    /// Why the numbers are to be doubted.
    pub noise: Vec<String>,
    /// The signal that ended it early.
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

    /// 1 if something did not run as it should. That a program is too slow natively is a result.
    pub fn exit_code(&self) -> i32 {
        if let Some(signal) = self.interrupted {
            return 128 + signal;
        }
        let cells = || self.groups.iter().flat_map(|g| &g.cells);
        let failed = cells().any(|c| c.state == State::Failed);
        let too_slow = cells().any(|c| c.state == State::Timeout && c.managed);
        let watched = self.watched.iter().any(|w| matches!(w.state, Watching::Failed));
        i32::from(failed || too_slow || watched)
    }
}
