//! `lissom bench idle`: the policies for idle CPUs, compared.

mod report;
mod show;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use ui::exit::Failure;
use ui::output::Json;

use self::report::{Kind, Measured, Options, Policies};
use super::background::outcome;
use super::beside;
use super::command::{self, after, shown, words};
use super::document::Document;
use super::energy::Energy;
use super::harness::{self, Compare, Effort, Group, Metric, NATIVE, Ran, Scenario, Turn};
use super::output::Outputs;
use super::sync::TIME;
use super::workload::{self, Calibration, IDLE};
use super::{Progress, Session, sync};
use runtime::options::{Idle, Share, Switch};

/// Measure the policies of `run --idle` with synchronization patterns
///
/// Programs that block and wake often, natively and under lissom with each policy
/// (sleep, poll, haltpoll), in three parts:
///
///   pair   beside a program that computes with one thread per CPU and runs in the
///          same way
///   alone  by themselves
///   idle   programs that are almost idle: the CPU time that they use
///
/// Reports throughput of both programs, context switches, CPU time, and the power
/// of the processors if RAPL is readable.
///
///   barrier       60 us between two barriers of pthreads
///   gomp-barrier  the same with GCC's OpenMP
///   cond          a broadcast to all threads, and an acknowledgement from each
///   mutex         one lock, 100 ns inside it and 100 ns outside
///   sem           pairs of threads that pass a turn to each other
///   queue         half of the threads produce, the other half consume
///   wait          (idle) threads that wait forever
///   timer         (idle) one of the threads wakes every 10 ms
#[derive(Args)]
#[command(verbatim_doc_comment, after_long_help = EXIT_CODES)]
pub struct IdleArgs {
    /// Programs to measure [default: all; with --quick barrier, cond, queue, wait, timer]
    #[arg(value_name = "PROGRAM", value_parser = clap::builder::PossibleValuesParser::new(names()))]
    programs: Vec<String>,

    /// Parts to measure
    #[arg(
        long = "part",
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "pair,alone,idle"
    )]
    parts: Vec<Kind>,

    /// Numbers of threads [default: 2,8; with --quick 8]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    threads: Vec<u32>,

    /// How to switch between threads under lissom
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    switch: Switch,

    /// Whether programs of a pair share the CPUs, as with `run --share`
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    share: Share,

    /// Rounds; each runs every column once. A warm-up round comes first and does not count
    /// [default: 5; with --quick 1]
    #[arg(long, visible_alias = "runs", value_name = "N", value_parser = super::rounds())]
    rounds: Option<usize>,

    /// Duration of a run. Short runs beside another program vary more, because the
    /// kernel assigns CPU time in slices [default: 500ms; with --quick 300ms]
    #[arg(long = "duration", visible_alias = "seconds", value_name = "TIME",
          value_parser = super::limit())]
    seconds: Option<f64>,

    /// Time after which a run is killed
    #[arg(long, visible_alias = "limit", value_name = "TIME", default_value = "30s",
          value_parser = super::limit())]
    timeout: f64,

    /// Measure fewer programs in one round, in at most a minute
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    calibration: Calibration,

    #[command(flatten)]
    json: Json,

    /// Write the tables as Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

const EXIT_CODES: &str = "\
The benchmark takes ten minutes; --quick or names of programs shorten it.
--quick is too short to distinguish 3% from noise.

Exit code: 0 if everything ran, 1 if something failed or was too slow, 2 if
options are wrong. A missed target is a result, not a failure. Ctrl-C ends the
benchmark and shows the complete part.";

const SYNC: [&str; 6] = ["barrier", "gomp-barrier", "cond", "mutex", "sem", "queue"];
const QUIET: [&str; 2] = ["wait", "timer"];
const QUICK: [&str; 5] = ["barrier", "cond", "queue", "wait", "timer"];

fn names() -> impl Iterator<Item = &'static str> {
    SYNC.into_iter().chain(QUIET)
}

const CPU: Metric =
    Metric { field: "cpu_percent", unit: "% of a CPU", compare: Compare::Difference };

/// Work per wake-up of the part `idle`, in microseconds.
const TICK_US: f64 = 20.0;

impl IdleArgs {
    fn options(&self, cpus: u32) -> Options {
        Options {
            cpus,
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 5 }),
            seconds: self.seconds.unwrap_or(if self.quick { 0.3 } else { 0.5 }),
            timeout: self.timeout,
            switch: self.switch.name(),
            share: self.share.name(),
        }
    }

    fn wants(&self, name: &str) -> bool {
        let is_default = self.programs.is_empty() && self.quick;
        if is_default { QUICK.contains(&name) } else { super::is_chosen(&self.programs, name) }
    }

    /// Return the cases to measure, as part, program and threads, in the order of the report.
    fn cases(&self) -> Vec<(Kind, &'static str, u32)> {
        let default: &[u32] = if self.quick { &[8] } else { &[2, 8] };
        let threads = super::or_default(&self.threads, default.iter().copied());
        let mut list = Vec::new();
        for kind in
            [Kind::Pair, Kind::Alone, Kind::Idle].into_iter().filter(|k| self.parts.contains(k))
        {
            let programs: &[&str] = if kind == Kind::Idle { &QUIET } else { &SYNC };
            for &name in programs.iter().filter(|n| self.wants(n)) {
                // The number of idle threads does not matter: take only the last one.
                let threads =
                    if kind == Kind::Idle { &threads[threads.len() - 1..] } else { &threads[..] };
                list.extend(threads.iter().map(|&n| (kind, name, n)));
            }
        }
        list
    }
}

pub fn measure_and_report(args: &IdleArgs) -> anyhow::Result<i32> {
    let cases = args.cases();
    if cases.is_empty() {
        let programs = args.programs.join(", ");
        let text = format!("nothing to measure: no part of --part has {programs}");
        return Err(Failure::wrong_use(text).into());
    }
    let outputs = Outputs::open(&args.json, args.markdown.as_deref())?;
    let time = super::time();
    let session = Session::begin()?;
    let mut notes = Vec::new();
    let energy = Energy::open_or_note(&mut notes);
    let options = args.options(session.cpus());
    let bench = Bench {
        per_us: args.calibration.per_us(&session)?,
        computes: beside::command(&session, "reduction", options.cpus)?,
        options,
        energy,
        session,
    };
    let mut prepared = Vec::new();
    for (kind, name, threads) in cases {
        match bench.group(kind, name, threads) {
            Ok(group) => prepared.push((kind, group)),
            // A compiler without OpenMP can still compile the other programs.
            Err(error) if name == "gomp-barrier" => {
                notes.push(format!("{name} is left out: {error:#}"))
            }
            Err(error) => return Err(error),
        }
    }
    let mut groups = Vec::new();
    let result = bench.measure(&prepared, &mut groups);
    let interrupted = super::interrupted(result)?.err();
    let parameters = json!({
        "iterations_per_us": bench.per_us,
        "compiler": workload::compiler_version(&bench.session),
        "beside": shown(&bench.computes),
    });
    let results = Policies { targets: groups.iter().flat_map(report::targets).collect(), groups };
    let report = Document::of("idle", bench.session.machine, bench.options, results);
    Document { time, parameters, notes, interrupted, ..report }.write(outputs)
}

struct Bench {
    session: Session,
    options: Options,
    per_us: f64,
    energy: Option<Energy>,
    /// Native command of the program that computes beside the measured one.
    computes: Vec<OsString>,
}

impl Bench {
    fn group(&self, kind: Kind, name: &str, threads: u32) -> anyhow::Result<Group> {
        let seconds = self.options.seconds;
        let (command, metric, effort) = if kind == Kind::Idle {
            let work = (TICK_US * self.per_us).round();
            let options =
                [("--threads", f64::from(threads)), ("--work", work), ("--seconds", seconds)];
            let program = workload::compile(&self.session, IDLE)?;
            (command::workload(&program, name, &options), CPU, None)
        } else {
            let effort =
                Effort { rounds: u64::MAX, units: 1.0, limit: self.options.timeout, aim: seconds };
            (sync::timed(name, &self.session, threads, self.per_us)?, TIME, Some(effort))
        };
        let scenario = |policy: Option<Idle>| {
            let (name, switch) =
                (policy.map_or(NATIVE, Idle::name), policy.map(|_| self.options.switch));
            Scenario { effort, ..Scenario::of(name, switch, command.clone()) }
        };
        let policies = [None, Some(Idle::Sleep), Some(Idle::Poll), Some(Idle::Haltpoll)];
        Ok(Group {
            workload: name.into(),
            threads,
            scenarios: policies.map(scenario).into(),
            ..Group::of(metric)
        })
    }

    /// Measure all groups. `groups` receives the results, and keeps complete ones after an error.
    fn measure(
        &self,
        prepared: &[(Kind, Group)],
        groups: &mut Vec<Measured>,
    ) -> anyhow::Result<()> {
        let rounds = self.options.rounds;
        let turns: usize = prepared.iter().map(|(_, g)| g.scenarios.len() * (rounds + 1)).sum();
        let mut progress = Progress::new(turns);
        for (kind, group) in prepared {
            let measured = harness::measure(group, rounds, |scenario, turn, rounds_of_it| {
                progress.show(group, scenario, turn, rounds);
                let beside = (*kind == Kind::Pair).then_some(&self.computes[..]);
                self.run(scenario, group.metric, beside, turn, rounds_of_it)
            })?;
            groups.push(Measured::new(*kind, measured));
        }
        Ok(())
    }

    fn run(
        &self,
        scenario: &Scenario,
        metric: Metric,
        computes: Option<&[OsString]>,
        turn: Turn,
        rounds: Option<u64>,
    ) -> anyhow::Result<Ran> {
        // Take statistics in the warm-up only, where they do not disturb the measurement.
        let watched = scenario.switch.is_some() && turn == Turn::WarmUp;
        let around = |told| match scenario.switch {
            Some(switch) => {
                let idle = format!("--idle={}", scenario.name);
                let share = format!("--share={}", self.options.share);
                self.session.under_lissom(switch, &[&idle, &share], told)
            }
            None => vec![],
        };
        let mut command = after(&around(watched), &scenario.command);
        if let Some(rounds) = rounds {
            command.extend(words!["--rounds", rounds.to_string()]);
        }
        let computes = computes.map(|command| after(&around(false), command));
        let limit = Duration::from_secs_f64(self.options.timeout);
        let ran =
            beside::run(&self.session, &command, computes.as_deref(), self.energy.as_ref(), limit);
        let outcome = outcome(ran, metric.field)?;
        Ok(self.session.ran(outcome, watched))
    }
}

#[cfg(test)]
mod tests {
    use super::super::chosen::tests::parse;
    use super::*;

    fn cases(line: &str) -> Vec<(Kind, &'static str, u32)> {
        parse::<IdleArgs>(line).expect("good options").cases()
    }

    #[test]
    fn what_is_measured() {
        assert_eq!(cases("").len(), 12 + 12 + 2);
        assert_eq!(cases("--quick").len(), 3 + 3 + 2);
        assert_eq!(cases("queue --part alone --threads 4"), [(Kind::Alone, "queue", 4)]);
        assert_eq!(cases("timer --threads 2,16"), [(Kind::Idle, "timer", 16)]);
        assert_eq!(cases("timer --part pair"), []);
    }
}
