//! The command line. One variant of `Verb` per verb; each verb's options are a struct of their own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{
    Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint,
};
use ui::time::Unit;

use crate::{abi, bench, kvm, load, manager, sched, stat, top};

/// Run multithreaded programs fast, also when threads outnumber CPUs
#[derive(Parser)]
#[command(name = "lissom", version, max_term_width = 80)]
#[command(
    after_help = "LISSOM=off in the environment disables lissom for all programs that inherit it."
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand)]
pub enum Verb {
    Run(RunArgs),
    Doctor(DoctorArgs),
    Stat(stat::StatArgs),
    Top(top::TopArgs),
    Bench(Box<bench::BenchArgs>),
    #[command(subcommand)]
    Study(study::Verb),
    Manager(manager::ManagerArgs),
    Kvm(kvm::KvmArgs),
    Sched(sched::SchedArgs),
    Gdb(GdbArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    /// Put load on a server and measure its response times, for `lissom bench server`
    #[command(hide = true)]
    Load(load::LoadArgs),
    /// Write the runtime into a folder, under the name that `lissom run` expects. For packages:
    /// the folder is lib/lissom beside the bin folder
    #[command(hide = true)]
    Unpack {
        folder: PathBuf,
    },
}

/// Run gdb with commands that show application threads
///
/// gdb alone does not show threads that wait in user space, because they have no kernel thread.
/// `lissom threads` lists all threads of a process or a core file, and `lissom bt [TID|all]` shows
/// their frames. The runtime's library must have the same path as when the program ran.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: gdb's own. 127 if it is not installed.

Examples:
  lissom gdb -p $(pidof solver)
  lissom gdb ./solver core -batch -ex 'lissom bt all'
  lissom gdb --script > ~/.lissom.py    # for `source` in ~/.gdbinit")]
pub struct GdbArgs {
    /// Print the commands as a Python script for gdb 12 or newer, instead of running gdb
    #[arg(long, exclusive = true)]
    pub script: bool,

    /// Arguments of gdb: a program and a core file, -p PID, or any of its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<OsString>,
}

/// Run an unmodified program, and the programs that it starts, under lissom
///
/// lissom adds its runtime to LD_PRELOAD, and then becomes the program, which keeps its process ID,
/// exit code and signals. A program that cannot be managed (static, setuid, for another libc or
/// machine) runs natively; --verbose prints the reason.
#[derive(Args)]
#[command(override_usage = "lissom run [OPTIONS] -- <CMD>...
       lissom run [OPTIONS] --print-env")]
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

    /// What to do with threads that busy-wait in loops of the program [default: auto]
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

    /// What to do with an idle CPU [default: haltpoll]. While other programs compete for the
    /// CPUs, every policy releases it at once
    #[arg(long, value_enum, env = abi::ENV_IDLE, hide_env_values = true)]
    pub idle: Option<Idle>,

    /// Whether to share the CPUs with other programs [default: auto]
    #[arg(long, value_enum, env = abi::ENV_SHARE, hide_env_values = true)]
    pub share: Option<Share>,

    /// Whether to limit the threads that work on an OpenMP loop with schedule dynamic or guided
    /// [default: 1 with --max-threads, else 0]. 1: a thread without a CPU waits between chunks
    /// until it has one or the loop ends; loops with chunks of less than 100 ns become up to
    /// 25 % slower. 0: all threads take chunks in turns, as natively
    #[arg(long, value_name = "0|1", env = abi::ENV_MALLEABLE, hide_env_values = true,
          value_parser = clap::value_parser!(u8).range(0..=1))]
    pub malleable: Option<u8>,

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

    /// Print decisions and their reasons on standard error. They mix with the program's own
    /// messages
    #[arg(short, long)]
    pub verbose: bool,

    /// Instead of running a program, print the variables that lissom would add to its environment
    /// or change, one NAME=VALUE a line, for launchers of containers and jobs
    #[arg(long, conflicts_with_all = ["stats", "stats_file", "command"])]
    pub print_env: bool,

    /// Program and its arguments
    #[arg(value_name = "CMD", required_unless_present = "print_env", trailing_var_arg = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Return the command line without hidden verbs, for completions and the manual.
pub fn visible() -> clap::Command {
    let all = Cli::command();
    let verbs: Vec<_> = all.get_subcommands().filter(|v| !v.is_hide_set()).cloned().collect();
    clap::Command::new("lissom")
        .version(env!("CARGO_PKG_VERSION"))
        .about(all.get_about().cloned().unwrap_or_default())
        .after_help(all.get_after_help().cloned().unwrap_or_default())
        .max_term_width(80)
        .subcommand_required(true)
        .subcommands(verbs)
}

/// Parse the options of `lissom run` like `Cli`. `arguments` begins with the verb.
pub fn run_args(arguments: &[OsString]) -> Result<RunArgs, clap::Error> {
    let command = clap::Command::new("run")
        .bin_name("lissom run")
        .display_name("lissom-run")
        .max_term_width(80);
    let matches = RunArgs::augment_args(command).try_get_matches_from(arguments)?;
    RunArgs::from_arg_matches(&matches)
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Switch in user space: the kernel thread of a waiting thread runs another thread.
    /// Pinned threads (--stats prints the reasons) switch as with `kernel`
    Auto,
    /// Same as `auto`
    User,
    /// Switch by a system call, with each thread on its own kernel thread: for programs that
    /// depend on their kernel threads in ways that lissom cannot detect; slower
    Kernel,
    /// Do not preload the runtime
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SpinThreshold {
    Auto,
    Nanoseconds(u32),
}

impl std::str::FromStr for SpinThreshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(SpinThreshold::Auto);
        }
        // The variable, which the runtime reads, has no unit.
        match ui::time::within(text, Some(Unit::Ns), "0s", "1ms") {
            Ok((time, _)) => Ok(SpinThreshold::Nanoseconds(time.subsec_nanos())),
            Err(e) => Err(format!("{e}, or auto")),
        }
    }
}

impl std::fmt::Display for SpinThreshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SpinThreshold::Auto => f.write_str("auto"),
            SpinThreshold::Nanoseconds(ns) => ns.fmt(f),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Idle {
    /// Poll for work for up to 200 us (3 ms in place of OpenMP's own spinning), then release the
    /// CPU; the time grows after short waits, and shrinks after long ones
    Haltpoll,
    /// Release the CPU at once: least CPU time, but each wake-up takes 5 to 50 us
    Sleep,
    /// Poll until there is work: fastest wake-up, but a program that waits for long keeps its
    /// CPUs busy
    Poll,
}

impl Idle {
    pub fn name(self) -> &'static str {
        match self {
            Idle::Haltpoll => "haltpoll",
            Idle::Sleep => "sleep",
            Idle::Poll => "poll",
        }
    }
}

impl Switch {
    pub fn name(self) -> &'static str {
        match self {
            Switch::Auto => "auto",
            Switch::User => "user",
            Switch::Kernel => "kernel",
            Switch::Off => "off",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Spin {
    /// Run another thread instead of one that provably waits for another thread's store, while
    /// threads outnumber CPUs. Costs up to 1 %; changes one byte of such a loop
    Auto,
    /// Detect and count busy-waiting for --stats, but do not act on it. Costs 1 to 10 %: each
    /// running thread is scanned every millisecond
    Observe,
    /// Do not detect busy-waiting
    Off,
}

impl Spin {
    pub fn name(self) -> &'static str {
        match self {
            Spin::Auto => "auto",
            Spin::Observe => "observe",
            Spin::Off => "off",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Share {
    /// Run as many threads at once as there are CPUs, together with this user's other programs
    /// under lissom on the same CPUs. They coordinate through a file in /dev/shm. Beside programs
    /// outside lissom, the number follows the CPU time that those leave
    Auto,
    /// Ignore other programs: together they run more threads than there are CPUs
    Off,
}

impl Share {
    pub fn name(self) -> &'static str {
        match self {
            Share::Auto => "auto",
            Share::Off => "off",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Team {
    /// As many threads as the program requests
    Program,
    /// At most as many threads as the program has CPUs when the parallel region begins: faster
    /// for short regions. DANGER: a program that depends on the number that it requested, such as
    /// llama.cpp, hangs or computes wrong results
    Slots,
}

impl Team {
    pub fn name(self) -> &'static str {
        match self {
            Team::Program => "program",
            Team::Slots => "slots",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// Text of at most 80 columns
    Table,
    /// One JSON document
    Json,
}

/// Check whether lissom would be active on this machine, and for a program
///
/// Each line is ok, limited (lissom works, but with less effect) or off (programs run natively),
/// with the reason and what would change it. Without CMD, only the machine is checked. Nothing is
/// changed, except that the runtime is unpacked. CMD is not started: only its dynamic loader runs,
/// to list its libraries.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0 if lissom would be active, 1 if the program would run natively,
2 if an option of lissom is wrong.")]
pub struct DoctorArgs {
    #[command(flatten)]
    pub json: ui::output::Json,

    /// Program to check
    #[arg(value_name = "CMD", trailing_var_arg = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Print a completion script for a shell, on standard output
#[derive(Args)]
pub struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Print the manual pages in roff, on standard output
#[derive(Args)]
pub struct ManArgs {
    /// Write each page to a file of its own in this folder instead; create the folder if it does
    /// not exist
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}
