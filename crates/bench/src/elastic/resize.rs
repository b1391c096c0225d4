//! The patterns `resize-*` of `lissom bench elastic`: the number of CPUs changes once while a
//! program runs. The metric is the time from start to end.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};

use super::super::command::{after, with_variable, words};
use super::super::harness::{Compare, Group, Metric, NATIVE, Scenario};
use super::super::programs::{self, Ready};
use super::super::workload::{self, PIN, SCHEDULE};
use super::super::{Common, Session, or_default, thread_count};
use super::{FEWER, scheduled};
use os::process;

#[derive(Args)]
pub struct ResizeArgs {
    /// For resize, numbers of CPUs at the start [default: 8; on up to 8 CPUs, all and half of them]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = thread_count())]
    pub cpus_from: Vec<u32>,

    /// For resize, numbers of CPUs after the change [default: powers of two up to all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = thread_count())]
    pub cpus_to: Vec<u32>,

    /// For resize, time until the number of CPUs changes [default: 500ms x --scale]
    #[arg(long, value_name = "TIME", value_parser = super::super::limit())]
    pub after: Option<f64>,

    /// For resize, how the number of CPUs changes; cpuset and quota need root
    #[arg(
        long,
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "affinity"
    )]
    pub by: Vec<Way>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Affinity mask of all threads
    Affinity,
    /// Cpuset of a cgroup
    Cpuset,
    /// CPU quota of a cgroup
    Quota,
}

/// Pattern, program of workloads/, and rounds at --scale 1, which take two to four CPU seconds.
pub const PATTERNS: [(&str, &str, f64); 4] = [
    ("resize-ep", "npb-ep", 6.0),
    ("resize-streamcluster", "parsec-streamcluster", 10.0),
    ("resize-ocean", "splash-ocean", 6.0),
    ("resize-cg", "npb-cg", 16.0),
];

/// CPUs at the start, as in the paper, if the machine has more.
const CPUS_FROM: u32 = 8;
/// Threads per CPU at the start.
const FACTOR: u32 = 4;
/// The column of native runs with each thread bound to a CPU of the start.
const PINNED: &str = "pinned";

const TIME: Metric =
    Metric { field: "whole_seconds", unit: "seconds from start to end", compare: Compare::Ratio };

pub fn groups(
    wanted: &[String],
    args: &ResizeArgs,
    threads: &[u32],
    common: &Common,
    session: &Session,
) -> anyhow::Result<Vec<Group>> {
    let mut groups = Vec::new();
    let patterns = PATTERNS.iter().filter(|p| wanted.iter().any(|w| w == p.0));
    for &(_, name, rounds) in patterns {
        if args.by.iter().any(|way| *way != Way::Affinity) && process::euid() != 0 {
            bail!("--by cpuset and --by quota create cgroups: run as root, or pass --by affinity");
        }
        let program = programs::paper(name, session, common.scale)?;
        let tools = Tools {
            schedule: workload::compile(session, SCHEDULE)?,
            pin: workload::compile(session, PIN)?,
            rounds: (rounds * common.scale).ceil(),
            after: args.after.unwrap_or(0.5 * common.scale),
        };
        for &way in &args.by {
            for (from, to) in args.changes(session.cpus())? {
                for threads in or_default(threads, [FACTOR * from]) {
                    groups.push(tools.group(&program, way, (from, to), threads, common));
                }
            }
        }
    }
    Ok(groups)
}

impl ResizeArgs {
    /// Return the numbers of CPUs before and after each change. Fails if an option exceeds `all`,
    /// the CPUs of the machine.
    fn changes(&self, all: u32) -> anyhow::Result<Vec<(u32, u32)>> {
        if let Some(more) = self.cpus_from.iter().chain(&self.cpus_to).find(|n| **n > all) {
            bail!("--cpus-from or --cpus-to {more}: there are {all} CPUs");
        }
        let from = match &self.cpus_from[..] {
            [] if all > CPUS_FROM => vec![CPUS_FROM],
            [] if all == 1 => vec![1],
            [] => vec![all.div_ceil(2), all],
            list => list.to_vec(),
        };
        let powers = (0..).map(|i| 1 << i).take_while(|n| *n <= all);
        let to = or_default(&self.cpus_to, powers);
        Ok(from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to))).collect())
    }
}

struct Tools {
    schedule: PathBuf,
    pin: PathBuf,
    rounds: f64,
    after: f64,
}

impl Tools {
    fn group(
        &self,
        program: &Ready,
        way: Way,
        (from, to): (u32, u32),
        threads: u32,
        common: &Common,
    ) -> Group {
        let steps = format!("{from}:{},{to}", self.after);
        let command = |threads| {
            [(program.command)(threads), words!["--rounds", self.rounds.to_string()]].concat()
        };
        let by = &super::super::name_of(&way);
        let plain = |name, switch, threads| {
            let command = scheduled(&self.schedule, by, &steps, &command(threads));
            Scenario::of(name, switch, command)
        };
        // `--by affinity` would unbind the threads.
        let keeps_pins = if way == Way::Affinity { "pins" } else { by };
        let pinned = after(&with_variable("LD_PRELOAD", &self.pin), &command(threads));
        let pinned = scheduled(&self.schedule, keeps_pins, &steps, &pinned);
        let mut scenarios = vec![
            plain(FEWER, None, from),
            plain(NATIVE, None, threads),
            Scenario::of(PINNED, None, pinned),
        ];
        scenarios.extend(common.switches().map(|s| plain(s, Some(s), threads)));
        let by = if way == Way::Affinity { "" } else { &format!(" by {by}") };
        let several = if to == 1 { "CPU" } else { "CPUs" };
        Group {
            workload: format!("{}{by}, {from} to {to} {several}", program.name),
            metric: TIME,
            limit: Some(common.timeout(super::LIMIT)),
            scenarios,
            ..program.group(threads)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::chosen::tests::parse;
    use super::super::super::command::shown;
    use super::super::super::programs::Kind;
    use super::*;

    fn changes(line: &str, all: u32) -> Vec<(u32, u32)> {
        let args: ResizeArgs = parse(line).expect("good options");
        args.changes(all).unwrap_or_default()
    }

    #[test]
    fn cpus_before_and_after() {
        assert_eq!(changes("", 2), [(1, 1), (1, 2), (2, 1), (2, 2)]);
        assert_eq!(changes("", 1), [(1, 1)]);
        assert_eq!(changes("", 36).iter().map(|c| c.1).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32]);
        assert!(changes("", 36).iter().all(|c| c.0 == 8));
        assert_eq!(changes("--cpus-from 3 --cpus-to 1,4", 4), [(3, 1), (3, 4)]);
        assert!(changes("--cpus-from 3", 2).is_empty());
    }

    #[test]
    fn columns() {
        let command = |threads: u32| words!["ep", threads.to_string()];
        let program = Ready::of("npb-ep", Kind::None, command);
        let tools = Tools { schedule: "s".into(), pin: "pin.so".into(), rounds: 8.0, after: 0.25 };
        let common = Common { switch: vec![runtime::options::Switch::Auto], ..Common::default() };
        let commands = |way| -> Vec<String> {
            let group = tools.group(&program, way, (1, 2), 4, &common);
            let line = |s: &Scenario| format!("{}: {}", s.name, shown(&s.command).join(" "));
            let lines = group.scenarios.iter().map(line);
            std::iter::once(group.workload.clone()).chain(lines).collect()
        };
        assert_eq!(
            commands(Way::Affinity),
            [
                "npb-ep, 1 to 2 CPUs",
                "fewer: s --by affinity --steps 1:0.25,2 -- ep 1 --rounds 8",
                "native: s --by affinity --steps 1:0.25,2 -- ep 4 --rounds 8",
                "pinned: s --by pins --steps 1:0.25,2 -- env LD_PRELOAD=pin.so ep 4 --rounds 8",
                "auto: s --by affinity --steps 1:0.25,2 -- ep 4 --rounds 8",
            ]
        );
        assert_eq!(commands(Way::Quota)[0], "npb-ep by quota, 1 to 2 CPUs");
        assert!(commands(Way::Quota)[3].contains("--by quota"));
    }
}
