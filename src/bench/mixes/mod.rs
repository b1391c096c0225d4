//! `lissom bench mixes`: two programs that share the CPUs, one of which can use what the other
//! leaves.

mod play;
mod profile;
pub mod programs;
mod report;
mod show;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

pub use self::play::busy_seconds;
use self::play::{Manager, Outcome, Part, Run, play, with_socket};
use self::programs::{MALLEABLE, Name, Program, RIGID};
use self::report::{Alone, Cell, Mix, Options, Report, Round, Scenario};
use super::child::{self, Ended};
use super::harness::State;
use super::output::Outputs;
use super::{Progress, Session, workload};
use crate::cli::Switch;
use crate::process;

/// Two programs that share the CPUs, one of which can use what the other leaves
///
/// Each program is started again and again until the one that takes longest has
/// completed three runs. Counted is the system throughput (STP): the sum over the
/// two of the time of a run, natively, alone and with a thread for each CPU,
/// divided by the time beside the other. 2 is as if each had the machine for
/// itself.
///
/// Programs that are not malleable, and leave CPUs idle at times (A):
///
///   blackscholes   reads options by one thread, prices them by all, writes by one
///   pathfinder     makes a grid by one thread, finds ways by all, writes by one
///   fft3d          FFTW in three dimensions, with steps of one thread in between
///   blastn,        NCBI BLAST+ with a made-up database
///   blastp
///
/// Programs that can use as many CPUs as there are, under lissom (B):
///
///   ep             random pairs: OpenMP, dynamic
///   cg             conjugate gradients: guided and static, many short loops
///   particle       a particle filter: dynamic and guided
///   stencil        heat in a cube: guided
///   lightgbm,      training, by Python
///   histgb
///
/// What is not installed is left out, and said.
#[derive(Args)]
#[command(verbatim_doc_comment, after_long_help = super::EXIT_CODES)]
pub struct MixesArgs {
    /// Mixes to measure: names by `+`, or `all` for each A with each B [default: nine of them]
    #[arg(long = "mix", value_name = "A+B,...", value_delimiter = ',', value_parser = mix)]
    mixes: Vec<Asked>,

    /// Ways to share the CPUs
    #[arg(
        long = "scenario",
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "halves,oversubscribed,lissom,manager"
    )]
    scenarios: Vec<Scenario>,

    /// Use so many CPUs only [default: all]
    #[arg(long, value_name = "N", value_parser = super::thread_count())]
    cpus: Option<u32>,

    /// Threads of B under lissom, and in `native` [default: 4 for each CPU]
    #[arg(long, value_name = "N", value_parser = super::thread_count())]
    threads: Option<u32>,

    /// Threads of A beside that B [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = super::thread_count())]
    static_threads: Option<u32>,

    /// How B's threads are switched under lissom
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    switch: Switch,

    /// Rounds; each runs every scenario once [default: 3]
    #[arg(long, value_name = "N", value_parser = super::rounds())]
    runs: Option<usize>,

    /// Runs that each program completes in a scenario, at least [default: 3]
    #[arg(long, value_name = "N", value_parser = super::rounds())]
    completed: Option<usize>,

    /// Seconds after which a scenario of a mix is given up
    #[arg(long, visible_alias = "limit", value_name = "SECONDS", default_value_t = 120.0, value_parser = super::positive)]
    timeout: f64,

    /// How much work a run does [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = super::positive)]
    scale: Option<f64>,

    /// A quick look, of a minute at most: four mixes, one round, one run, a tenth of the work
    #[arg(long)]
    quick: bool,

    /// Instead: for how long each program has how many runnable threads, alone
    #[arg(long)]
    profile: bool,

    /// Instead: how long each program takes with 1 thread up to one for each CPU, alone
    #[arg(long)]
    scaling: bool,

    /// A Python with LightGBM and scikit-learn [default: target/venv/bin/python3 if it is
    /// there, or else python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,

    /// Write all samples to this file, or with `-` to standard output in place of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write the tables as Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// The programs that are not malleable, and those that are, of which each pair is asked for.
#[derive(Clone, PartialEq, Debug)]
enum Asked {
    All,
    One(Name, Name),
}

fn mix(text: &str) -> Result<Asked, String> {
    if text == "all" {
        return Ok(Asked::All);
    }
    let names = text.split_once('+').map(|(a, b)| (Name::parse(a.trim()), Name::parse(b.trim())));
    match names {
        Some((Some(a), Some(b))) if !a.is_malleable() && b.is_malleable() => Ok(Asked::One(a, b)),
        _ => {
            let list =
                |names: &[Name]| names.iter().map(|n| n.text()).collect::<Vec<_>>().join(", ");
            Err(format!(
                "wanted is A+B, A one of {} and B one of {}",
                list(&RIGID),
                list(&MALLEABLE)
            ))
        }
    }
}

const DEFAULT: [(Name, Name); 9] = [
    (Name::Blackscholes, Name::Ep),
    (Name::Blackscholes, Name::Lightgbm),
    (Name::Blackscholes, Name::Cg),
    (Name::Pathfinder, Name::Particle),
    (Name::Pathfinder, Name::Histgb),
    (Name::Fft3d, Name::Stencil),
    (Name::Fft3d, Name::Cg),
    (Name::Blastn, Name::Particle),
    (Name::Blastp, Name::Ep),
];

const QUICK: [(Name, Name); 4] = [
    (Name::Blackscholes, Name::Ep),
    (Name::Pathfinder, Name::Cg),
    (Name::Fft3d, Name::Stencil),
    (Name::Blastn, Name::Particle),
];

impl MixesArgs {
    fn pairs(&self) -> Vec<(Name, Name)> {
        let mut list = Vec::new();
        for asked in &self.mixes {
            match asked {
                Asked::One(a, b) => list.push((*a, *b)),
                Asked::All => list.extend(RIGID.iter().flat_map(|a| MALLEABLE.map(|b| (*a, b)))),
            }
        }
        match (self.mixes.is_empty(), self.quick) {
            (true, true) => QUICK.to_vec(),
            (true, false) => DEFAULT.to_vec(),
            (false, _) => list,
        }
    }

    fn options(&self, cpus: u32) -> Options {
        let usual = |quick, otherwise| if self.quick { quick } else { otherwise };
        Options {
            cpus,
            switch: self.switch.name(),
            malleable_threads: self.threads.unwrap_or(4 * cpus),
            rigid_threads: self.static_threads.unwrap_or(cpus),
            runs: self.runs.unwrap_or(usual(1, 3)),
            completed: self.completed.unwrap_or(usual(1, 3)),
            timeout: self.timeout,
            scale: self.scale.unwrap_or(if self.quick { 0.1 } else { 1.0 }),
        }
    }
}

/// This process, and so all that it starts, keeps to the first of its CPUs.
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
    let outputs = Outputs::open(args.json.as_deref(), args.markdown.as_deref())?;
    let time = super::time();
    let cpus = restrict(args.cpus)?;
    let only_mixes = !args.profile && !args.scaling;
    if only_mixes && cpus.len() < 2 {
        bail!("two programs want two CPUs to share at least");
    }
    let session = Session::begin()?;
    let options = args.options(cpus.len() as u32);
    let mut notes = Vec::new();
    let mut programs: Vec<Program> = Vec::new();
    let mut pairs = args.pairs();
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
        bail!("nothing is left: {}", notes.join("; "));
    }
    // Those of mixes that were left out for the other program are not needed.
    programs.retain(|p| pairs.iter().any(|(a, b)| *a == p.name || *b == p.name));
    let mut bench =
        Bench { session, cpus, options, scenarios: unique(&args.scenarios), programs, notes };
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

fn unique(scenarios: &[Scenario]) -> Vec<Scenario> {
    let mut list = Vec::new();
    for &scenario in scenarios {
        if !list.contains(&scenario) {
            list.push(scenario);
        }
    }
    list
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

/// What came of one scenario in one round.
type Played = Result<Round, (State, Option<String>)>;

impl Bench {
    fn program(&self, name: Name) -> &Program {
        // Those of the pairs were prepared.
        self.programs.iter().find(|p| p.name == name).expect("a program of a pair")
    }

    fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.options.timeout)
    }

    /// Post: `mixes` has what was complete, also after an error.
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
                    show(cell.scenario.name());
                    // One that has failed is not tried again.
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

    /// Each program once, and the malleable one under lissom: files are in memory then, and it is
    /// known whether lissom does something for it.
    fn warm_up(&mut self, i: usize) -> anyhow::Result<()> {
        let program = &self.programs[i];
        let (name, cpus) = (program.name, self.options.cpus);
        let mut commands = vec![program.command(cpus)];
        if name.is_malleable() {
            commands.push(self.under_lissom(program, &self.nobody(), true));
        }
        for command in commands {
            let ended =
                child::run(&command, &self.session.signals, &self.session.scratch, self.limit())?;
            let problem = match ended {
                Ended::Well(output) => program.check(&output),
                Ended::Badly(why) => Some(why),
                Ended::TooSlow => {
                    Some(format!("it does not end within {} s", self.options.timeout))
                }
            };
            if let Some(why) = problem {
                self.notes.push(format!("{}, {}: {why}", name.text(), command[0].display()));
            }
        }
        let told = self.session.statistics();
        if let Some(why) =
            told.as_ref().and_then(super::native_because).filter(|_| name.is_malleable())
        {
            self.notes.push(format!("{} runs natively under lissom: {why}", name.text()));
        }
        Ok(())
    }

    /// A socket where no manager listens.
    fn nobody(&self) -> PathBuf {
        self.session.scratch.path().join("nobody")
    }

    fn under_lissom(&self, program: &Program, socket: &Path, told: bool) -> Vec<OsString> {
        let mut command = with_socket(socket);
        command.extend(self.session.under_lissom(self.options.switch, &[], told));
        command.extend(program.command(self.options.malleable_threads));
        command
    }

    /// Runs of one program by itself, or why there are none.
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
                Err(format!("alone, it does not end within {} s", self.options.timeout))
            }
        })
    }

    fn play_alone(&self, a: Name, b: Name) -> anyhow::Result<Result<Alone, String>> {
        let cpus = self.options.cpus;
        let (a, b) = (self.program(a), self.program(b));
        let commands = [
            (a, a.command(cpus)),
            (b, b.command(cpus)),
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
        let all = self.options.cpus;
        // The upper half is the malleable program's, as the manager does it.
        let (lower, upper) = self.cpus.split_at(self.cpus.len() / 2);
        let socket = match scenario {
            Scenario::Manager => self.session.scratch.path().join("manager.sock"),
            _ => self.nobody(),
        };
        let (rigid, malleable) = match scenario {
            Scenario::Halves => (a.command(lower.len() as u32), b.command(upper.len() as u32)),
            Scenario::Oversubscribed => (a.command(all), b.command(all)),
            Scenario::Native => {
                let options = &self.options;
                (a.command(options.rigid_threads), b.command(options.malleable_threads))
            }
            Scenario::Lissom | Scenario::Manager => {
                (a.command(self.options.rigid_threads), self.under_lissom(b, &socket, false))
            }
        };
        let half = |cpus: &[usize]| (scenario == Scenario::Halves).then(|| cpus.to_vec());
        let parts = [
            Part { program: a, command: rigid, cpus: half(lower) },
            Part { program: b, command: malleable, cpus: half(upper) },
        ];
        let mut manager = None;
        if scenario == Scenario::Manager {
            let command = [self.session.lissom.clone().into(), "manager".into(), "--quiet".into()];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_by_name() {
        assert_eq!(mix("blackscholes+ep"), Ok(Asked::One(Name::Blackscholes, Name::Ep)));
        assert_eq!(mix("all"), Ok(Asked::All));
        for bad in ["", "ep", "ep+cg", "blastn+blastp", "ep+blastn", "blastn+ep+cg"] {
            assert!(mix(bad).is_err(), "{bad}");
        }
    }
}
