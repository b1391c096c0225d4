//! `lissom manager`: shares the CPUs of a node among programs.

mod allocation;
pub mod sample;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use allocation::{Application, Id, Kind, Share};
use sample::{Sampler, Seen};

/// Share the CPUs among the programs of a node
///
/// Programs that leave CPUs idle, in sequential phases or for lack of work, leave them to
/// those that run under `lissom run`, which can use as many as there are from moment to
/// moment. Each of these has one CPU at least; those with the highest numbers are theirs,
/// the others run below.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct ManagerArgs {
    /// Show what would be done, and do nothing
    #[arg(long, required = true)]
    pub dry_run: bool,

    /// One period only [default: until it is ended]
    #[arg(long)]
    pub once: bool,

    /// Milliseconds between two decisions. Shorter: phases are followed sooner, at more CPU time
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(20..=60_000))]
    pub period: u64,

    /// Milliseconds of a period that a program must have had as many runnable threads, or more,
    /// to be given as many CPUs. Longer: bursts get fewer
    #[arg(long, value_name = "MS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub min_threshold: u64,

    /// One JSON document a line, for each decision
    #[arg(long)]
    pub json: bool,
}

pub fn manager(args: &ManagerArgs) -> i32 {
    match manage(args) {
        Ok(()) => 0,
        // The reader has seen enough.
        Err(error)
            if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) =>
        {
            0
        }
        Err(error) => {
            eprintln!("lissom: {error:#}");
            1
        }
    }
}

fn manage(args: &ManagerArgs) -> anyhow::Result<()> {
    let period = Duration::from_millis(args.period);
    let mut sampler = Sampler::default();
    let mut last = None;
    loop {
        let seen = sampler.period(period)?;
        let counts: BTreeMap<Id, u32> = seen
            .iter()
            .map(|s| (s.id, s.activity.typical_thread_count(Duration::from_millis(args.min_threshold))))
            .collect();
        let applications: Vec<Application> =
            seen.iter().map(|s| Application { id: s.id, kind: kind(s, counts[&s.id]) }).collect();
        let cpus = crate::process::allowed_cpus();
        let shares = allocation::allocate(&applications, &cpus);
        if last.as_ref() != Some(&shares) {
            let text = if args.json {
                format!("{}\n", document(&seen, &counts, &shares, &cpus))
            } else {
                table(&seen, &counts, &shares, &cpus)
            };
            crate::print(text.as_bytes())?;
        }
        if args.once {
            return Ok(());
        }
        last = Some(shares);
    }
}

/// A malleable program that did nothing is one that is idle: it has no use for CPUs now.
fn kind(seen: &Seen, typical_thread_count: u32) -> Kind {
    if seen.malleable && typical_thread_count > 0 {
        Kind::Malleable { max_threads: seen.threads }
    } else {
        Kind::Rigid { typical_thread_count }
    }
}

fn kind_name(seen: &Seen, count: u32) -> &'static str {
    match (seen.malleable, count) {
        (_, 0) => "idle",
        (true, _) => "malleable",
        (false, _) => "active",
    }
}

fn document(
    seen: &[Seen],
    counts: &BTreeMap<Id, u32>,
    shares: &BTreeMap<Id, Share>,
    cpus: &[usize],
) -> Value {
    let programs = seen.iter().map(|s| {
        let share = &shares[&s.id];
        json!({
            "pid": s.id, "name": s.name, "kind": kind_name(s, counts[&s.id]), "threads": s.threads,
            "typical_thread_count": counts[&s.id], "target_threads": share.target_threads, "cpus": share.cpus,
        })
    });
    json!({ "cpus": cpus, "programs": programs.collect::<Vec<_>>() })
}

/// At most 80 columns. Idle programs are counted only.
fn table(seen: &[Seen], counts: &BTreeMap<Id, u32>, shares: &BTreeMap<Id, Share>, cpus: &[usize]) -> String {
    let mut lines = vec![format!(
        "{:>8} {:<20} {:<10} {:>7} {:>7} {:>6}  CPUS",
        "PID", "PROGRAM", "KIND", "THREADS", "TYPICAL", "TARGET"
    )];
    let mut idle = 0;
    for s in seen {
        let (count, share) = (counts[&s.id], &shares[&s.id]);
        if count == 0 {
            idle += 1;
            continue;
        }
        let target = share.target_threads.map_or("-".into(), |n| n.to_string());
        lines.push(format!(
            "{:>8} {:<20.20} {:<10} {:>7} {:>7} {:>6}  {}",
            s.id,
            s.name,
            kind_name(s, count),
            s.threads,
            count,
            target,
            ranges(&share.cpus)
        ));
    }
    lines.push(format!("{} CPUs; {idle} idle programs", cpus.len()));
    lines.push(String::new());
    lines.join("\n")
}

/// `0-3,8`.
fn ranges(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == cpu => *end = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let show = |&(a, b): &(usize, usize)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    parts.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }
}
