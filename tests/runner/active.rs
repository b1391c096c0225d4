//! Check that the runtime did in the case's processes what the level requires.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::case::{Case, Level};
use super::region::{MAX_RECORDS, Process};
use super::run::Variant;

/// `COUNTER NAME OPERATOR NUMBER`: a bound on the sum of a counter over all processes.
#[derive(Clone)]
pub struct Counter {
    name: String,
    operator: Operator,
    bound: u64,
}

/// From this number of blocks on, some must have ended in a switch in user space.
const MANY_BLOCKS: u64 = 500;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<", Operator::Less),
    ("<=", Operator::LessOrEqual),
    (">", Operator::Greater),
    (">=", Operator::GreaterOrEqual),
];

impl Counter {
    pub fn parse(text: &str) -> Result<Counter, String> {
        let [name, operator, bound] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("'{text}' is not: COUNTER NAME OPERATOR NUMBER"));
        };
        if !Process::knows(name) {
            return Err(format!("the runtime has no counter '{name}' (runtime/abi.h)"));
        }
        let found = OPERATORS.iter().find(|o| o.0 == operator);
        let operator = found.ok_or_else(|| format!("'{operator}' is none of == != < <= > >="))?.1;
        let bound = bound.parse().map_err(|_| format!("'{bound}' is not a number"))?;
        Ok(Counter { name: name.to_string(), operator, bound })
    }

    fn holds(&self, value: u64) -> bool {
        match self.operator {
            Operator::Equal => value == self.bound,
            Operator::Unequal => value != self.bound,
            Operator::Less => value < self.bound,
            Operator::LessOrEqual => value <= self.bound,
            Operator::Greater => value > self.bound,
            Operator::GreaterOrEqual => value >= self.bound,
        }
    }

    fn show(&self) -> String {
        let operator = OPERATORS.iter().find(|o| o.1 == self.operator).map_or("", |o| o.0);
        format!("{} {operator} {}", self.name, self.bound)
    }
}

fn sum<'a>(processes: impl IntoIterator<Item = &'a Process>, counter: &str) -> u64 {
    processes.into_iter().filter_map(|p| p.counter(counter)).sum()
}

/// A line that `witness.c` wrote: a process has started a program (one line for each exec), or has
/// ended after it created a thread.
pub struct Witness {
    pub pid: u32,
    pub had_threads: bool,
}

/// Return the problems found, one a line.
pub fn problems(
    case: &Case,
    variant: Variant,
    processes: &[Process],
    witnesses: &[Witness],
) -> Vec<String> {
    let mut problems: Vec<String> = Vec::new();
    let failed = case.counters.iter().filter(|c| !c.holds(sum(processes, &c.name)));
    problems.extend(failed.map(|c| format!("counter {} is {}", c.show(), sum(processes, &c.name))));
    let level = variant.level;
    let Level::Switch(name @ ("kernel" | "user" | "auto")) = level else { return problems };

    // A process that was killed during startup remains in state "starting".
    let native: Vec<&Process> =
        processes.iter().filter(|p| !matches!(p.state, "active" | "starting" | "single")).collect();
    match &case.native {
        Some(reason) if native.iter().any(|p| p.reason.contains(reason)) => return problems,
        Some(reason) if reason.starts_with("not loaded") && processes.is_empty() => {
            return problems;
        }
        Some(reason) => problems.push(format!("no process runs natively because of: {reason}")),
        None if processes.iter().all(|p| p.state == "starting") => {
            problems.push("the runtime was loaded in no process".into());
        }
        None if variant.ratio.is_some_and(|r| r > 1)
            && case.counters.is_empty()
            && !processes.iter().any(|p| p.state == "active") =>
        {
            problems.push("no process made a second thread; if that is meant: RATIOS 1".into());
        }
        None => {}
    }
    for process in native.iter().filter(|_| case.native.is_none()) {
        let Process { pid, name, state, reason, .. } = process;
        problems.push(format!("not active in process {pid} ({name}): {state} {reason}"));
    }
    // A forked child inherits its parent's redirected calls and counts none.
    if processes.iter().any(|p| p.state == "active") && sum(processes, "sites_patched") == 0 {
        problems.push("no system call is redirected in any process".into());
    }
    problems.extend(missing(processes, witnesses));
    // With only slightly more threads than slots, no thread need ever wait for a slot.
    let crowded: Vec<&Process> = processes
        .iter()
        .filter(|p| p.state == "active")
        .filter(|p| p.counter("threads_peak").is_some_and(|t| t >= 4 * p.slots))
        .collect();
    // If few threads block, each may find no ready thread and keep its kernel thread.
    let blocks = sum(crowded.iter().copied(), "blocks");
    let happened: &[&str] = match name {
        "kernel" => &["switches_kernel", "blocks"],
        _ if blocks >= MANY_BLOCKS => &["switches_user"],
        _ => &["switches_user", "blocks"],
    };
    let count: u64 = happened.iter().map(|h| sum(crowded.iter().copied(), h)).sum();
    if !crowded.is_empty() && count == 0 && !case.unswitched.contains(&level) {
        problems.push(format!(
            "four times as many threads as slots, or more, but no {}",
            happened.join(" and no ")
        ));
    }
    problems
}

/// Report programs that should have loaded the runtime but did not, and programs with several
/// threads in which it was not active.
fn missing(processes: &[Process], witnesses: &[Witness]) -> Vec<String> {
    if processes.len() >= MAX_RECORDS {
        return Vec::new(); // later records were lost
    }
    let count = |pid: u32, states: &[&str]| {
        processes.iter().filter(|p| p.pid == pid && states.contains(&p.state)).count()
    };
    let pids: BTreeSet<u32> = witnesses.iter().map(|w| w.pid).collect();
    let mut problems = Vec::new();
    for pid in pids {
        let of = |had_threads: bool| {
            witnesses.iter().filter(|w| w.pid == pid && w.had_threads == had_threads).count()
        };
        if count(pid, &["active", "single"]) < of(false) {
            problems.push(format!("the runtime was not loaded in a program of process {pid}"));
        }
        if count(pid, &["active"]) < of(true) {
            problems.push(format!("the runtime was not active in process {pid}, with threads"));
        }
    }
    problems
}

/// Describe every process with its most informative counters, for a failure report.
pub fn describe(processes: &[Process]) -> String {
    let mut text = String::new();
    for process in processes {
        let Process { pid, name, state, reason, slots, .. } = process;
        let _ = write!(text, "{pid} {name}: {state} {reason}, {slots} slots");
        for counter in
            ["threads_peak", "blocks", "blocks_kernel", "switches_user", "switches_kernel", "parks"]
        {
            let _ = write!(text, ", {counter} {}", process.counter(counter).unwrap_or(0));
        }
        for (reason, threads) in process.pins() {
            let _ = write!(text, ", pinned.{reason} {threads}");
        }
        text.push('\n');
    }
    text
}
