//! `lissom bench smt`: applications in pairs, with each policy for idle CPUs.

mod application;
mod catalogue;
mod play;
mod programs;
mod report;
mod servers;
mod show;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use ui::output::Json;

use self::application::{Copy, next_amount};
use self::catalogue::{ABSENT, APPLICATIONS, Application, FIGURE_2, QUICK, SLOW, Setting};
use self::play::Play;
use self::report::{ALONE, LeftOut, Measured, NEIGHBOUR, Options, Pair, Report, SCENES, Scene};
use super::child::Interrupted;
use super::counters::Process;
use super::energy::Energy;
use super::harness::{self, Compare, Group, Metric, Outcome, Ran, Sample, Scenario, Turn};
use super::output::Outputs;
use super::progress::Progress;
use super::workload::{self, WORK};
use super::{Session, ml};
use runtime::options::{Idle, Share, Switch};

/// Measure the policies of `run --idle` with applications in pairs
///
/// Each application runs natively and under lissom with each policy (sleep, poll,
/// haltpoll), in two pairs, and alone, natively:
///
///   mixed  beside matrix multiplication with one thread per CPU, which runs in the
///          same way
///   same   beside a second copy of itself
///
/// Each run has the same work. Reports throughput of both programs, context
/// switches and CPU time of the application with its servers, and the power of the
/// processors if RAPL is readable.
///
///   dedup, volrend  programs written from PARSEC and SPLASH-2
///   apache     a page of 4 KiB, requested by ApacheBench
///   clamav     clamd scans random files
///   dbench     file operations (FileServer)
///   lighttpd   watermarks on a photo, by GraphicsMagick
///   ffmpeg     transcoding to H.264 (MediaTomb)
///   mysql      MariaDB, with SysBench's OLTP
///   pgsql      PostgreSQL, with pgbench's TPC-B
///   redis      half reads, half writes (SSDB)
///   xgboost    training, in Python
///   terasort, pagerank, kmeans
///              Spark in local mode, in Python; only if named: each run takes
///              seconds to start
///
/// Applications that are not installed are left out; the report names them.
#[derive(Args)]
#[command(verbatim_doc_comment, after_long_help = EXIT_CODES)]
pub struct SmtArgs {
    /// Applications to measure [default: all except Spark's; with --quick dedup, volrend, dbench,
    /// ffmpeg, redis]
    #[arg(value_name = "APPLICATION",
        value_parser = PossibleValuesParser::new(APPLICATIONS.iter().map(|a| a.name)))]
    applications: Vec<String>,

    /// Pairs to measure [default: both; with --quick `same` only for dedup and volrend]
    #[arg(long = "pair", value_enum, value_name = "LIST", value_delimiter = ',')]
    pairs: Vec<Pair>,

    /// Threads of a computing program, and of a client [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = super::thread_count())]
    threads: Option<u32>,

    /// Connections to a server [default: 4 per CPU]
    #[arg(long, value_name = "N", value_parser = super::thread_count())]
    clients: Option<u32>,

    /// How to switch between threads under lissom
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    switch: Switch,

    /// Whether programs of a pair share the CPUs, as with `run --share`
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    share: Share,

    /// Rounds; each runs every column once. A warm-up round with a quarter of the work comes first
    /// and does not count [default: 3; with --quick 1]
    #[arg(long, visible_alias = "runs", value_name = "N", value_parser = super::rounds())]
    rounds: Option<usize>,

    /// Duration of a run alone. In pairs it takes at least twice as long [default: 500ms;
    /// with --quick 200ms]
    #[arg(long = "duration", visible_alias = "seconds", value_name = "TIME",
          value_parser = super::limit())]
    seconds: Option<f64>,

    /// Time after which a run is killed
    #[arg(long, visible_alias = "limit", value_name = "TIME", default_value = "30s",
        value_parser = super::limit())]
    timeout: f64,

    /// Measure fewer applications in one round, in at most a minute and a half
    #[arg(long)]
    quick: bool,

    /// Python with XGBoost and PySpark [default: target/venv/bin/python3 if it exists, otherwise
    /// python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,

    #[command(flatten)]
    json: Json,

    /// Write the table as Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

const EXIT_CODES: &str = "\
The benchmark takes 15 minutes; --quick or names of applications shorten it.
To install all on Debian: apt-get install apache2-bin apache2-utils
clamav-daemon clamdscan dbench ffmpeg graphicsmagick lighttpd mariadb-server
postgresql redis-server sysbench; pip install xgboost-cpu scikit-learn (`make
bench`); for Spark also default-jre-headless, and pip install numpy pyspark.

Exit code: 0 if everything ran, 1 if something failed or was too slow, 2 if
options are wrong. Ctrl-C ends the benchmark and shows the complete part.";

impl SmtArgs {
    fn options(&self, cpus: u32) -> Options {
        Options {
            cpus,
            threads: self.threads.unwrap_or(cpus),
            clients: self.clients.unwrap_or(4 * cpus),
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 3 }),
            seconds: self.seconds.unwrap_or(if self.quick { 0.2 } else { 0.5 }),
            timeout: self.timeout,
            switch: self.switch.name(),
            share: self.share.name(),
        }
    }

    fn wants(&self, name: &str) -> bool {
        match (self.applications.is_empty(), self.quick) {
            (true, true) => QUICK.contains(&name),
            (true, false) => !SLOW.contains(&name),
            (false, _) => self.applications.iter().any(|a| a == name),
        }
    }

    fn pairs(&self, name: &str) -> Vec<Pair> {
        match (self.pairs.is_empty(), self.quick && !FIGURE_2.contains(&name)) {
            (true, true) => vec![Pair::Mixed],
            (true, false) => vec![Pair::Mixed, Pair::Same],
            (false, _) => self.pairs.clone(),
        }
    }
}

pub fn measure_and_report(args: &SmtArgs) -> anyhow::Result<i32> {
    let outputs = Outputs::open(&args.json, args.markdown.as_deref())?;
    let time = super::time();
    let session = Session::begin()?;
    let mut notes = Vec::new();
    let energy =
        Energy::open().map_err(|why| notes.push(format!("Energy is not measured: {why}."))).ok();
    if args.applications.is_empty() {
        let list: Vec<String> = ABSENT.iter().map(|(n, why)| format!("{n} ({why})")).collect();
        notes.push(format!("Not measured: {}.", list.join(", ")));
    }
    let bench = Bench {
        options: args.options(session.cpus()),
        computes: matmul(&session)?,
        energy,
        session,
    };
    let (mut groups, mut left_out, mut amounts) = (Vec::new(), Vec::new(), serde_json::Map::new());
    let result = bench.measure(args, &mut groups, &mut left_out);
    let interrupted = super::interrupted(result)?.err();
    if groups.is_empty() && interrupted.is_none() {
        let list: Vec<String> =
            left_out.iter().map(|l: &LeftOut| format!("{}: {}", l.application, l.why)).collect();
        bail!("nothing to measure: {}", list.join("; "));
    }
    for group in &groups {
        let group: &Measured = group;
        amounts.insert(group.measured.workload.clone(), json!(group.amount));
    }
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        benchmark: "smt",
        time,
        parameters: json!({
            "rounds": bench.options.rounds,
            "compiler": workload::compiler_version(&bench.session),
            "amounts": amounts,
        }),
        machine: bench.session.machine,
        options: bench.options,
        groups,
        left_out,
        notes,
        interrupted,
    };
    outputs.write(&report, || show::markdown(&report), || show::text(&report))?;
    Ok(report.exit_code())
}

/// Return the command of the program that computes beside an application.
fn matmul(session: &Session) -> anyhow::Result<Vec<OsString>> {
    let program = workload::compile(session, WORK)?;
    let threads = session.cpus().to_string();
    Ok(vec![program.into(), "matmul".into(), "--threads".into(), threads.into()])
}

struct Bench {
    session: Session,
    options: Options,
    computes: Vec<OsString>,
    energy: Option<Energy>,
}

/// An application that is ready to run.
struct Ready {
    application: &'static Application,
    copies: Vec<Copy>,
    amount: u64,
    scenes: Vec<&'static Scene>,
}

/// Maximum number of runs that calibrate the amount of work.
const PILOTS: usize = 6;

impl Bench {
    /// Measure the applications that `args` names. `groups` receives the results, and keeps
    /// complete ones after an error. `left_out` receives applications that cannot run.
    fn measure(
        &self,
        args: &SmtArgs,
        groups: &mut Vec<Measured>,
        left_out: &mut Vec<LeftOut>,
    ) -> anyhow::Result<()> {
        let wanted: Vec<_> = APPLICATIONS.iter().filter(|a| args.wants(a.name)).collect();
        let rounds = self.options.rounds;
        let turns: usize =
            wanted.iter().map(|a| scenes(&args.pairs(a.name)).len() * (rounds + 1)).sum();
        let mut progress = Progress::new(turns);
        let setting = Setting {
            session: &self.session,
            threads: self.options.threads,
            clients: self.options.clients,
            python: args.python.clone().unwrap_or_else(ml::default_python),
        };
        for application in wanted {
            let name = application.name;
            let mut leave_out = |why: String, is_broken| {
                left_out.push(LeftOut { application: name, why, is_broken });
            };
            let scenes = scenes(&args.pairs(name));
            progress.print(&format!("{name}: preparation"));
            let copies = match prepare(application, &setting, &scenes) {
                Ok(copies) => copies,
                Err(error) if error.is::<Interrupted>() => return Err(error),
                Err(error) => {
                    leave_out(format!("{error:#}"), false);
                    progress.skip(scenes.len() * (rounds + 1));
                    continue;
                }
            };
            let mut ready = Ready { application, copies, amount: 1, scenes };
            if let Err(why) = self.calibrate(&mut ready)? {
                leave_out(why, true);
                progress.skip(ready.scenes.len() * (rounds + 1));
                continue;
            }
            let group = self.group(&ready);
            let measured = harness::measure(&group, rounds, |scenario, turn, _| {
                progress.show(&group, scenario, turn, rounds);
                self.run(&ready, scenario.name, turn)
            })?;
            groups.push(Measured::new(application.paper, ready.amount, measured));
        }
        Ok(())
    }

    /// Set the amount so that a run takes about --seconds. The inner error says why the application
    /// does not run.
    fn calibrate(&self, ready: &mut Ready) -> anyhow::Result<Result<(), String>> {
        let load = &ready.copies[0].load;
        if load.is_timed() {
            ready.amount = self.options.seconds.ceil() as u64;
            return Ok(Ok(()));
        }
        ready.amount = load.first;
        for _ in 0..PILOTS {
            let output = match self.play(ready, ready.amount, &SCENES[0], false)? {
                play::Outcome::Done(output) => output,
                play::Outcome::Failed(why) => return Ok(Err(why)),
                play::Outcome::Timeout => {
                    return Ok(Err("it did not end within the time limit".into()));
                }
            };
            let seconds = output["seconds"].as_f64().unwrap_or_default();
            let (again, amount) = next_amount(ready.amount, seconds, self.options.seconds);
            ready.amount = amount;
            if !again {
                break;
            }
        }
        Ok(Ok(()))
    }

    fn group(&self, ready: &Ready) -> Group {
        let scenario = |scene: &&'static Scene| Scenario {
            name: scene.name,
            switch: scene.policy.map(|_| self.options.switch),
            around: self.around(scene, false),
            command: if scene.name == NEIGHBOUR {
                self.computes.clone()
            } else {
                (ready.copies[0].load.command)(ready.amount)
            },
            effort: None,
        };
        let metric =
            Metric { field: "throughput", unit: ready.application.unit, compare: Compare::Ratio };
        Group {
            workload: ready.application.name.into(),
            threads: self.options.threads,
            scenarios: ready.scenes.iter().map(scenario).collect(),
            ..Group::of(metric)
        }
    }

    /// Return the `lissom run` in front of a command, empty for a native scene. The flag makes it
    /// write statistics.
    fn around(&self, scene: &Scene, told: bool) -> Vec<OsString> {
        let Some(policy) = scene.policy else { return vec![] };
        let idle = format!("--idle={}", Idle::name(policy));
        let share = format!("--share={}", self.options.share);
        self.session.under_lissom(self.options.switch, &[&idle, &share], told)
    }

    fn play(
        &self,
        ready: &Ready,
        amount: u64,
        scene: &Scene,
        is_told: bool,
    ) -> anyhow::Result<play::Outcome> {
        let number = if scene.pair == Some(Pair::Same) { 2 } else { 1 };
        let copies: Vec<&Copy> = ready.copies.iter().take(number).collect();
        let play = Play {
            copies: &copies,
            computes: (scene.pair == Some(Pair::Mixed)).then_some(&self.computes[..]),
            around: &|told| self.around(scene, told),
            is_told,
            amount,
            limit: Duration::from_secs_f64(self.options.timeout),
            energy: self.energy.as_ref(),
        };
        play.run(&self.session)
    }

    fn run(&self, ready: &Ready, name: &str, turn: Turn) -> anyhow::Result<Ran> {
        // `group` makes each scenario from a scene.
        let scene = Scene::named(name).expect("a scene");
        // The warm-up loads files into memory. It also takes the statistics, which show whether
        // lissom manages the application: here they do not disturb the measurement.
        let is_warm_up = turn == Turn::WarmUp;
        let is_told = is_warm_up && scene.policy.is_some();
        let amount = match is_warm_up && !ready.copies[0].load.is_timed() {
            true => ready.amount.div_ceil(4),
            false => ready.amount,
        };
        let outcome = if scene.name == NEIGHBOUR {
            self.neighbour()?
        } else {
            match self.play(ready, amount, scene, is_told)? {
                play::Outcome::Done(output) => sample(output),
                play::Outcome::Failed(why) => Outcome::Failed(why),
                play::Outcome::Timeout => Outcome::Timeout,
            }
        };
        let told = is_told.then(|| self.session.statistics()).flatten();
        let native_because = told.as_ref().and_then(super::native_because);
        Ok(Ran { outcome, statistics: told, native_because, counted: None })
    }

    /// Measure matrix multiplication alone.
    fn neighbour(&self) -> anyhow::Result<Outcome> {
        let mut command = self.computes.clone();
        command.extend(["--seconds".into(), self.options.seconds.to_string().into()]);
        let text = self.session.output(&command)?;
        let said: Value = serde_json::from_str(text.trim_end()).unwrap_or_default();
        Ok(match (said["rounds"].as_f64(), said["seconds"].as_f64()) {
            (Some(rounds), Some(seconds)) => sample(json!({ "throughput": rounds / seconds })),
            _ => Outcome::Failed(format!("its output has no rounds: {text}")),
        })
    }
}

fn sample(output: Value) -> Outcome {
    match output["throughput"].as_f64() {
        Some(value) => Outcome::Done(Sample { value, output, process: Process::default() }),
        None => Outcome::Failed("it did no work".into()),
    }
}

/// Return the scenes of `pairs` and their bases, in the order of the table.
fn scenes(pairs: &[Pair]) -> Vec<&'static Scene> {
    let is_wanted = |scene: &&Scene| match (scene.name, scene.pair) {
        (ALONE, _) => true,
        (NEIGHBOUR, _) => pairs.contains(&Pair::Mixed),
        (_, pair) => pair.is_some_and(|p| pairs.contains(&p)),
    };
    SCENES.iter().filter(is_wanted).collect()
}

fn prepare(
    application: &Application,
    setting: &Setting,
    scenes: &[&Scene],
) -> anyhow::Result<Vec<Copy>> {
    let has_copy = scenes.iter().any(|s| s.pair == Some(Pair::Same));
    (0..1 + usize::from(has_copy)).map(|copy| (application.prepare)(setting, copy)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: SmtArgs,
    }

    fn args(line: &str) -> SmtArgs {
        Line::parse_from(std::iter::once("smt").chain(line.split_whitespace())).args
    }

    #[test]
    fn what_is_measured() {
        let count = |line: &str| {
            let args = args(line);
            APPLICATIONS.iter().filter(|a| args.wants(a.name)).count()
        };
        assert_eq!(count(""), APPLICATIONS.len() - SLOW.len());
        assert_eq!((count("--quick"), count("kmeans redis")), (QUICK.len(), 2));
        assert_eq!(args("").pairs("redis").len(), 2);
        assert_eq!(args("--quick").pairs("redis"), [Pair::Mixed]);
        assert_eq!(args("--quick").pairs("dedup").len(), 2);
        assert_eq!(args("--quick --pair same").pairs("redis"), [Pair::Same]);
    }

    #[test]
    fn pairs_have_their_bases() {
        let names = |pairs: &[Pair]| scenes(pairs).iter().map(|s| s.name).collect::<Vec<_>>();
        assert_eq!(names(&[Pair::Mixed, Pair::Same]).len(), SCENES.len());
        assert_eq!(
            names(&[Pair::Same]),
            ["alone", "same native", "same sleep", "same poll", "same haltpoll"]
        );
        assert_eq!(names(&[Pair::Mixed])[..2], ["alone", "neighbour"]);
    }
}
