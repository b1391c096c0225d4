//! The progress of a benchmark.

use std::io::IsTerminal as _;
use std::time::Instant;

use super::harness::{Group, Scenario, Turn};

/// A status line on standard error, if that is a terminal. Dropping it clears the line.
pub struct Progress {
    shown: bool,
    begun: Instant,
    turn: usize,
    turns: usize,
}

impl Progress {
    pub fn new(turns: usize) -> Progress {
        Progress { shown: std::io::stderr().is_terminal(), begun: Instant::now(), turn: 0, turns }
    }

    pub fn show(&mut self, group: &Group, scenario: &Scenario, turn: Turn, rounds: usize) {
        let threads =
            if group.threads == 0 { String::new() } else { format!(", {} threads", group.threads) };
        let place = format!("{}{threads}, {}", group.workload, scenario.name);
        match turn {
            Turn::Pilot => self.print(&format!("{place}: pilot")),
            Turn::WarmUp => self.show_text(&format!("{place}: warm-up")),
            Turn::Round(n) => self.show_text(&format!("{place}: round {n} of {rounds}")),
        }
    }

    pub fn show_text(&mut self, text: &str) {
        self.turn += 1;
        self.print(text);
    }

    /// Reduce the total by `turns` that will not run.
    pub fn skip(&mut self, turns: usize) {
        self.turns -= turns;
    }

    pub fn print(&self, text: &str) {
        if !self.shown {
            return;
        }
        let line =
            format!("[{}/{}, {} s] {text}", self.turn, self.turns, self.begun.elapsed().as_secs());
        eprint!("\r\x1b[K{}", line.chars().take(79).collect::<String>());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
