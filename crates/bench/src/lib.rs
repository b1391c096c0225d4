//! `lissom bench`: measure programs natively and under lissom.
//!
//! A benchmark prepares groups (harness.rs). This module runs them and reports the results. To add
//! a benchmark, add a module with a `prepare`, and a variant of `What`.

mod ab;
mod adapt;
mod advice;
mod background;
mod beside;
mod child;
mod chosen;
mod columns;
mod command;
mod counters;
mod document;
mod elastic;
mod energy;
mod harness;
mod host;
mod idle;
pub mod load;
mod locality;
mod locks;
mod machine;
mod markdown;
mod mechanisms;
mod meter;
mod mixes;
mod ml;
mod noise;
mod omp;
mod output;
mod postgres;
mod programs;
mod progress;
mod python;
mod report;
mod sensitivity;
mod series;
mod server;
mod smt;
mod specificity;
mod spin;
mod statistics;
mod switch;
mod sync;
mod table;
mod version;
mod watch;
mod ways;
mod workload;

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use itertools::Itertools as _;
use serde_json::Value;
use ui::exit::Failure;
use ui::output::Json;
use ui::time::Unit;

use child::{Ended, Hogs, Interrupted, Scratch, Signals};
use chosen::{is_chosen, name_of, or_default};
use command::{confined, words};
use counters::{Migrations, Process};
use harness::{BOUND, Counted, Group, NATIVE, Outcome, Ran, Sample, Scenario, Turn, WALL};
use machine::Machine;
use meter::busy_seconds;
use output::Outputs;
use progress::Progress;
use report::{Options, Report};
use runtime::options::Switch;
use statistics::waits;
use watch::{Watch, Watched};

pub use host::study;

/// Measure what lissom gains on this machine
///
/// `lissom bench -- CMD` measures your own program. The other benchmarks bring their programs
/// with them; `lissom study` draws figures of their results.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_long_help = format!("{EXIT_CODES}{EXAMPLES}"))]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: Option<What>,

    #[command(flatten)]
    pub ab: ab::AbArgs,
}

#[derive(Subcommand)]
pub enum What {
    Sync(sync::SyncArgs),
    Spin(spin::SpinArgs),
    Ml(ml::MlArgs),
    Omp(omp::OmpArgs),
    Elastic(elastic::ElasticArgs),
    Server(server::ServerArgs),
    Mixes(mixes::MixesArgs),
    Adapt(adapt::AdaptArgs),
    Idle(idle::IdleArgs),
    Smt(smt::SmtArgs),
    Programs(programs::ProgramsArgs),
    Switch(switch::SwitchArgs),
    Locality(locality::LocalityArgs),
    Locks(locks::LocksArgs),
    Mechanisms(mechanisms::MechanismsArgs),
}

const EXIT_CODES: &str = "\
Exit code: 0 if everything ran, 1 if something failed or was too slow under
lissom, 2 if options are wrong, 127 or 126 if CMD is not found or cannot be
executed. Ctrl-C ends the benchmark and shows the complete part; then 130.";

const EXAMPLES: &str = "\n\nExamples:
  lissom bench --threads-env OMP_NUM_THREADS -- ./solver input
  lissom bench --runs 10 --json=app.json -- sh -c './first | ./second'
  lissom bench sync --switch=user,kernel";

/// Options that most benchmarks share.
#[derive(Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct Common {
    /// Ways to switch between threads to measure, besides the bound and native
    #[arg(
        long,
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "kernel,user"
    )]
    pub switch: Vec<Switch>,

    /// Rounds; each runs every column once. A warm-up round comes first and does not count
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = rounds())]
    pub runs: usize,

    /// Time after which a run is killed. Its cell then shows `timeout`, or a lower limit of the
    /// time [default: 10s for `mechanisms`, 20s for `spin`, 120s for `sync`, `omp` and `ml`,
    /// otherwise 60s]
    #[arg(long, visible_alias = "limit", value_name = "TIME", value_parser = limit())]
    pub timeout: Option<f64>,

    /// Measure beside a busy process on each CPU
    #[arg(long)]
    pub hog: bool,

    /// Amount of work of a run; 0.1 is a tenth of it
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    pub scale: f64,

    #[command(flatten)]
    pub json: Json,

    /// Write the table as Markdown to this file
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

impl Default for Common {
    fn default() -> Common {
        Common {
            switch: vec![],
            runs: 5,
            timeout: None,
            hog: false,
            scale: 1.0,
            json: Json::default(),
            markdown: None,
        }
    }
}

impl Common {
    fn timeout(&self, default: f64) -> f64 {
        self.timeout.unwrap_or(default)
    }

    /// Return the names of the ways to switch, without duplicates.
    fn switches(&self) -> impl Iterator<Item = &'static str> {
        self.switch.iter().map(|s| s.name()).unique()
    }
}

fn thread_count() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=10_000)
}

fn rounds() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u64).range(1..=1000).map(|n| n as usize)
}

/// Returns the parser of time limits, in seconds.
fn limit() -> impl TypedValueParser<Value = f64> {
    ui::time::seconds(Unit::S, "1ms", "240h")
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok(number),
        _ => Err("expected a number above 0, at most 1000000".into()),
    }
}

/// Return whether the user asked for `name`, or for all by naming none.
fn is_wanted(asked: &[String], name: &str) -> bool {
    asked.is_empty() || asked.iter().any(|n| n == name)
}

/// Name of the file in the session's folder that `lissom run --stats-file` writes.
const STATISTICS: &str = "statistics.json";

type Summary = fn(&[harness::Measured]) -> Vec<String>;
type Advise = fn(&[harness::Measured], &Value) -> Option<advice::Advice>;

/// A prepared benchmark.
#[derive(Default)]
struct Bench {
    name: &'static str,
    /// Maximum duration of a run, in seconds.
    timeout: f64,
    groups: Vec<Group>,
    watches: Vec<Watch>,
    parameters: Value,
    notes: Vec<String>,
    /// Derive more notes from the results.
    summary: Option<Summary>,
    /// Derive an advice from the results.
    advise: Option<Advise>,
}

/// State that all runs of this process share.
struct Session {
    machine: Machine,
    scratch: Scratch,
    signals: Signals,
    lissom: PathBuf,
}

/// Build the columns: the bound, native, and each way to switch. `bound`: its number of threads;
/// `None` omits it. `command` returns the command for a number of threads.
fn scenarios(
    threads: u32,
    bound: Option<u32>,
    common: &Common,
    command: impl Fn(u32) -> Vec<OsString>,
) -> Vec<Scenario> {
    let scenario = |name, switch, threads| Scenario::of(name, switch, command(threads));
    let mut list: Vec<Scenario> =
        bound.map(|cpus| scenario(BOUND, None, cpus)).into_iter().collect();
    list.push(scenario(NATIVE, None, threads));
    list.extend(common.switches().map(|switch| scenario(switch, Some(switch), threads)));
    list
}

pub fn bench(args: &BenchArgs) -> anyhow::Result<i32> {
    let Some(what) = &args.what else {
        let measure =
            |common| measure_and_report(&common, |session| ab::prepare(&args.ab, session));
        return ended(ab::common(&args.ab).and_then(measure));
    };
    ended(match what {
        What::Sync(a) => measure_and_report(&a.common, |session| sync::prepare(a, session)),
        What::Spin(a) => measure_and_report(&a.common, |session| spin::prepare(a, session)),
        What::Ml(a) => measure_and_report(&a.common, |session| ml::prepare(a, session)),
        What::Omp(a) => measure_and_report(&a.common, |session| omp::prepare(a, session)),
        What::Elastic(a) => measure_and_report(&a.common, |session| elastic::prepare(a, session)),
        What::Server(a) => measure_and_report(&a.common, |session| server::prepare(a, session)),
        What::Adapt(a) => measure_and_report(&a.common, |session| adapt::prepare(a, session)),
        What::Programs(a) => measure_and_report(&a.common, |session| programs::prepare(a, session)),
        What::Switch(a) => measure_and_report(&a.common, |session| switch::prepare(a, session)),
        What::Locality(a) => measure_and_report(&a.common, |session| locality::prepare(a, session)),
        What::Locks(a) => measure_and_report(&a.common, |session| locks::prepare(a, session)),
        What::Mechanisms(a) => {
            measure_and_report(&a.common, |session| mechanisms::prepare(a, session))
        }
        What::Mixes(a) => mixes::measure_and_report(a),
        What::Idle(a) => idle::measure_and_report(a),
        What::Smt(a) => smt::measure_and_report(a),
    })
}

/// Give an interruption its exit code, 128 + the signal.
fn ended(result: anyhow::Result<i32>) -> anyhow::Result<i32> {
    result.map_err(|error| match error.downcast_ref::<Interrupted>() {
        Some(signal) => Failure { code: 128 + signal.0, message: format!("{error:#}") }.into(),
        None => error,
    })
}

/// Return the current time, in seconds since 1970.
fn time() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn measure_and_report(
    common: &Common,
    prepare: impl FnOnce(&Session) -> anyhow::Result<Bench>,
) -> anyhow::Result<i32> {
    let outputs = Outputs::open(&common.json, common.markdown.as_deref())?;
    let time = time();
    let session = Session::begin()?;
    let bench = prepare(&session)?;
    let hogs = if common.hog {
        Hogs::start(&workload::compile(&session, workload::SYNC)?)?
    } else {
        Hogs::none()
    };
    let (groups, watched, interrupted) = session.measure(&bench, common, hogs)?;
    let beside_others = common.hog || bench.groups.iter().any(|g| g.beside.is_some());
    let mut notes = bench.notes;
    notes.extend(bench.summary.map(|of| of(&groups)).unwrap_or_default());
    let advice = bench.advise.and_then(|advise| advise(&groups, &bench.parameters));
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        benchmark: bench.name,
        time,
        machine: session.machine,
        options: Options {
            runs: common.runs,
            timeout: bench.timeout,
            hog: common.hog,
            scale: common.scale,
        },
        parameters: bench.parameters,
        noise: noise::noise(&groups, beside_others),
        groups,
        watched,
        notes,
        advice,
        interrupted,
    };
    let text = || match report.benchmark {
        "programs" => programs::show::text(&report),
        ab::NAME => ab::text(&report),
        _ => table::render(&report),
    };
    outputs.write(&report, || markdown::render(&report), text)?;
    Ok(report.exit_code())
}

impl Session {
    fn begin() -> anyhow::Result<Session> {
        Ok(Session {
            machine: Machine::look(),
            scratch: Scratch::create()?,
            signals: Signals::block(),
            lissom: std::env::current_exe().context("cannot find lissom's executable")?,
        })
    }

    fn cpus(&self) -> u32 {
        self.machine.cpus
    }

    /// Run a helper program, such as a compiler. Returns its standard output. Fails after two
    /// minutes.
    fn output(&self, command: &[OsString]) -> anyhow::Result<String> {
        match child::run(command, &self.signals, &self.scratch, Duration::from_secs(120))? {
            Ended::Well(output) => Ok(output),
            Ended::Badly(why) => bail!("{}: {why}", command[0].display()),
            Ended::TooSlow => bail!("{} did not end within 120 s", command[0].display()),
        }
    }

    /// Return the words of `lissom run` in front of a command. With the last argument, the command
    /// writes statistics, which `statistics` reads.
    fn under_lissom(&self, switch: &str, options: &[&str], told: bool) -> Vec<OsString> {
        let mut command = words![&self.lissom, "run", format!("--switch={switch}")];
        command.extend(options.iter().map(OsString::from));
        if told {
            let file = self.scratch.path().join(STATISTICS);
            command.extend(words!["--stats=json", "--stats-file", file]);
        }
        command.push("--".into());
        command
    }

    /// Read the statistics that the last command wrote, if any.
    fn statistics(&self) -> Option<Value> {
        let text = std::fs::read_to_string(self.scratch.path().join(STATISTICS)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Run all groups, then all watches. Returns the complete results, also after an interruption.
    fn measure(&self, bench: &Bench, common: &Common, hogs: Hogs) -> anyhow::Result<Complete> {
        let limit = Duration::from_secs_f64(bench.timeout);
        let hogs = RefCell::new(hogs);
        // Pilot runs do not count: their number is not known in advance.
        let turns: usize = bench.groups.iter().map(|g| g.scenarios.len() * (common.runs + 1)).sum();
        let progress = RefCell::new(Progress::new(turns + bench.watches.len()));
        let (mut measured, mut watched) = (Vec::new(), Vec::new());
        for group in &bench.groups {
            let mut native = None;
            let result = harness::measure(group, common.runs, |scenario, turn, rounds| {
                progress.borrow_mut().show(group, scenario, turn, common.runs);
                hogs.borrow_mut().check()?;
                let limit = match native.filter(|_| group.tries(scenario)) {
                    Some(seconds) => limit.min(patience(seconds)),
                    None => limit,
                };
                let ran = self.run(group, scenario, turn, rounds, limit)?;
                if scenario.name == NATIVE {
                    native = ran.counted.as_ref().map(|c| c.seconds).or(native);
                }
                anyhow::Ok(ran)
            });
            match interrupted(result)? {
                Ok(group) => measured.push(group),
                Err(signal) => return Ok((measured, watched, Some(signal))),
            }
        }
        for watch in &bench.watches {
            progress.borrow_mut().show_text(&watch.describe());
            hogs.borrow_mut().check()?;
            match interrupted(watch::watch(watch, self, limit))? {
                Ok(one) => watched.push(one),
                Err(signal) => return Ok((measured, watched, Some(signal))),
            }
        }
        Ok((measured, watched, None))
    }

    /// Run a scenario once. `rounds`: value of its option --rounds, if it has one.
    fn run(
        &self,
        group: &Group,
        scenario: &Scenario,
        turn: Turn,
        rounds: Option<u64>,
        limit: Duration,
    ) -> anyhow::Result<Ran> {
        // Collect statistics only in the warm-up, because they cost time.
        let watched = scenario.switch.is_some() && turn == Turn::WarmUp;
        let mut command: Vec<OsString> = scenario.around.clone();
        if !group.environment.is_empty() {
            command.push("env".into());
            command.extend(group.environment.iter().map(OsString::from));
        }
        if let Some(switch) = scenario.switch {
            command.extend(self.under_lissom(switch, group.options, watched));
        }
        command.extend(scenario.command.iter().cloned());
        if let Some(rounds) = rounds {
            command.extend(words!["--rounds", rounds.to_string()]);
        }
        let beside = group.beside.as_ref().filter(|_| scenario.name != harness::BOUND);
        let mut hogs = match beside {
            Some(beside) => Hogs::anywhere(&beside.program, beside.hogs)?,
            None => Hogs::none(),
        };
        let mut migrations = (turn == Turn::WarmUp).then(|| Migrations::open().ok()).flatten();
        let busy = busy_seconds();
        let exited = child::run_counted(&command, &self.signals, &self.scratch, limit)?;
        let busy = busy_seconds() - busy;
        hogs.check()?;
        drop(hogs);
        let process =
            exited.as_ref().map(|e| Process::new(e.seconds, &e.used, busy)).unwrap_or_default();
        let printed = exited.as_ref().map(|e| e.printed);
        let mut outcome = match exited.map(|e| e.ended) {
            Some(Ended::Well(output)) => read(&output, group, process),
            Some(Ended::Badly(why)) => Outcome::Failed(why),
            Some(Ended::TooSlow) | None => Outcome::Timeout,
        };
        if let (Outcome::Done(sample), Some(all), None) = (&mut outcome, &group.beside, beside) {
            sample.value *= all.factor;
        }
        let ran = self.ran(outcome, watched);
        let counted = (turn == Turn::WarmUp).then(|| Counted {
            seconds: process.seconds,
            cpu_seconds: process.used.cpu_seconds(),
            migrations: migrations.as_mut().and_then(|m| m.read().ok()),
            waits: ran.statistics.as_ref().and_then(waits),
        });
        Ok(Ran { counted, printed, ..ran })
    }
}

/// Return the time after which a way that may hang is killed, if the program natively takes
/// `seconds`.
fn patience(seconds: f64) -> Duration {
    Duration::from_secs_f64(10.0 * seconds + 5.0)
}

/// The complete results, and the signal that interrupted the measurement, if any.
type Complete = (Vec<harness::Measured>, Vec<Watched>, Option<i32>);

/// Turn the error `Interrupted` into `Ok(Err(signal))`. Other errors remain errors.
fn interrupted<T>(result: anyhow::Result<T>) -> anyhow::Result<Result<T, i32>> {
    result.map(Ok).or_else(|error| match error.downcast_ref::<Interrupted>() {
        Some(interrupted) => Ok(Err(interrupted.0)),
        None => Err(error),
    })
}

/// Take a sample from the output of a run that succeeded. Its value is a field of the last line,
/// which is JSON, or for `WALL` the time of the process.
fn read(output: &str, group: &Group, process: Process) -> Outcome {
    if let Some(why) = group.check.as_ref().and_then(|check| check(output)) {
        return Outcome::Failed(why);
    }
    let field = group.metric.field;
    if field == WALL {
        return Outcome::Done(Sample { value: process.seconds, output: Value::Null, process });
    }
    let line = output.lines().last().unwrap_or_default();
    match serde_json::from_str::<Value>(line) {
        Ok(output) => match output[field].as_f64() {
            Some(value) => Outcome::Done(Sample { value, output, process }),
            None => Outcome::Failed(format!("its output has no {field}: {line}")),
        },
        Err(_) => Outcome::Failed(format!("its output is not JSON: {line}")),
    }
}

/// Return the path of the program `name` in PATH.
fn in_path(name: &str) -> Option<PathBuf> {
    os::program::find(name.as_ref(), std::env::var_os("PATH").as_deref()).ok()
}

/// Return the numbers of CPUs of --cpus, by default the number of all CPUs. Fails if one is too
/// large.
fn numbers_of_cpus(asked: &[u32], session: &Session) -> anyhow::Result<Vec<u32>> {
    let all = session.cpus();
    if let Some(more) = asked.iter().find(|n| **n > all) {
        anyhow::bail!("--cpus {more}: there are {all}");
    }
    Ok(if asked.is_empty() { vec![all] } else { asked.to_vec() })
}

/// Append the number of CPUs to a workload's name, if --cpus was given.
fn with_cpus(name: &str, asked: &[u32], cpus: u32) -> String {
    let several = if cpus == 1 { "CPU" } else { "CPUs" };
    if asked.is_empty() { name.into() } else { format!("{name}, {cpus} {several}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::Metric;

    /// Create a session for tests that start programs.
    pub fn session() -> Session {
        Session {
            machine: Machine::look(),
            scratch: Scratch::create().expect("a folder"),
            signals: Signals::block(),
            lissom: "lissom".into(),
        }
    }

    /// Return the command that runs a shell script.
    pub fn shell(script: &str) -> Vec<OsString> {
        words!["sh", "-c", script]
    }

    #[test]
    fn results_are_read_from_the_last_line() {
        let group = Group::of(Metric::ratio("seconds", "s"));
        let value = |text| match read(text, &group, Process::default()) {
            Outcome::Done(sample) => Ok(sample.value),
            Outcome::Failed(why) => Err(why),
            Outcome::Timeout => Err(String::new()),
        };
        assert_eq!(value("a warning\n{\"seconds\": 1.5}\n"), Ok(1.5));
        assert!(value("{\"second\": 1.5}").is_err_and(|e| e.contains("no seconds")));
        assert!(value("").is_err());
    }
}
