//! `lissom bench locality`: what a context switch costs by the caches and TLBs that others have
//! used.

use std::ffi::OsString;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::harness::{Compare, Group, Metric, NATIVE, Scenario};
use super::switch::one_cpu;
use super::workload::{self, LOCALITY};
use super::{Bench, Common, Session};

/// What a context switch costs beyond itself, in caches and TLBs
///
/// Threads on one CPU walk over an array, each over its part, and pass the turn on
/// after each walk. Counted is, for each switch, the time beyond that of one
/// thread that walks over all of it, less that of a switch with nothing to walk
/// over. Below zero: a part fits into a cache, or its pages into a TLB, which all
/// of it does not.
///
///   sequential-read, sequential-write   in the order of addresses, an access a
///                                       cache line
///   random-read, random-write           in a random order, each once
///
/// A write changes what it has read. All of it takes five minutes; --scale 0.1,
/// --runs 1 and some --kib make it shorter.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct LocalityArgs {
    /// Patterns to measure [default: all]
    #[arg(value_name = "PATTERN", value_parser = PossibleValuesParser::new(PATTERNS))]
    pub patterns: Vec<String>,

    /// Sizes of the array, in KiB
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

/// Of each of the three phases, at --scale 1.
const SECONDS: f64 = 0.1;

pub fn prepare(args: &LocalityArgs, session: &Session) -> anyhow::Result<Bench> {
    let program = workload::compile(session, LOCALITY)?;
    let around = one_cpu()?;
    let mut groups = Vec::new();
    let wanted = PATTERNS
        .iter()
        .filter(|p| args.patterns.is_empty() || args.patterns.iter().any(|n| n == *p));
    for pattern in wanted {
        for &kib in &args.kib {
            for &threads in &args.threads {
                let mut command: Vec<OsString> = vec![program.clone().into(), (*pattern).into()];
                let seconds = SECONDS * args.common.scale;
                let options = [
                    ("--threads", f64::from(threads)),
                    ("--work", f64::from(kib)),
                    ("--seconds", seconds),
                ];
                workload::add(&mut command, &options);
                let scenario = |name, switch| Scenario {
                    name,
                    switch,
                    around: around.clone(),
                    command: command.clone(),
                    effort: None,
                };
                let mut scenarios = vec![scenario(NATIVE, None)];
                scenarios
                    .extend(args.common.switches().map(|switch| scenario(switch, Some(switch))));
                groups.push(Group {
                    workload: format!("{pattern}, {}", size(kib)),
                    threads,
                    scenarios,
                    ..Group::of(INDIRECT)
                });
            }
        }
    }
    Ok(Bench {
        name: "locality",
        timeout: args.common.timeout(60.0),
        groups,
        watches: vec![],
        parameters: json!({ "kib": args.kib, "compiler": workload::compiler_version(session) }),
        notes: vec![],
        summary: None,
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
