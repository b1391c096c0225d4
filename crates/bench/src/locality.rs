//! `lissom bench locality`: the indirect cost of a context switch, in caches and TLBs.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::command;
use super::harness::{Compare, Group, Metric};
use super::switch::one_cpu;
use super::workload::{self, LOCALITY};
use super::{Bench, Common, Session, scenarios};

/// Measure the cost of a context switch in caches and TLBs
///
/// Threads on one CPU each traverse a part of an array, and pass a turn on after
/// each traversal. The result is the extra time per switch: relative to one thread
/// that traverses the whole array, and without the cost of a switch by itself. It
/// is below zero if a part fits into a cache, or its pages into a TLB, and the
/// whole array does not.
///
///   sequential-read, sequential-write   in address order, one access per cache
///                                       line
///   random-read, random-write           in random order, each line once
///
/// A write changes the value that it has read. All patterns take five minutes;
/// --scale 0.1, --runs 1 or fewer --kib shorten that.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct LocalityArgs {
    /// Patterns to measure [default: all]
    #[arg(value_name = "PATTERN", value_parser = PossibleValuesParser::new(PATTERNS))]
    pub patterns: Vec<String>,

    /// Sizes of the array in KiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16,64,256,1024,4096,16384,65536,131072",
        value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pub kib: Vec<u32>,

    /// Numbers of threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2",
        value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub threads: Vec<u32>,

    #[command(flatten)]
    pub common: Common,
}

const PATTERNS: [&str; 4] = ["sequential-read", "sequential-write", "random-read", "random-write"];

const INDIRECT: Metric = Metric {
    field: "indirect_us",
    unit: "us a switch, beyond the switch itself",
    compare: Compare::Nothing,
};

/// Length of each of the three phases at --scale 1.
const SECONDS: f64 = 0.1;

pub fn prepare(args: &LocalityArgs, session: &Session) -> anyhow::Result<Bench> {
    let program = workload::compile(session, LOCALITY)?;
    let around = one_cpu()?;
    let mut groups = Vec::new();
    for pattern in PATTERNS.iter().filter(|p| super::is_chosen(&args.patterns, p)) {
        for (&kib, &threads) in
            args.kib.iter().flat_map(|k| args.threads.iter().map(move |t| (k, t)))
        {
            let command = |threads: u32| {
                let options = [
                    ("--threads", f64::from(threads)),
                    ("--work", f64::from(kib)),
                    ("--seconds", SECONDS * args.common.scale),
                ];
                command::workload(&program, pattern, &options)
            };
            let group = Group {
                workload: format!("{pattern}, {}", size(kib)),
                threads,
                scenarios: scenarios(threads, None, &args.common, command),
                ..Group::of(INDIRECT)
            };
            groups.push(group.around(&around));
        }
    }
    Ok(Bench {
        name: "locality",
        timeout: args.common.timeout(60.0),
        groups,
        parameters: json!({ "kib": args.kib, "compiler": workload::compiler_version(session) }),
        ..Bench::default()
    })
}

fn size(kib: u32) -> String {
    if kib >= 1024 && kib.is_multiple_of(1024) {
        format!("{} MiB", kib / 1024)
    } else {
        format!("{kib} KiB")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(
            (size(16).as_str(), size(1024).as_str(), size(1536).as_str()),
            ("16 KiB", "1 MiB", "1536 KiB")
        );
    }
}
