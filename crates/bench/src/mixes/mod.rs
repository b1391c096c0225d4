//! `lissom bench mixes`: pairs of programs that share the CPUs. One of them is malleable: it can
//! use the CPUs that the other leaves idle.

mod pairs;
mod play;
mod profile;
pub mod programs;
mod report;
mod show;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};
use ui::output::Json;

use self::pairs::{Asked, Pair};
use self::play::{Manager, Part, Run, SOCKET, play};
use self::programs::{is_malleable, prepare, process};
use self::report::Scenario::{self, Capped};
use self::report::{Alone, Mix, Mixes, Options, Round};
use super::background::judge;
use super::child;
use super::command::{after, shown, split, with_variable, words};
use super::document::Document;
use super::harness::State;
use super::output::Outputs;
use super::programs::{Kind, Ready};
use super::{Progress, Session, workload};
use os::process::{allowed_cpus, cpu_set, set_affinity};
use runtime::options::Switch;

/// Measure pairs of programs that share the CPUs, one of them malleable
///
/// A mix is a program N that is not malleable and leaves CPUs idle at times, and
/// a malleable program M that can use them. Both start together, and restart until
/// the slower one has completed three runs. The report shows the speed of each
/// relative to `stock`, and the mean of both: the system throughput (STP), as in
/// the paper of the elasticity manager.
///
/// N:
///
///   blackscholes   one thread reads options, all price them, one writes
///   blastn,        NCBI BLAST+ with a generated database
///   blastp
///   fft3d          FFTW in three dimensions, with single-threaded steps
///   pathfinder     one thread makes a grid, all find paths, one writes
///
/// M:
///
///   particlefilter, srad, leukocyte, heartwall     of Rodinia
///   ep, cg                                         of NPB
///   freqmine, streamcluster                        of PARSEC
///   stencil                                        heat in a cube: guided
///   lightgbm, histgb                               training, in Python
///
/// Programs that are not installed are left out; the report names them. `--mix
/// paper` measures the paper's 24 mixes: about 25 minutes on 2 CPUs with --runs 1.
#[derive(Args)]
#[command(verbatim_doc_comment, after_long_help = super::EXIT_CODES)]
pub struct MixesArgs {
    /// Mixes to measure: N+M, `paper` for the paper's 24, or `all` for each N with each M [default:
    /// the paper's first eight]
    #[arg(long = "mix", value_name = "N+M,...", value_delimiter = ',', value_parser = pairs::parse)]
    mixes: Vec<Asked>,

    /// Ways to share the CPUs
    #[arg(
        long = "scenario",
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "stock,oversubscription,native,lissom,manager"
    )]
    scenarios: Vec<Scenario>,

    /// Add the scenario `manager` with at most this number of CPUs for M [default: none]
    #[arg(
        long = "cap",
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = super::thread_count()
    )]
    caps: Vec<u32>,

    /// Number of CPUs to use [default: all]
    #[arg(long, value_name = "N", value_parser = super::thread_count())]
    cpus: Option<u32>,

    /// Threads of M, except in `stock` [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = super::thread_count())]
    threads: Option<u32>,

    /// Threads of N, except in `stock` [default: one per CPU of its half]
    #[arg(long, value_name = "N", value_parser = super::thread_count())]
    static_threads: Option<u32>,

    /// OpenMP's wait policy in native runs [default: passive, as in the paper]
    #[arg(
        long,
        value_enum,
        value_name = "POLICY",
        default_value = "passive",
        hide_default_value = true
    )]
    wait_policy: WaitPolicy,

    /// How to switch between threads of M under lissom
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    switch: Switch,

    /// Rounds; each runs every scenario once [default: 3; with --quick 1]
    #[arg(long, value_name = "N", value_parser = super::rounds())]
    runs: Option<usize>,

    /// Minimum number of runs that each program completes in a scenario [default: 3; with --quick
    /// 1]
    #[arg(long, value_name = "N", value_parser = super::rounds())]
    completed: Option<usize>,

    /// Time after which a scenario of a mix is abandoned
    #[arg(
        long,
        visible_alias = "limit",
        value_name = "TIME",
        default_value = "120s",
        value_parser = super::limit()
    )]
    timeout: f64,

    /// Amount of work of a run [default: 1; with --quick 0.1]
    #[arg(long, value_name = "FACTOR", value_parser = super::positive)]
    scale: Option<f64>,

    /// Measure two mixes with one round, one run and a tenth of the work, in at most a minute
    #[arg(long)]
    quick: bool,

    /// Instead, show for how long each program alone has which number of runnable threads
    #[arg(long)]
    profile: bool,

    /// Instead, show the time of each program alone with 1 thread up to one per CPU
    #[arg(long)]
    scaling: bool,

    /// Python with LightGBM and scikit-learn [default: target/venv/bin/python3 if it exists,
    /// otherwise python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,

    #[command(flatten)]
    json: Json,

    /// Write the tables as Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// How OpenMP's threads wait.
#[derive(Clone, Copy, PartialEq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitPolicy {
    /// Block (OMP_WAIT_POLICY=passive)
    Passive,
    /// Spin first, for as long as the library decides
    Default,
}

impl MixesArgs {
    /// Return the scenarios of --scenario and --cap, without duplicates.
    fn all_scenarios(&self) -> Vec<Scenario> {
        let mut list = Vec::new();
        for scenario in self.scenarios.iter().copied().chain(self.caps.iter().map(|&n| Capped(n))) {
            if !list.contains(&scenario) {
                list.push(scenario);
            }
        }
        list
    }

    fn options(&self, cpus: u32) -> Options {
        let usual = |quick, otherwise| if self.quick { quick } else { otherwise };
        Options {
            cpus,
            switch: self.switch.name(),
            malleable_threads: self.threads.unwrap_or(cpus),
            rigid_threads: self.static_threads.unwrap_or(cpus / 2),
            wait_policy: self.wait_policy,
            runs: self.runs.unwrap_or(usual(1, 3)),
            completed: self.completed.unwrap_or(usual(1, 3)),
            timeout: self.timeout,
            scale: self.scale.unwrap_or(if self.quick { 0.1 } else { 1.0 }),
        }
    }
}

/// Restrict this process and its children to the first `cpus` of its CPUs, if given. Returns the
/// remaining CPUs. Fails if there are fewer than `cpus`.
fn restrict(cpus: Option<u32>) -> anyhow::Result<Vec<usize>> {
    let mut allowed = allowed_cpus();
    if let Some(wanted) = cpus {
        if wanted as usize > allowed.len() {
            bail!("--cpus {wanted}: there are {}", allowed.len());
        }
        allowed.truncate(wanted as usize);
        set_affinity(&cpu_set(&allowed))?;
    }
    Ok(allowed)
}

pub fn measure_and_report(args: &MixesArgs) -> anyhow::Result<i32> {
    let outputs = Outputs::open(&args.json, args.markdown.as_deref())?;
    let time = super::time();
    let cpus = restrict(args.cpus)?;
    let only_mixes = !args.profile && !args.scaling;
    if only_mixes && cpus.len() < 2 {
        bail!("two programs need at least two CPUs to share");
    }
    let session = Session::begin()?;
    let options = args.options(cpus.len() as u32);
    let mut notes = Vec::new();
    let mut programs: Vec<Ready> = Vec::new();
    let mut pairs = pairs::chosen(&args.mixes, args.quick);
    let names: BTreeSet<&str> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
    for name in names {
        match prepare(name, Kind::None, &session, options.scale, args.python.as_ref()) {
            Ok(program) => programs.push(program),
            Err(error) => {
                notes.push(format!("{name} is left out: {error:#}"));
                pairs.retain(|(a, b)| *a != name && *b != name);
            }
        }
    }
    if pairs.is_empty() {
        bail!("nothing to measure: {}", notes.join("; "));
    }
    // A mix may have been left out because of its other program.
    programs.retain(|p| pairs.iter().any(|(a, b)| *a == p.name || *b == p.name));
    let mut bench =
        Bench { session, cpus, options, scenarios: args.all_scenarios(), programs, notes };
    let mut results = Mixes { mixes: vec![], summary: vec![], profile: vec![], scaling: vec![] };
    let result = if only_mixes {
        bench.measure(&pairs, &mut results.mixes)
    } else {
        bench.alone(
            args.profile.then_some(&mut results.profile),
            args.scaling.then_some(&mut results.scaling),
        )
    };
    let interrupted = super::interrupted(result)?.err();
    results.mixes.iter_mut().for_each(|mix| mix.reckon(bench.options.cpus));
    results.summary = report::summaries(&results.mixes, &bench.scenarios);
    let parameters = parameters(&bench);
    let report = Document::of("mixes", bench.session.machine, bench.options, results);
    Document { time, parameters, notes: bench.notes, interrupted, ..report }.write(outputs)
}

fn parameters(bench: &Bench) -> Value {
    let command = |p: &Ready| (p.name.clone(), json!(shown(&(p.command)(bench.options.cpus))));
    let commands: serde_json::Map<String, Value> = bench.programs.iter().map(command).collect();
    json!({ "compiler": workload::compiler_version(&bench.session), "commands": commands })
}

struct Bench {
    session: Session,
    cpus: Vec<usize>,
    options: Options,
    scenarios: Vec<Scenario>,
    programs: Vec<Ready>,
    notes: Vec<String>,
}

impl Bench {
    fn program(&self, name: &str) -> &Ready {
        // `measure_and_report` prepared the programs of all pairs.
        self.programs.iter().find(|p| p.name == name).expect("a program of a pair")
    }

    fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.options.timeout)
    }

    /// Measure all pairs. `mixes` receives the results, and keeps complete rounds after an error.
    fn measure(&mut self, pairs: &[Pair], mixes: &mut Vec<Mix>) -> anyhow::Result<()> {
        let runs = self.options.runs;
        let steps = self.programs.len() + pairs.len() * runs * (1 + self.scenarios.len());
        let mut progress = Progress::new(steps);
        for i in 0..self.programs.len() {
            progress.show_text(&format!("{}: warm-up", self.programs[i].name));
            self.warm_up(i)?;
        }
        for &pair in pairs {
            mixes.push(Mix::of(pair, &self.scenarios));
            let mix = mixes.last_mut().expect("it was just added");
            let (a, b) = (self.program(pair.0), self.program(pair.1));
            for round in 1..=runs {
                let name = mix.name();
                let mut show = |what: &str| {
                    progress.show_text(&format!("{name}, {what}: round {round} of {runs}"));
                };
                show("alone");
                match judge(self.play_alone(a, b))? {
                    Ok(alone) => mix.rounds_alone.push(alone),
                    Err(bad) => {
                        mix.error = Some(format!("alone, {bad}"));
                        break;
                    }
                }
                for cell in &mut mix.cells {
                    show(&cell.scenario.name());
                    // Do not retry a scenario that failed.
                    if cell.state != State::Ok {
                        continue;
                    }
                    match judge(self.play_scenario(cell.scenario, a, b))? {
                        Ok(round) => cell.rounds.push(round),
                        Err(bad) => (cell.state, cell.error) = bad.state(),
                    }
                }
            }
        }
        Ok(())
    }

    /// Run program `i` once natively and, if it is malleable, once under lissom. This loads its
    /// files into memory, and shows whether lissom manages the program. Problems become notes.
    fn warm_up(&mut self, i: usize) -> anyhow::Result<()> {
        let program = &self.programs[i];
        let name = &program.name;
        let is_malleable = is_malleable(name);
        let mut commands = vec![self.natively(program, self.options.cpus)];
        if is_malleable {
            commands.push(self.under_lissom(program, &self.nobody(), true));
        }
        for command in commands {
            let ended =
                child::run(&command, &self.session.signals, &self.session.scratch, self.limit())?;
            if let Err(bad) = program.check(ended) {
                self.notes.push(format!("{name}, {}: {bad}", command[0].display()));
            }
        }
        let told = self.session.statistics().filter(|_| is_malleable);
        if let Some(why) = told.as_ref().and_then(super::statistics::native_because) {
            self.notes.push(format!("{name} runs natively even under lissom: {why}"));
        }
        Ok(())
    }

    /// Return the path of a socket on which no manager listens.
    fn nobody(&self) -> PathBuf {
        self.session.scratch.path().join("nobody")
    }

    fn natively(&self, program: &Ready, threads: u32) -> Vec<OsString> {
        let policy = match self.options.wait_policy {
            WaitPolicy::Passive => split("env OMP_WAIT_POLICY=passive"),
            WaitPolicy::Default => vec![],
        };
        after(&policy, &(program.command)(threads))
    }

    fn under_lissom(&self, program: &Ready, socket: &Path, told: bool) -> Vec<OsString> {
        let lissom = self.session.under_lissom(self.options.switch, &[], told);
        let command = (program.command)(self.options.malleable_threads);
        [with_variable(SOCKET, socket), lissom, command].concat()
    }

    /// Run one program by itself. Returns its complete runs and the fraction of the CPUs that other
    /// processes used.
    fn play_one(&self, program: &Ready, command: Vec<OsString>) -> anyhow::Result<(Vec<Run>, f64)> {
        let part = Part { program, command, cpus: None };
        let (mut runs, others) =
            play(&self.session, &[part], self.options.completed, self.limit(), None)?;
        Ok((runs.remove(0), others))
    }

    fn play_alone(&self, a: &Ready, b: &Ready) -> anyhow::Result<Alone> {
        let cpus = self.options.cpus;
        let (rigid, of_a) = self.play_one(a, self.natively(a, cpus))?;
        let (malleable, of_b) = self.play_one(b, self.natively(b, cpus))?;
        let managed = self.under_lissom(b, &self.nobody(), false);
        let (under_lissom, of_managed) = self.play_one(b, managed)?;
        Ok(Alone { rigid, malleable, under_lissom, others: of_a.max(of_b).max(of_managed) })
    }

    fn play_scenario(&self, scenario: Scenario, a: &Ready, b: &Ready) -> anyhow::Result<Round> {
        let Options { rigid_threads, malleable_threads, completed, .. } = self.options;
        // The malleable program gets the upper half, as from the manager.
        let (lower, upper) = self.cpus.split_at(self.cpus.len() / 2);
        let is_managed = matches!(scenario, Scenario::Manager | Capped(_));
        let socket = match is_managed {
            true => self.session.scratch.path().join("manager.sock"),
            false => self.nobody(),
        };
        let is_stock = scenario == Scenario::Stock;
        let (few, many) = match is_stock {
            true => (lower.len() as u32, upper.len() as u32),
            false => (rigid_threads, malleable_threads),
        };
        let malleable = match scenario {
            Scenario::Lissom | Scenario::Manager | Capped(_) => {
                self.under_lissom(b, &socket, false)
            }
            _ => self.natively(b, many),
        };
        let is_pinned = is_stock || scenario == Scenario::Oversubscription;
        let parts = [
            Part {
                program: a,
                command: self.natively(a, few),
                cpus: is_pinned.then(|| lower.to_vec()),
            },
            Part { program: b, command: malleable, cpus: is_stock.then(|| upper.to_vec()) },
        ];
        let start = || {
            let mut command = words![self.session.lissom, "manager", "--quiet"];
            if let Capped(cap) = scenario {
                command.extend(words!["--cap", format!("{}={cap}", process(b))]);
            }
            Manager::start(&self.session, &command, &socket)
        };
        let mut manager = is_managed.then(start).transpose()?;
        let (mut runs, others) =
            play(&self.session, &parts, completed, self.limit(), manager.as_mut())?;
        let malleable = runs.remove(1);
        let manager_cpu = manager.map(Manager::stop).transpose()?;
        let others = others - manager_cpu.unwrap_or(0.0) / self.cpus.len() as f64;
        Ok(Round { rigid: runs.remove(0), malleable, others: others.max(0.0), manager_cpu })
    }
}
