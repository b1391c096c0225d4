//! `lissom bench omp`: OpenMP loops that distribute chunks, and short parallel regions.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::command::{add, words};
use super::harness::{Group, Metric, Scenario};
use super::workload::{self, OMP_LOOPS};
use super::{Bench, Common, Session, scenarios};

/// Measure OpenMP loops that hand out chunks, and short parallel regions
///
/// Each pattern runs natively, under lissom, and under lissom with `--malleable`
/// or, for regions, `--omp-team=slots`. The compiler determines the OpenMP library:
/// CC=clang measures LLVM's.
///
///   dynamic        300,000 chunks; in each, a thread reads 256 KiB of a buffer of
///                  its own
///   dynamic-large  50,000 chunks of 1 MiB
///   dynamic-small  8 million chunks of 1 KiB
///   dynamic-short  750 loops of 3,000 chunks of 16 KiB
///   guided         300,000 iterations of 256 KiB
///   guided-small   16 million iterations of 1 KiB
///   region         5,000 parallel regions of about 60 us
///   region-tiny    20,000 parallel regions of about 6 us
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct OmpArgs {
    /// Patterns to measure [default: all]
    #[arg(value_name = "PATTERN", value_parser = PossibleValuesParser::new(PATTERNS.iter().map(|p| p.name)))]
    pub patterns: Vec<String>,

    /// Numbers of threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "32",
        value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    #[command(flatten)]
    pub common: Common,
}

struct Pattern {
    name: &'static str,
    /// The workload's name in workloads/omp_loops.c.
    workload: &'static str,
    /// Rounds at --scale 1. The bound then takes about half a second on two CPUs.
    rounds: f64,
    iterations: f64,
    kib: u32,
}

const fn pattern(
    name: &'static str,
    workload: &'static str,
    rounds: f64,
    iterations: f64,
    kib: u32,
) -> Pattern {
    Pattern { name, workload, rounds, iterations, kib }
}

const PATTERNS: [Pattern; 8] = [
    pattern("dynamic", "dynamic", 1.0, 300e3, 256),
    pattern("dynamic-large", "dynamic", 1.0, 50e3, 1024),
    pattern("dynamic-small", "dynamic", 1.0, 8e6, 1),
    pattern("dynamic-short", "dynamic", 750.0, 3000.0, 16),
    pattern("guided", "guided", 1.0, 300e3, 256),
    pattern("guided-small", "guided", 1.0, 16e6, 1),
    pattern("region", "region", 5000.0, 640.0, 16),
    pattern("region-tiny", "region", 20e3, 64.0, 16),
];

const TIME: Metric = Metric::ratio("seconds", "seconds");

impl Pattern {
    /// Return the additional column for a way of switching: its name, and the environment variable
    /// that it sets.
    fn variant(&self, switch: &str) -> Option<(&'static str, &'static str)> {
        let region = self.workload == "region";
        let name = match (switch, region) {
            ("auto", false) => "auto, malleable",
            ("user", false) => "user, malleable",
            ("kernel", false) => "kernel, malleable",
            ("auto", true) => "auto, team",
            ("user", true) => "user, team",
            ("kernel", true) => "kernel, team",
            _ => return None,
        };
        Some((name, if region { "LISSOM_OMP_TEAM=slots" } else { "LISSOM_MALLEABLE=1" }))
    }

    fn command(&self, program: &Path, threads: u32, scale: f64) -> Vec<OsString> {
        let (rounds, iterations) = if self.rounds > 1.0 {
            ((self.rounds * scale).ceil(), self.iterations)
        } else {
            (1.0, (self.iterations * scale).ceil())
        };
        let mut command = words![program, self.workload];
        let options = [
            ("--threads", f64::from(threads)),
            ("--rounds", rounds),
            ("--iterations", iterations),
            ("--kib", f64::from(self.kib)),
        ];
        add(&mut command, &options);
        command
    }

    fn scenarios(
        &self,
        args: &OmpArgs,
        session: &Session,
        program: &Path,
        threads: u32,
    ) -> Vec<Scenario> {
        let command = |threads| self.command(program, threads, args.common.scale);
        let mut list = scenarios(threads, Some(session.cpus()), &args.common, command);
        let variant = |s: &Scenario| {
            let (name, setting) = self.variant(s.switch?)?;
            let (around, command) = (words!["env", setting], s.command.clone());
            Some(Scenario { name, switch: s.switch, around, command, effort: None })
        };
        let variants: Vec<Scenario> = list.iter().filter_map(variant).collect();
        list.extend(variants);
        list
    }
}

pub fn prepare(args: &OmpArgs, session: &Session) -> anyhow::Result<Bench> {
    let program = workload::compile(session, OMP_LOOPS)?;
    let mut groups = Vec::new();
    for pattern in PATTERNS.iter().filter(|p| super::is_wanted(&args.patterns, p.name)) {
        groups.extend(args.threads.iter().map(|&threads| Group {
            workload: pattern.name.into(),
            threads,
            scenarios: pattern.scenarios(args, session, &program, threads),
            ..Group::of(TIME)
        }));
    }
    Ok(Bench {
        name: "omp",
        timeout: args.common.timeout(120.0),
        groups,
        parameters: json!({ "compiler": workload::compiler_version(session) }),
        ..Bench::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::command::shown;
    use super::*;

    #[test]
    fn a_loop_is_made_shorter_and_many_loops_fewer() {
        let text =
            |pattern: &Pattern| shown(&pattern.command(Path::new("omp_loops"), 8, 0.1)).join(" ");
        assert_eq!(
            text(&PATTERNS[0]),
            "omp_loops dynamic --threads 8 --rounds 1 --iterations 30000 --kib 256"
        );
        assert_eq!(
            text(&PATTERNS[3]),
            "omp_loops dynamic --threads 8 --rounds 75 --iterations 3000 --kib 16"
        );
    }

    #[test]
    fn loops_are_measured_malleable_and_regions_with_smaller_teams() {
        assert_eq!(PATTERNS[0].variant("user"), Some(("user, malleable", "LISSOM_MALLEABLE=1")));
        assert_eq!(PATTERNS[6].variant("auto"), Some(("auto, team", "LISSOM_OMP_TEAM=slots")));
        assert_eq!(PATTERNS[0].variant("off"), None);
    }
}
