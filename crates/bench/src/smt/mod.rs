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
use self::report::{
    ALONE, Applications, LeftOut, Measured, NEIGHBOUR, Options, Pair, SCENES, Scene,
};
use super::background::{failed, judge, outcome};
use super::child::Interrupted;
use super::command::{after, words};
use super::document::Document;
use super::energy::Energy;
use super::harness::{self, Compare, Group, Metric, Ran, Scenario, Turn};
use super::output::Outputs;
use super::progress::Progress;
use super::{Session, beside, workload};
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
    let energy = Energy::open_or_note(&mut notes);
    if args.applications.is_empty() {
        let list: Vec<String> = ABSENT.iter().map(|(n, why)| format!("{n} ({why})")).collect();
        notes.push(format!("Not measured: {}.", list.join(", ")));
    }
    let bench = Bench {
        options: args.options(session.cpus()),
        computes: beside::command(&session, "matmul", session.cpus())?,
        energy,
        session,
    };
    let mut results = Applications { groups: vec![], left_out: vec![] };
    let result = bench.measure(args, &mut results);
    let interrupted = super::interrupted(result)?.err();
    if results.groups.is_empty() && interrupted.is_none() {
        let left_out = results.left_out.iter();
        let list: Vec<String> = left_out.map(|l| format!("{}: {}", l.application, l.why)).collect();
        bail!("nothing to measure: {}", list.join("; "));
    }
    let amount = |group: &Measured| (group.measured.workload.clone(), json!(group.amount));
    let amounts: serde_json::Map<String, Value> = results.groups.iter().map(amount).collect();
    let parameters = json!({
        "rounds": bench.options.rounds,
        "compiler": workload::compiler_version(&bench.session),
        "amounts": amounts,
    });
    let report = Document::of("smt", bench.session.machine, bench.options, results);
    Document { time, parameters, notes, interrupted, ..report }.write(outputs)
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
    /// Measure the applications that `args` names. `results` keeps complete ones after an error.
    fn measure(&self, args: &SmtArgs, results: &mut Applications) -> anyhow::Result<()> {
        let wanted: Vec<_> = APPLICATIONS.iter().filter(|a| args.wants(a.name)).collect();
        let rounds = self.options.rounds;
        let turns = |scenes: &[&Scene]| scenes.len() * (rounds + 1);
        let all = wanted.iter().map(|a| turns(&scenes(&args.pairs(a.name)))).sum();
        let mut progress = Progress::new(all);
        let setting = Setting {
            session: &self.session,
            threads: self.options.threads,
            clients: self.options.clients,
            python: args.python.clone(),
        };
        for application in wanted {
            let name = application.name;
            let scenes = scenes(&args.pairs(name));
            progress.print(&format!("{name}: preparation"));
            let prepared = match prepare(application, &setting, &scenes) {
                Err(error) if error.is::<Interrupted>() => return Err(error),
                Err(error) => Err((format!("{error:#}"), false)),
                Ok(copies) => match judge(self.calibrate(&copies))? {
                    Ok(amount) => Ok((copies, amount)),
                    Err(bad) => Err((bad.to_string(), true)),
                },
            };
            let (copies, amount) = match prepared {
                Ok(ready) => ready,
                Err((why, is_broken)) => {
                    results.left_out.push(LeftOut { application: name, why, is_broken });
                    progress.skip(turns(&scenes));
                    continue;
                }
            };
            let ready = Ready { application, copies, amount, scenes };
            let group = self.group(&ready);
            let measured = harness::measure(&group, rounds, |scenario, turn, _| {
                progress.show(&group, scenario, turn, rounds);
                self.run(&ready, scenario.name, turn)
            })?;
            results.groups.push(Measured::new(application.paper, amount, measured));
        }
        Ok(())
    }

    /// Return the amount with which a run takes about --seconds.
    fn calibrate(&self, copies: &[Copy]) -> anyhow::Result<u64> {
        let load = &copies[0].load;
        if load.is_timed() {
            return Ok(self.options.seconds.ceil() as u64);
        }
        let mut amount = load.first;
        for _ in 0..PILOTS {
            let output = self.play(copies, amount, &SCENES[0], false)?;
            let seconds = output["seconds"].as_f64().unwrap_or_default();
            let (again, next) = next_amount(amount, seconds, self.options.seconds);
            amount = next;
            if !again {
                break;
            }
        }
        Ok(amount)
    }

    fn group(&self, ready: &Ready) -> Group {
        let scenario = |scene: &&'static Scene| {
            let command = match scene.name {
                NEIGHBOUR => self.computes.clone(),
                _ => (ready.copies[0].load.command)(ready.amount),
            };
            let switch = scene.policy.map(|_| self.options.switch);
            let around = self.around(scene, false);
            Scenario { around, ..Scenario::of(scene.name, switch, command) }
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
        copies: &[Copy],
        amount: u64,
        scene: &Scene,
        is_told: bool,
    ) -> anyhow::Result<Value> {
        let number = if scene.pair == Some(Pair::Same) { 2 } else { 1 };
        let play = Play {
            copies: &copies[..number],
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
        let output = match scene.name {
            NEIGHBOUR => self.neighbour(),
            _ => self.play(&ready.copies, amount, scene, is_told),
        };
        Ok(self.session.ran(outcome(output, "throughput")?, is_told))
    }

    /// Measure matrix multiplication alone.
    fn neighbour(&self) -> anyhow::Result<Value> {
        let seconds = words!["--seconds", self.options.seconds.to_string()];
        let text = self.session.output(&after(&self.computes, &seconds))?;
        let said: Value = serde_json::from_str(text.trim_end()).unwrap_or_default();
        match (said["rounds"].as_f64(), said["seconds"].as_f64()) {
            (Some(rounds), Some(seconds)) => Ok(json!({ "throughput": rounds / seconds })),
            _ => Err(failed(format!("its output has no rounds: {text}"))),
        }
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
    use super::super::chosen::tests::parse;
    use super::*;

    fn args(line: &str) -> SmtArgs {
        parse(line).expect("good options")
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
