//! Whether the runtime did in the case's processes what the level stands for.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::case::{Case, Level};
use super::region::{MAX_RECORDS, Process};

/// `COUNTER NAME OPERATOR NUMBER`: what the sum of a counter over all processes has to be.
#[derive(Clone)]
pub struct Counter {
    name: String,
    operator: Operator,
    bound: u64,
}

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

/// What is wrong, a line each. `witnesses` has the ids of the processes in which the runtime should
/// have been active, once for each program that they executed.
pub fn problems(
    case: &Case,
    level: Level,
    processes: &[Process],
    witnesses: &[u32],
) -> Vec<String> {
    let mut problems: Vec<String> = Vec::new();
    let failed = case.counters.iter().filter(|c| !c.holds(sum(processes, &c.name)));
    problems.extend(failed.map(|c| format!("counter {} is {}", c.show(), sum(processes, &c.name))));
    let Level::Switch(name @ ("kernel" | "user" | "auto")) = level else { return problems };

    // One that is killed while it starts stays at "starting".
    let native: Vec<&Process> =
        processes.iter().filter(|p| !matches!(p.state, "active" | "starting")).collect();
    match &case.native {
        Some(reason) if native.iter().any(|p| p.reason.contains(reason)) => return problems,
        Some(reason) if reason.starts_with("not loaded") && processes.is_empty() => {
            return problems;
        }
        Some(reason) => problems.push(format!("no process runs natively because of: {reason}")),
        None if processes.iter().all(|p| p.state == "starting") => {
            problems.push("the runtime was active in no process".into());
        }
        None => {}
    }
    for process in native.iter().filter(|_| case.native.is_none()) {
        let Process { pid, name, state, reason, .. } = process;
        problems.push(format!("not active in process {pid} ({name}): {state} {reason}"));
    }
    // The child of a fork has the redirected calls of its parent, and counts none.
    if !processes.is_empty() && sum(processes, "sites_patched") == 0 {
        problems.push("no system call is redirected in any process".into());
    }
    problems.extend(missing(processes, witnesses));
    // With a few more threads than slots there may be nobody who waits for a slot.
    let crowded: Vec<&Process> = processes
        .iter()
        .filter(|p| p.counter("threads_peak").is_some_and(|t| t >= 4 * p.slots))
        .collect();
    let happened: &[&str] = match name {
        "user" => &["switches_user"],
        "kernel" => &["switches_kernel", "blocks"],
        _ => &["switches_user", "switches_kernel", "blocks"],
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

/// Programs in which the runtime was not active although it should have been.
fn missing(processes: &[Process], witnesses: &[u32]) -> Option<String> {
    if processes.len() >= MAX_RECORDS {
        return None; // the records of the later ones are lost
    }
    let mut records: HashMap<u32, usize> = HashMap::new();
    for process in processes.iter().filter(|p| p.state == "active") {
        *records.entry(process.pid).or_default() += 1;
    }
    let mut text = String::new();
    for &pid in witnesses {
        match records.get_mut(&pid) {
            Some(left) if *left > 0 => *left -= 1,
            _ => drop(write!(text, " {pid}")),
        }
    }
    (!text.is_empty())
        .then(|| format!("the runtime was not active in the programs of the processes{text}"))
}

/// For a report: every process, with the counters that tell most.
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
