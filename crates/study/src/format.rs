//! Names and types in the JSON of benchmarks, shared by the programs that write and draw it.

use serde::{Deserialize, Serialize};

/// Names of the scenarios with which others are compared.
pub const BOUND: &str = "bound";
pub const NATIVE: &str = "native";

/// Kinds of programs: name in the JSON, and text for people.
pub const KINDS: [(&str, &str); 4] = [
    ("none", "hardly synchronize"),
    ("blocking", "block"),
    ("mixed", "spin, then block"),
    ("spinning", "spin"),
];

/// Counters of the warm-up. Other rounds are not counted, because counting costs time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Counted {
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Moves of threads to another CPU, if the kernel lets us count them.
    pub migrations: Option<u64>,
    /// Waits of threads for each other, if the program ran under lissom.
    pub waits: Option<u64>,
}

impl Counted {
    /// Return the CPU time for each wait, in us.
    pub fn interval_us(&self) -> Option<f64> {
        self.waits.filter(|n| *n > 0).map(|n| self.cpu_seconds * 1e6 / n as f64)
    }
}
