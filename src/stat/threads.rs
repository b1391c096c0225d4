//! What the kernel says of a process's threads.

use std::fs;
use std::time::Duration;

/// Of all threads together, since they began. Of those that have ended the kernel keeps CPU time only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub threads: u32,
    /// Running, or ready to.
    pub runnable: u32,
    /// Ready, without a CPU.
    pub run_delay: Duration,
    pub migrations: Option<u64>,
}

/// Of process `pid`, thread by thread: some 20 us for each. None: it has ended.
pub fn totals(pid: u32) -> Option<Totals> {
    let mut totals = Totals { migrations: Some(0), ..Totals::default() };
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let read = |name: &str| fs::read_to_string(task.path().join(name));
        // One that ends meanwhile is none.
        let Ok(stat) = read("stat") else { continue };
        totals.threads += 1;
        totals.runnable += u32::from(state(&stat) == Some('R'));
        if let Ok(times) = read("schedstat") {
            totals.run_delay += Duration::from_nanos(run_delay(&times).unwrap_or(0));
        }
        // A kernel without CONFIG_SCHED_DEBUG has none, and those of others are not told.
        let migrations = read("sched").ok().and_then(|text| migrations(&text));
        totals.migrations = totals.migrations.zip(migrations).map(|(sum, n)| sum + n);
    }
    (totals.threads > 0).then_some(totals)
}

/// `pid (comm) S ...`; comm may hold anything.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

/// `running-ns waiting-ns slices`
fn run_delay(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

fn migrations(sched: &str) -> Option<u64> {
    let line = sched.lines().find(|l| l.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes() {
        assert_eq!(state("12 (a) b) R 1 2"), Some('R'));
        assert_eq!(state("12"), None);
        assert_eq!(run_delay("123 456 7\n"), Some(456));
        assert_eq!(migrations("x (1, #threads: 1)\n---\nse.nr_migrations      :      17\n"), Some(17));
        assert_eq!(migrations(""), None);
    }

    #[test]
    fn of_this_process() {
        let totals = totals(std::process::id()).expect("it is here");
        assert!(totals.threads >= 1 && totals.runnable >= 1, "{totals:?}");
        assert_eq!(super::totals(u32::MAX >> 1), None);
    }
}
