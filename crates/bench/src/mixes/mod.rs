//! `lissom bench mixes`: pairs of programs that share the CPUs. One of them is malleable: it can
//! use the CPUs that the other leaves idle.

mod pairs;
mod play;
mod profile;
pub mod programs;
mod report;
mod show;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use ui::output::Json;

use self::pairs::Asked;
pub use self::play::busy_seconds;
use self::play::{Manager, Outcome, Part, Run, play, with_socket};
use self::programs::{Name, Program};
use self::report::Scenario::{self, Capped};
use self::report::{Alone, Cell, Mix, Options, Report, Round};
use super::child::{self, Ended};
use super::harness::State;
use super::output::Outputs;
use super::{Progress, Session, workload};
use os::process;
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
#[derive(Clone, Copy, PartialEq, Debug, ValueEnum)]
enum WaitPolicy {
    /// Block (OMP_WAIT_POLICY=passive)
    Passive,
    /// Spin first, for as long as the library decides
    Default,
}

impl WaitPolicy {
    fn name(self) -> &'static str {
        match self {
            WaitPolicy::Passive => "passive",
            WaitPolicy::Default => "default",
        }
    }
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
            wait_policy: self.wait_policy.name(),
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
    let mut allowed = process::allowed_cpus();
    if let Some(wanted) = cpus {
        if wanted as usize > allowed.len() {
            bail!("--cpus {wanted}: there are {}", allowed.len());
        }
        allowed.truncate(wanted as usize);
        process::set_affinity(&process::cpu_set(&allowed))?;
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
    let mut programs: Vec<Program> = Vec::new();
    let mut pairs = pairs::chosen(&args.mixes, args.quick);
    for name in pairs.iter().flat_map(|(a, b)| [*a, *b]).collect::<Vec<_>>() {
        if programs.iter().any(|p| p.name == name)
            || !pairs.iter().any(|(a, b)| *a == name || *b == name)
        {
            continue;
        }
        match Program::prepare(name, &session, options.scale, args.python.as_ref()) {
            Ok(program) => programs.push(program),
            Err(error) => {
                notes.push(format!("{} is left out: {error:#}", name.text()));
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
    let (mut mixes, mut profile, mut scaling) = (Vec::new(), Vec::new(), Vec::new());
    let result = if only_mixes {
        bench.measure(&pairs, &mut mixes)
    } else {
        bench.alone(args.profile.then_some(&mut profile), args.scaling.then_some(&mut scaling))
    };
    let interrupted = super::interrupted(result)?.err();
    mixes.iter_mut().for_each(|mix| mix.reckon(bench.options.cpus));
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        benchmark: "mixes",
        time,
        parameters: parameters(&bench),
        summary: report::summaries(&mixes, &bench.scenarios),
        machine: bench.session.machine,
        options: bench.options,
        mixes,
        profile,
        scaling,
        notes: bench.notes,
        interrupted,
    };
    outputs.write(&report, || show::markdown(&report), || show::text(&report))?;
    Ok(report.exit_code())
}

fn parameters(bench: &Bench) -> Value {
    let command = |p: &Program| {
        let words = p.command(bench.options.cpus);
        words.iter().map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let commands: serde_json::Map<String, Value> =
        bench.programs.iter().map(|p| (p.name.text().into(), json!(command(p)))).collect();
    json!({ "compiler": workload::compiler_version(&bench.session), "commands": commands })
}

struct Bench {
    session: Session,
    cpus: Vec<usize>,
    options: Options,
    scenarios: Vec<Scenario>,
    programs: Vec<Program>,
    notes: Vec<String>,
}

/// The outcome of one scenario in one round: its runs, or the state and the error.
type Played = Result<Round, (State, Option<String>)>;

impl Bench {
    fn program(&self, name: Name) -> &Program {
        // `measure_and_report` prepared the programs of all pairs.
        self.programs.iter().find(|p| p.name == name).expect("a program of a pair")
    }

    fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.options.timeout)
    }

    /// Measure all pairs. `mixes` receives the results, and keeps complete rounds after an error.
    fn measure(&mut self, pairs: &[(Name, Name)], mixes: &mut Vec<Mix>) -> anyhow::Result<()> {
        let steps =
            self.programs.len() + pairs.len() * self.options.runs * (1 + self.scenarios.len());
        let mut progress = Progress::new(steps);
        for i in 0..self.programs.len() {
            progress.show_text(&format!("{}: warm-up", self.programs[i].name.text()));
            self.warm_up(i)?;
        }
        for &(a, b) in pairs {
            let cell = |&scenario| Cell {
                scenario,
                state: State::Ok,
                error: None,
                result: None,
                rounds: vec![],
            };
            mixes.push(Mix {
                rigid: a.text(),
                malleable: b.text(),
                error: None,
                alone: None,
                cells: self.scenarios.iter().map(cell).collect(),
                rounds_alone: vec![],
            });
            let mix = mixes.last_mut().expect("it was just added");
            for round in 1..=self.options.runs {
                let name = mix.name();
                let mut show = |what: &str| {
                    progress.show_text(&format!(
                        "{name}, {what}: round {round} of {}",
                        self.options.runs
                    ));
                };
                show("alone");
                match self.play_alone(a, b)? {
                    Ok(alone) => mix.rounds_alone.push(alone),
                    Err(why) => {
                        mix.error = Some(why);
                        break;
                    }
                }
                for cell in &mut mix.cells {
                    show(&cell.scenario.name());
                    // Do not retry a scenario that failed.
                    if cell.state != State::Ok {
                        continue;
                    }
                    match self.play_scenario(cell.scenario, a, b)? {
                        Ok(round) => cell.rounds.push(round),
                        Err((state, error)) => (cell.state, cell.error) = (state, error),
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
        let name = program.name;
        let mut commands = vec![self.natively(program, self.options.cpus)];
        if name.is_malleable() {
            commands.push(self.under_lissom(program, &self.nobody(), true));
        }
        for command in commands {
            let ended =
                child::run(&command, &self.session.signals, &self.session.scratch, self.limit())?;
            let problem = match ended {
                Ended::Well(output) => program.check(&output),
                Ended::Badly(why) => Some(why),
                Ended::TooSlow => Some(format!("it did not end within {} s", self.options.timeout)),
            };
            if let Some(why) = problem {
                self.notes.push(format!("{}, {}: {why}", name.text(), command[0].display()));
            }
        }
        let told = self.session.statistics();
        if let Some(why) =
            told.as_ref().and_then(super::native_because).filter(|_| name.is_malleable())
        {
            self.notes.push(format!("{} runs natively even under lissom: {why}", name.text()));
        }
        Ok(())
    }

    /// Return the path of a socket on which no manager listens.
    fn nobody(&self) -> PathBuf {
        self.session.scratch.path().join("nobody")
    }

    fn natively(&self, program: &Program, threads: u32) -> Vec<OsString> {
        let mut command: Vec<OsString> = Vec::new();
        if self.options.wait_policy == WaitPolicy::Passive.name() {
            command.extend(["env", "OMP_WAIT_POLICY=passive"].map(OsString::from));
        }
        command.extend(program.command(threads));
        command
    }

    fn under_lissom(&self, program: &Program, socket: &Path, told: bool) -> Vec<OsString> {
        let mut command = with_socket(socket);
        command.extend(self.session.under_lissom(self.options.switch, &[], told));
        command.extend(program.command(self.options.malleable_threads));
        command
    }

    /// Run one program by itself. Returns its complete runs and the fraction of the CPUs that other
    /// processes used, or why there are none.
    fn play_one(
        &self,
        program: &Program,
        command: Vec<OsString>,
    ) -> anyhow::Result<Result<(Vec<Run>, f64), String>> {
        let part = Part { program, command, cpus: None };
        Ok(match play(&self.session, &[part], self.options.completed, self.limit(), None)? {
            Outcome::Done(mut runs, others) => Ok((runs.remove(0), others)),
            Outcome::Failed(why) => Err(why),
            Outcome::Timeout => {
                Err(format!("alone, it did not end within {} s", self.options.timeout))
            }
        })
    }

    fn play_alone(&self, a: Name, b: Name) -> anyhow::Result<Result<Alone, String>> {
        let cpus = self.options.cpus;
        let (a, b) = (self.program(a), self.program(b));
        let commands = [
            (a, self.natively(a, cpus)),
            (b, self.natively(b, cpus)),
            (b, self.under_lissom(b, &self.nobody(), false)),
        ];
        let mut runs = Vec::new();
        let mut most = 0.0f64;
        for (program, command) in commands {
            match self.play_one(program, command)? {
                Ok((done, others)) => {
                    runs.push(done);
                    most = most.max(others);
                }
                Err(why) => return Ok(Err(why)),
            }
        }
        let [rigid, malleable, under_lissom] = runs.try_into().expect("one for each command");
        Ok(Ok(Alone { rigid, malleable, under_lissom, others: most }))
    }

    fn play_scenario(&self, scenario: Scenario, a: Name, b: Name) -> anyhow::Result<Played> {
        let (a, b) = (self.program(a), self.program(b));
        let Options { cpus: all, rigid_threads, malleable_threads, .. } = self.options;
        // The malleable program gets the upper half, as from the manager.
        let (lower, upper) = self.cpus.split_at(self.cpus.len() / 2);
        let is_managed = matches!(scenario, Scenario::Manager | Capped(_));
        let socket = match is_managed {
            true => self.session.scratch.path().join("manager.sock"),
            false => self.nobody(),
        };
        let (rigid, malleable) = match scenario {
            Scenario::Stock => {
                (self.natively(a, lower.len() as u32), self.natively(b, upper.len() as u32))
            }
            Scenario::Oversubscription | Scenario::Native => {
                (self.natively(a, rigid_threads), self.natively(b, malleable_threads))
            }
            Scenario::Lissom | Scenario::Manager | Capped(_) => {
                (self.natively(a, rigid_threads), self.under_lissom(b, &socket, false))
            }
        };
        let pinned = |cpus: &[usize], scenarios: &[Scenario]| {
            scenarios.contains(&scenario).then(|| cpus.to_vec())
        };
        let parts = [
            Part {
                program: a,
                command: rigid,
                cpus: pinned(lower, &[Scenario::Stock, Scenario::Oversubscription]),
            },
            Part { program: b, command: malleable, cpus: pinned(upper, &[Scenario::Stock]) },
        ];
        let mut manager = None;
        if is_managed {
            let mut command: Vec<OsString> =
                vec![self.session.lissom.clone().into(), "manager".into(), "--quiet".into()];
            if let Capped(cap) = scenario {
                command.extend(["--cap".into(), format!("{}={cap}", b.process()).into()]);
            }
            match Manager::start(&self.session, &command, &socket)? {
                Ok(started) => manager = Some(started),
                Err(why) => return Ok(Err((State::Failed, Some(why)))),
            }
        }
        let outcome =
            play(&self.session, &parts, self.options.completed, self.limit(), manager.as_mut())?;
        Ok(match outcome {
            Outcome::Done(mut runs, others) => {
                let malleable = runs.remove(1);
                let manager_cpu = manager.map(Manager::stop).transpose()?;
                let others = (others - manager_cpu.unwrap_or(0.0) / f64::from(all)).max(0.0);
                Ok(Round { rigid: runs.remove(0), malleable, others, manager_cpu })
            }
            Outcome::Failed(why) => Err((State::Failed, Some(why))),
            Outcome::Timeout => Err((State::Timeout, None)),
        })
    }
}
