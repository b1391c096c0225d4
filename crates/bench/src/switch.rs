//! `lissom bench switch`: the direct cost of a context switch.

use std::ffi::OsString;

use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::command::{self, words};
use super::harness::Group;
use super::sync::TIME;
use super::workload::{self, Calibration, SWITCH};
use super::{Bench, Common, Session, scenarios};
use os::process;

/// Measure the cost of a context switch by itself, on one CPU
///
/// An increasing number of threads share a fixed amount of work on one CPU. The
/// bound is one thread, natively.
///
///   compute  pieces of 100 us, and nothing else: only time slices cause switches
///   atomic   pieces of 1 us, each with an addition to a counter that all threads
///            share
///   yield    sched_yield after each piece of 1 us: the time of a round beyond the
///            bound's is that of a switch
///   futex    threads pass a turn on after each piece of 1 us
///
/// All patterns take three minutes on any machine.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct SwitchArgs {
    /// Patterns to measure [default: all]
    #[arg(value_name = "PATTERN", value_parser = PossibleValuesParser::new(PATTERNS.iter().map(|p| p.0)))]
    pub patterns: Vec<String>,

    /// Numbers of threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4,8,16,32,64",
        value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    #[command(flatten)]
    pub calibration: Calibration,

    #[command(flatten)]
    pub common: Common,
}

/// Name, microseconds per piece, and pieces at --scale 1. The bound then takes about 0.3 s.
const PATTERNS: [(&str, f64, f64); 4] = [
    ("compute", 100.0, 3000.0),
    ("atomic", 1.0, 300e3),
    ("yield", 1.0, 200e3),
    ("futex", 1.0, 100e3),
];

pub fn prepare(args: &SwitchArgs, session: &Session) -> anyhow::Result<Bench> {
    let per_us = args.calibration.per_us(session)?;
    let program = workload::compile(session, SWITCH)?;
    let around = one_cpu()?;
    let mut groups = Vec::new();
    for &(name, us, rounds) in PATTERNS.iter().filter(|p| super::is_chosen(&args.patterns, p.0)) {
        let command = |threads: u32| {
            let options = [
                ("--threads", f64::from(threads)),
                ("--work", (us * per_us).round()),
                ("--rounds", (rounds * args.common.scale).ceil()),
            ];
            command::workload(&program, name, &options)
        };
        let group = |&threads: &u32| Group {
            workload: name.into(),
            threads,
            scenarios: scenarios(threads, Some(1), &args.common, command),
            ..Group::of(TIME)
        };
        groups.extend(args.threads.iter().map(|threads| group(threads).around(&around)));
    }
    Ok(Bench {
        name: "switch",
        timeout: args.common.timeout(60.0),
        groups,
        parameters: json!({ "iterations_per_us": per_us, "compiler": workload::compiler_version(session) }),
        ..Bench::default()
    })
}

/// Return the words in front of a command that restrict it to the first CPU of this process.
pub fn one_cpu() -> anyhow::Result<Vec<OsString>> {
    let cpu = process::allowed_cpus().first().copied().context("no CPU")?;
    Ok(words!["taskset", "-c", cpu.to_string()])
}
