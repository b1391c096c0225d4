//! Permitted skips, duration of each case, and number of cases run at each level.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Cases that may be skipped: `FILE::NAME<TAB>REQUIREMENT<TAB>REASON` a line; `#` begins a comment.
pub struct Skips(Vec<(String, String)>);

impl Skips {
    pub fn read(path: &Path) -> Result<Skips, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let parse = |line: &str| match line.split('\t').map(str::trim).collect::<Vec<_>>()[..] {
            [case, requirement, reason] if !reason.is_empty() => {
                Ok((case.to_string(), requirement.to_string()))
            }
            _ => Err(format!("{}: not 'CASE<TAB>REQUIREMENT<TAB>REASON': {line}", path.display())),
        };
        lines.map(parse).collect::<Result<_, _>>().map(Skips)
    }

    pub fn allow(&self, case: &str, requirement: &str) -> bool {
        self.0.iter().any(|skip| skip.0 == case && skip.1 == requirement)
    }

    /// Return the entries whose case does not exist.
    pub fn unknown(&self, exists: impl Fn(&str) -> bool) -> Vec<&str> {
        self.0.iter().map(|skip| skip.0.as_str()).filter(|case| !exists(case)).collect()
    }
}

/// One case that ran.
struct Entry {
    name: String,
    level: &'static str,
    took: Duration,
    passed: bool,
}

/// Cases that have run so far, and skipped cases.
#[derive(Default)]
pub struct Outcomes {
    ran: Mutex<Vec<Entry>>,
    skipped: Mutex<Vec<(String, String)>>,
}

impl Outcomes {
    pub fn ran(&self, name: &str, level: &'static str, took: Duration, passed: bool) {
        let entry = Entry { name: name.to_string(), level, took, passed };
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    pub fn skipped(&self, name: &str, missing: &str) {
        let entry = (name.to_string(), missing.to_string());
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    fn slowest_first(&self) -> MutexGuard<'_, Vec<Entry>> {
        let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        ran.sort_by_key(|entry| std::cmp::Reverse(entry.took));
        ran
    }

    /// Write `SECONDS<TAB>ok|FAILED<TAB>NAME` lines to `path`, slowest first.
    pub fn record(&self, path: &Path) -> std::io::Result<()> {
        let ran = self.slowest_first();
        let mut text = String::new();
        for entry in ran.iter() {
            let result = if entry.passed { "ok" } else { "FAILED" };
            let _ = writeln!(text, "{:.3}\t{result}\t{}", entry.took.as_secs_f64(), entry.name);
        }
        fs::write(path, text)
    }

    /// Return the slowest 20 cases, the skipped ones, and the number run at each level.
    pub fn summary(&self) -> String {
        const SLOWEST: usize = 20;
        let ran = self.slowest_first();
        let mut text = String::new();
        if ran.len() > SLOWEST {
            text += "slowest:\n";
        }
        for entry in ran.iter().take(SLOWEST).filter(|_| ran.len() > SLOWEST) {
            let _ = writeln!(text, "{:8.1} s  {}", entry.took.as_secs_f64(), entry.name);
        }
        for (name, missing) in self.skipped.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = writeln!(text, "skipped: {name}: {missing}");
        }
        let mut levels: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in ran.iter() {
            *levels.entry(entry.level).or_default() += 1;
        }
        let levels: Vec<String> = levels.iter().map(|(level, n)| format!("{n} {level}")).collect();
        let _ = writeln!(
            text,
            "ran: {}",
            if levels.is_empty() { "nothing".into() } else { levels.join(", ") }
        );
        text
    }
}
