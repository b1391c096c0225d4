//! Names and types in the JSON of benchmarks, for those that write it and those that draw it.

use serde::{Deserialize, Serialize};

/// The names of the scenarios that the others are compared with.
pub const BOUND: &str = "bound";
pub const NATIVE: &str = "native";

/// As in the JSON, and for people.
pub const KINDS: [(&str, &str); 4] = [
    ("none", "hardly synchronize"),
    ("blocking", "block"),
    ("mixed", "spin, then block"),
    ("spinning", "spin"),
];

/// Counters of the warm-up: to count costs the program time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Counted {
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// How often a thread went to another CPU, if the kernel lets that be counted.
    pub migrations: Option<u64>,
    /// How often threads have waited for each other, if that was under lissom.
    pub waits: Option<u64>,
}

impl Counted {
    /// CPU time for each wait.
    pub fn interval_us(&self) -> Option<f64> {
        self.waits.filter(|n| *n > 0).map(|n| self.cpu_seconds * 1e6 / n as f64)
    }
}
