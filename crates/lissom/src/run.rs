//! `lissom run`: prepare the environment and become the program.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, FromArgMatches as _, ValueEnum, ValueHint};
use ui::exit::{self, Failure};

use os::elf::Kind;
use os::process::{self, Environment};
use os::program::{self, Program};
use os::supervise;
use runtime::abi;
use runtime::options::{Idle, Share, Spin, SpinThreshold, Switch, Team, VisibleCpus};
use runtime::unpack;
use watch::stats::{self, Region};

/// Variables for the spinning of OpenMP threads: of the standard, of GCC and of LLVM.
const WAIT_POLICY: &str = "OMP_WAIT_POLICY";
const GOMP_SPIN: &str = "GOMP_SPINCOUNT";
const KMP_SPIN: &str = "KMP_BLOCKTIME";
/// Variables of OpenMP: the schedule of loops with schedule(runtime), and the size of teams.
const SCHEDULE: &str = "OMP_SCHEDULE";
const NUM_THREADS: &str = "OMP_NUM_THREADS";

/// Run an unmodified program, and the programs that it starts, under lissom
///
/// lissom adds its runtime to LD_PRELOAD, and then becomes the program, which keeps its process ID,
/// exit code and signals. A program that cannot be managed (static, setuid, for another libc or
/// machine) runs natively; --verbose prints the reason.
#[derive(Args)]
#[command(override_usage = "lissom run [OPTIONS] -- <CMD>...
       lissom run [OPTIONS] --print-env[=<FOLDER>]")]
#[command(after_long_help = "\
Exit code: the program's own. 127 if it is not found, 126 if it cannot be
executed, 2 if an option of lissom is wrong.

Examples:
  lissom run -- python3 train.py
  lissom run --stats -- ./solver --threads 64
  env $(lissom run --print-env) ./solver")]
pub struct RunArgs {
    /// How to switch between threads [default: auto]
    #[arg(long, value_enum, env = abi::ENV_SWITCH, hide_env_values = true)]
    pub switch: Option<Switch>,

    /// Detection of threads that busy-wait in loops of the program [default: auto]
    #[arg(long, value_enum, env = abi::ENV_SPIN, hide_env_values = true)]
    pub spin: Option<Spin>,

    /// Time that a waiter spins before another thread runs in its place, 0s to 1ms, or auto, which
    /// adapts to the cost of the program's waits [default: auto]. High values waste CPU time where
    /// many threads wait; low values cause switches for locks that become free in a moment
    #[arg(long, value_name = "TIME|auto", env = abi::ENV_SPIN_THRESHOLD, hide_env_values = true)]
    pub spin_threshold: Option<SpinThreshold>,

    /// Maximum number of threads running at once, 1 to 1024 [default: CPUs available to the
    /// program; follows affinity, cpuset and CPU quota]. A lower number leaves CPUs to other
    /// programs; a higher one has no effect
    #[arg(long, value_name = "N", env = abi::ENV_CPUS, hide_env_values = true,
          value_parser = clap::value_parser!(u32).range(1..=abi::MAX_SLOTS as i64))]
    pub cpus: Option<u32>,

    /// CPUs that the program sees when it chooses its number of threads [default: machine]
    #[arg(long, value_name = "CPUS", value_enum, env = abi::ENV_VISIBLE_CPUS,
          hide_env_values = true)]
    pub visible_cpus: Option<VisibleCpus>,

    /// Policy for an idle CPU [default: haltpoll]. While other programs compete for the
    /// CPUs, every policy releases it at once
    #[arg(long, value_enum, env = abi::ENV_IDLE, hide_env_values = true)]
    pub idle: Option<Idle>,

    /// Whether to share the CPUs with other programs [default: auto]
    #[arg(long, value_enum, env = abi::ENV_SHARE, hide_env_values = true)]
    pub share: Option<Share>,

    /// Limit the threads that work on an OpenMP loop with schedule dynamic or guided [default:
    /// only with --max-threads]. A thread without a CPU waits between chunks until it has one or
    /// the loop ends. Loops with chunks of less than 100 ns become up to 25 % slower. The variable
    /// has the value 0 or 1
    #[arg(long, action = clap::ArgAction::SetTrue, env = abi::ENV_MALLEABLE,
          hide_env_values = true, value_parser = zero_or_one,
          default_value = "0", default_missing_value = "1")]
    pub malleable: bool,

    /// Let all threads of a team take chunks in turns, as natively, also with --max-threads
    #[arg(long)]
    pub no_malleable: bool,

    /// The last of the two options above, or the variable. None: none is given.
    #[arg(skip)]
    pub malleable_loops: Option<bool>,

    /// Size of OpenMP teams [default: program]
    #[arg(long, value_enum, env = abi::ENV_OMP_TEAM, hide_env_values = true)]
    pub omp_team: Option<Team>,

    /// Number of threads of each OpenMP team [default: OpenMP decides]. OMP_NUM_THREADS or
    /// omp_set_num_threads then sets how many of them work on a dynamic or guided loop, until
    /// `lissom manager` sets a target. Each thread has a stack, and takes part in every
    /// barrier. DANGER: a program that depends on the size of teams breaks
    #[arg(long, value_name = "N", env = abi::ENV_MAX_THREADS, hide_env_values = true,
          value_parser = clap::value_parser!(u32).range(1..=abi::MAX_SLOTS as i64))]
    pub max_threads: Option<u32>,

    /// Schedule of OpenMP loops with schedule(runtime): dynamic or guided, and optionally a
    /// chunk size [default: OpenMP decides]. OMP_SCHEDULE takes precedence. Small chunks cost
    /// time; programs that depend on which thread gets which iterations may break
    #[arg(long, value_name = "KIND[,CHUNK]", value_parser = omp_schedule)]
    pub omp_schedule: Option<String>,

    /// Print statistics on standard error when the program has ended, by default as a table.
    /// lissom then stays the program's parent, and forwards signals to it
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "table")]
    pub stats: Option<StatsFormat>,

    /// Write the statistics to this file instead of standard error; implies --stats
    #[arg(long, value_name = "PATH")]
    pub stats_file: Option<PathBuf>,

    /// Print statistics like --stats=json. With FILE, write the JSON document to this file; with
    /// --stats as well, the table follows on standard error
    #[arg(short, long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          default_missing_value = "-")]
    pub json: Option<PathBuf>,

    /// Print decisions and their reasons on standard error. They mix with the program's own
    /// messages
    #[arg(short, long)]
    pub verbose: bool,

    /// Instead of running a program, print the variables that lissom would add to its environment
    /// or change, one NAME=VALUE a line, for launchers of containers and jobs. With FOLDER, the
    /// runtime is not unpacked: LD_PRELOAD names it in this folder, which the program has to see
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true,
          conflicts_with_all = ["stats", "stats_file", "json", "command"])]
    pub print_env: Option<Option<PathBuf>>,

    /// Program and its arguments
    #[arg(value_name = "CMD", required_unless_present = "print_env", trailing_var_arg = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// Text of at most 80 columns
    Table,
    /// One JSON document
    Json,
}

/// Parse the options like `Cli`. `arguments` begins with the verb.
pub fn arguments(arguments: &[OsString]) -> Result<RunArgs, clap::Error> {
    let command = clap::Command::new("run")
        .bin_name("lissom run")
        .display_name("lissom-run")
        .max_term_width(80);
    let mut command = RunArgs::augment_args(command);
    let matches = match command.try_get_matches_from_mut(arguments) {
        Ok(matches) => matches,
        Err(e) => match with_flag(&e, arguments) {
            Some(arguments) => command.try_get_matches_from_mut(arguments)?,
            None => return Err(e),
        },
    };
    let mut args = RunArgs::from_arg_matches(&matches)?;
    let source = |name| matches.value_source(name);
    let position =
        |name| (source(name) == Some(ValueSource::CommandLine)).then(|| matches.index_of(name));
    let is_given = source("malleable") != Some(ValueSource::DefaultValue);
    args.malleable_loops = match position("no_malleable") > position("malleable") {
        true => Some(false),
        false => is_given.then_some(args.malleable),
    };
    Ok(args)
}

/// Older versions took --malleable=0 and =1. Returns the arguments with the flag instead, and
/// prints how to write it. None: the error has another reason.
fn with_flag(error: &clap::Error, arguments: &[OsString]) -> Option<Vec<OsString>> {
    if error.kind() != ErrorKind::TooManyValues {
        return None;
    }
    let old = ["--malleable=0", "--malleable=1"];
    let new = ["--no-malleable", "--malleable"];
    // Options of lissom come first: the first of these is not an argument of the program.
    let at = arguments.iter().position(|argument| old.iter().any(|o| argument == o))?;
    let which = usize::from(arguments[at] == old[1]);
    ui::message!("lissom: {} is a form of older versions: write {}", old[which], new[which]);
    let mut arguments = arguments.to_vec();
    arguments[at] = new[which].into();
    Some(arguments)
}

fn zero_or_one(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("expected 0 or 1".to_string()),
    }
}

fn omp_schedule(text: &str) -> Result<String, String> {
    let (kind, chunk) =
        text.split_once(',').map_or((text, None), |(kind, chunk)| (kind, Some(chunk)));
    let chunk_is_good = chunk.is_none_or(|c| c.parse::<i32>().is_ok_and(|n| n > 0));
    if matches!(kind, "dynamic" | "guided") && chunk_is_good {
        return Ok(text.to_string());
    }
    Err("expected dynamic or guided, optionally a comma and a chunk size from 1".to_string())
}

pub fn run(args: RunArgs) -> anyhow::Result<i32> {
    let mut environment = Environment::inherited();
    let verbose = args.verbose || environment.get(abi::ENV_VERBOSE).is_some_and(is_on);
    let say = |text: &str| {
        if verbose {
            ui::message!("lissom: {text}");
        }
    };

    if verbose {
        for name in environment.names().filter(|name| is_unknown(name)) {
            say(&format!("{} has no meaning: misspelled?", name.to_string_lossy()));
        }
    }
    if args.print_env.is_some() {
        return print_env(&args, environment, verbose);
    }

    let path = program::find(&args.command[0], environment.get("PATH"))
        .map_err(|e| if is_value(&args) { unwanted_value(&args.command[0]) } else { e })?;
    let program = program::inspect(&path);

    // Why this program is not managed. None: it is.
    let mut native = None;
    if let Some(value) = environment.get(abi::ENV_ENABLE).filter(|v| abi::switches_off(v)) {
        native = Some(format!("switched off by LISSOM={}", value.to_string_lossy()));
    } else if args.switch == Some(Switch::Off) {
        remove_runtime(&mut environment);
        native = Some("switched off by --switch=off".to_string());
    } else if let Some(reason) = &program.native {
        native = Some(reason.text.clone());
        if reason.children {
            say("the dynamically linked programs that it starts are managed");
            if let Err(e) = manage(&mut environment, &args, verbose) {
                say(&format!("they are not managed: cannot unpack the runtime: {e}"));
            }
        } else {
            remove_runtime(&mut environment);
        }
    } else {
        match manage(&mut environment, &args, verbose) {
            Ok(runtime) => say(&format!("preloads {}", runtime.display())),
            // This must not prevent the program from running.
            Err(e) => native = Some(format!("cannot unpack the runtime: {e}")),
        }
    }
    if let Some(reason) = &native {
        say(&format!("{} runs natively: {reason}", path.display()));
    }

    if args.stats.is_some() || args.stats_file.is_some() || args.json.is_some() {
        return with_stats(&args, &path, &program, environment, native);
    }
    Err(become_program(&path, &program, &args.command, &environment).into())
}

/// Return whether the missing program is a value of --malleable, which older versions took.
fn is_value(args: &RunArgs) -> bool {
    args.malleable && (args.command[0] == "0" || args.command[0] == "1")
}

fn unwanted_value(value: &OsStr) -> Failure {
    let flag = if value == "0" { "--no-malleable" } else { "--malleable" };
    Failure::wrong_use(format!("--malleable takes no value: write {flag}"))
}

/// Return whether a value of LISSOM_VERBOSE is on. The runtime decides in the same way.
fn is_on(value: &OsStr) -> bool {
    !value.is_empty() && value != "0"
}

/// Return whether a variable looks like one of lissom's, but is none.
fn is_unknown(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"LISSOM_") && !abi::ENV_NAMES.iter().any(|known| name == *known)
}

/// Print the variables that `lissom run` would change. One that it would remove has no value.
fn print_env(args: &RunArgs, before: Environment, verbose: bool) -> anyhow::Result<i32> {
    let mut after = before.clone();
    if before.get(abi::ENV_ENABLE).is_some_and(abi::switches_off) {
        return Ok(0);
    }
    if args.switch == Some(Switch::Off) {
        remove_runtime(&mut after);
    } else {
        let runtime = manage(&mut after, args, verbose).context("cannot unpack the runtime")?;
        // Without a private folder it is in memory, which ends with this process.
        anyhow::ensure!(
            !runtime.starts_with("/proc"),
            "there is no folder for the runtime: set XDG_RUNTIME_DIR or XDG_CACHE_HOME"
        );
    }
    let mut names: Vec<&OsStr> = after.names().chain(before.names()).collect();
    names.sort();
    names.dedup();
    let mut text = Vec::new();
    for name in names.into_iter().filter(|name| after.get(name) != before.get(name)) {
        let value = after.get(name).unwrap_or_default().as_bytes();
        anyhow::ensure!(
            !value.contains(&b'\n'),
            "cannot print {}: its value has a line break; remove it",
            name.display()
        );
        text.extend([name.as_bytes(), b"=", value, b"\n"].concat());
    }
    ui::output::print(&text)?;
    Ok(0)
}

/// Set the variables for the loader and the runtime. Returns the path of the runtime.
fn manage(environment: &mut Environment, args: &RunArgs, verbose: bool) -> io::Result<PathBuf> {
    let runtime = match &args.print_env {
        Some(Some(folder)) => folder.join(unpack::file_name()),
        _ => unpack::unpack()?,
    };
    let mut preload = vec![runtime.clone().into_os_string()];
    preload.extend(others_preloaded(environment));
    environment.set("LD_PRELOAD", preload.join(OsStr::new(":")));

    environment.set(abi::ENV_SWITCH, args.switch.unwrap_or(Switch::Auto).name());
    environment.set(abi::ENV_SPIN, args.spin.unwrap_or(Spin::Auto).name());
    environment.set(
        abi::ENV_SPIN_THRESHOLD,
        args.spin_threshold.unwrap_or(SpinThreshold::Auto).to_string(),
    );
    environment.set(abi::ENV_IDLE, args.idle.unwrap_or(Idle::Haltpoll).name());
    environment.set(abi::ENV_SHARE, args.share.unwrap_or(Share::Auto).name());
    if calm_openmp(environment) {
        environment.set(abi::ENV_OPENMP, "poll");
    }
    set_up_openmp(environment, args);
    if let Some(cpus) = args.cpus {
        environment.set(abi::ENV_CPUS, cpus.to_string());
    }
    if let Some(cpus) = args.visible_cpus {
        environment.set(abi::ENV_VISIBLE_CPUS, cpus.name());
    }
    if verbose {
        environment.set(abi::ENV_VERBOSE, "1");
    }
    // A region of an outer `lissom run --stats` stays in use: this program belongs to its tree.
    Ok(runtime)
}

/// Return the caller's own entries of LD_PRELOAD, without the runtime of an outer `lissom run`.
fn others_preloaded(environment: &Environment) -> Vec<OsString> {
    preloaded(environment).into_iter().filter(|entry| !unpack::is_runtime(entry)).collect()
}

fn preloaded(environment: &Environment) -> Vec<OsString> {
    let list = environment.get("LD_PRELOAD").unwrap_or_default();
    list.as_bytes()
        .split(|b| b" :".contains(b))
        .map(|entry| OsString::from_vec(entry.to_vec()))
        .filter(|entry| !entry.is_empty())
        .collect()
}

/// Remove the runtime of an outer `lissom run` from LD_PRELOAD, and undo its settings of OpenMP.
fn remove_runtime(environment: &mut Environment) {
    let others = others_preloaded(environment);
    if others.len() == preloaded(environment).len() {
        return;
    }
    if others.is_empty() {
        environment.remove("LD_PRELOAD");
    } else {
        environment.set("LD_PRELOAD", others.join(OsStr::new(":")));
    }
    // Only lissom sets LISSOM_OPENMP, together with the other two.
    if environment.get(abi::ENV_OPENMP).is_some() {
        for name in [abi::ENV_OPENMP, GOMP_SPIN, KMP_SPIN] {
            environment.remove(name);
        }
    }
    if environment.get(abi::ENV_MAX_THREADS).is_some() {
        match environment.get(abi::ENV_ACTIVE_THREADS).map(OsStr::to_os_string) {
            Some(wanted) => environment.set(NUM_THREADS, wanted),
            None => environment.remove(NUM_THREADS),
        }
        environment.remove(abi::ENV_MAX_THREADS);
        environment.remove(abi::ENV_ACTIVE_THREADS);
    }
}

/// Prevent OpenMP threads from spinning before they block. They spin even if that keeps the thread
/// they wait for from running. The runtime's idle slots poll instead, which is the purpose of an
/// active wait policy. Returns whether they should: false if the user has decided otherwise.
fn calm_openmp(environment: &mut Environment) -> bool {
    let passive = environment.get(WAIT_POLICY).is_some_and(|p| !p.eq_ignore_ascii_case("active"));
    if passive || [GOMP_SPIN, KMP_SPIN].iter().any(|name| environment.get(name).is_some()) {
        // An outer `lissom run` sets the same variables.
        return environment.get(abi::ENV_OPENMP).is_some();
    }
    environment.set(GOMP_SPIN, "0");
    environment.set(KMP_SPIN, "0");
    true
}

/// Set the variables that OpenMP and the runtime read. With --max-threads, OMP_NUM_THREADS becomes
/// the initial number of active threads.
fn set_up_openmp(environment: &mut Environment, args: &RunArgs) {
    if let Some(malleable) = args.malleable_loops {
        environment.set(abi::ENV_MALLEABLE, if malleable { "1" } else { "0" });
    }
    if let Some(team) = args.omp_team {
        environment.set(abi::ENV_OMP_TEAM, team.name());
    }
    if let Some(schedule) = &args.omp_schedule
        && environment.get(SCHEDULE).is_none()
    {
        environment.set(SCHEDULE, schedule);
    }
    // The number of active threads that an outer `lissom run` has set remains.
    if let Some(most) = args.max_threads
        && environment.get(abi::ENV_ACTIVE_THREADS).is_none()
    {
        let wanted = environment.get(NUM_THREADS).and_then(OsStr::to_str).and_then(first_number);
        if let Some(wanted) = wanted {
            environment.set(abi::ENV_ACTIVE_THREADS, wanted.to_string());
        }
        environment.set(NUM_THREADS, most.to_string());
        environment.set(abi::ENV_MAX_THREADS, most.to_string());
    }
}

/// Parse the first number of a list: OMP_NUM_THREADS has one for each level of nested regions.
fn first_number(list: &str) -> Option<u32> {
    list.split(',').next()?.trim().parse().ok().filter(|&n| n >= 1 && n as usize <= abi::MAX_SLOTS)
}

/// Execute the program. Returns only if that fails.
fn become_program(
    path: &Path,
    program: &Program,
    command: &[OsString],
    environment: &Environment,
) -> Failure {
    let error = process::execve(path, command, environment);
    // Shells run text without #! themselves, so users expect the same of lissom.
    let is_text = || matches!(program::kind(path), Ok(Kind::Text));
    if error.raw_os_error() == Some(libc::ENOEXEC) && program.chain.len() == 2 && is_text() {
        let mut shell: Vec<OsString> = vec!["/bin/sh".into(), path.into()];
        shell.extend(command[1..].iter().cloned());
        let error = process::execve(Path::new("/bin/sh"), &shell, environment);
        return program::cannot_execute(Path::new("/bin/sh"), &error);
    }
    program::cannot_execute(path, &error)
}

fn with_stats(
    args: &RunArgs,
    path: &Path,
    program: &Program,
    mut environment: Environment,
    native: Option<String>,
) -> anyhow::Result<i32> {
    let json_file = args.json.as_deref().filter(|path| *path != Path::new("-"));
    let is_alone = args.json.is_some() && json_file.is_none();
    let is_json = is_alone || args.stats == Some(StatsFormat::Json);
    let has_text = args.stats.is_some() || args.stats_file.is_some() || json_file.is_none();
    // Open the files before the program runs: a wrong path should not show an hour later.
    let mut json_file = json_file.map(|path| create("--json", path)).transpose()?;
    let mut file =
        args.stats_file.as_deref().map(|path| create("--stats-file", path)).transpose()?;
    let region = Region::create();
    match &region {
        Ok(region) => environment.set(abi::ENV_STATS_FD, region.fd().as_raw_fd().to_string()),
        Err(e) => ui::message!("lissom: no statistics: cannot allocate memory for them: {e}"),
    }
    let started = std::time::Instant::now();
    let outcome =
        supervise::supervise(|| become_program(path, program, &args.command, &environment));
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(e) => {
            let message =
                format!("cannot create a process: {e}; raise `ulimit -u` or the cgroup's pids.max");
            return Err(Failure { code: exit::NOT_EXECUTABLE, message }.into());
        }
    };
    if let Ok(region) = &region {
        let report = stats::Report::new(region, native, started.elapsed(), outcome.describe());
        let document = || ui::output::json(&report);
        let mut written = json_file.as_mut().map_or(Ok(()), |f| f.write_all(document().as_bytes()));
        if has_text {
            let text = if is_json { document() } else { report.table() };
            written = written.and(match &mut file {
                Some(file) => file.write_all(text.as_bytes()),
                None => io::stderr().write_all(text.as_bytes()),
            });
        }
        if let Err(e) = written {
            ui::message!("lissom: cannot write the statistics: {e}");
        }
    }
    Ok(outcome.pass_on())
}

/// Create the file of an option.
fn create(option: &str, path: &Path) -> Result<std::fs::File, Failure> {
    std::fs::File::create(path).map_err(|e| {
        let path = path.display();
        Failure::wrong_use(format!("cannot create {option} {path}: {e}; pass a writable path"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads() {
        assert_eq!(first_number("4"), Some(4));
        assert_eq!(first_number(" 3 , 2"), Some(3));
        assert_eq!(first_number("0"), None);
        assert_eq!(first_number(""), None);
        assert_eq!(first_number("99999"), None);
    }

    #[test]
    fn preload_list() {
        let mut environment = Environment::inherited();
        environment.set("LD_PRELOAD", "/x/liblissom-0123.so:/lib/other.so /lib/third.so");
        assert_eq!(others_preloaded(&environment), ["/lib/other.so", "/lib/third.so"]);
        remove_runtime(&mut environment);
        assert_eq!(environment.get("LD_PRELOAD"), Some(OsStr::new("/lib/other.so:/lib/third.so")));
        // A descriptor that this process lacks is another process's runtime.
        environment.set("LD_PRELOAD", "/proc/self/fd/987:/lib/other.so");
        assert_eq!(others_preloaded(&environment), ["/lib/other.so"]);
    }

    #[test]
    fn runtime_removed() {
        let mut environment = Environment::inherited();
        for (name, value) in [
            ("LD_PRELOAD", "/x/liblissom-0123.so"),
            (abi::ENV_OPENMP, "poll"),
            (GOMP_SPIN, "0"),
            (KMP_SPIN, "0"),
            (abi::ENV_MAX_THREADS, "8"),
            (abi::ENV_ACTIVE_THREADS, "3"),
            (NUM_THREADS, "8"),
        ] {
            environment.set(name, value);
        }
        remove_runtime(&mut environment);
        assert_eq!(environment.get(NUM_THREADS), Some(OsStr::new("3")));
        for name in ["LD_PRELOAD", abi::ENV_OPENMP, GOMP_SPIN, KMP_SPIN, abi::ENV_MAX_THREADS] {
            assert_eq!(environment.get(name), None);
        }
    }
}
