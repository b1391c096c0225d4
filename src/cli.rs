//! The command line. One variant of `Verb` per verb; each verb's options are a struct of their own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::{abi, bench, kvm, load, manager, sched, stat, top};

/// Run a program with any number of threads as if it had as many as there are cores
#[derive(Parser)]
#[command(name = "lissom", version, max_term_width = 80)]
#[command(
    after_help = "LISSOM=0 in the environment switches lissom off for everything it would start."
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
    /// Put a server under load and say how soon it answers. For `lissom bench server`
    #[command(hide = true)]
    Load(load::LoadArgs),
    /// Write the runtime into a folder, under the name by which `lissom run` looks for it. For
    /// packages: the folder is lib/lissom beside the bin folder
    #[command(hide = true)]
    Unpack {
        folder: PathBuf,
    },
}

/// Run gdb with commands that show application threads
///
/// A thread that waits in user space has no kernel thread, so gdb alone does not show where it is,
/// in a process or in a core file. `lissom threads` lists all threads of the program, `lissom bt
/// [TID|all]` shows their frames. The runtime's library has to be where it was when the program
/// ran.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: gdb's own. 127 if it is not installed.

Examples:
  lissom gdb -p $(pidof solver)
  lissom gdb ./solver core -batch -ex 'lissom bt all'
  lissom gdb --script > ~/.lissom.py    # for `source` in ~/.gdbinit")]
pub struct GdbArgs {
    /// Print the commands, a script in Python for gdb 12 or newer, instead of running gdb
    #[arg(long, exclusive = true)]
    pub script: bool,

    /// What to give to gdb: a program and a core file, -p PID, or any of its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<OsString>,
}

/// Run an unmodified program, and the programs it starts
///
/// The program keeps its process, its exit code and its signals: lissom puts its runtime into
/// LD_PRELOAD and then becomes the program. A program that cannot be managed (static, setuid, of
/// another libc or machine) runs as if lissom were not there; --verbose says why.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: the program's own. 127 if it is not found, 126 if it cannot be
executed, 2 if lissom's own options are wrong.

Examples:
  lissom run -- python3 train.py
  lissom run --stats -- ./solver --threads 64")]
pub struct RunArgs {
    /// How threads take turns [default: auto]
    #[arg(long, value_enum, env = abi::ENV_SWITCH, hide_env_values = true)]
    pub switch: Option<Switch>,

    /// Threads that wait in a loop of their own instead of a lock [default: auto]
    #[arg(long, value_enum, env = abi::ENV_SPIN, hide_env_values = true)]
    pub spin: Option<Spin>,

    /// Nanoseconds that a waiter spins before another thread runs in its place, 0 to 1000000,
    /// or auto: follows what the program's waits cost [default: auto]. Long ones waste CPU
    /// time wherever many threads wait; short ones let threads change places for a lock
    /// that would have been free in a moment
    #[arg(long, value_name = "NS|auto", env = abi::ENV_SPIN_THRESHOLD, hide_env_values = true)]
    pub spin_threshold: Option<SpinThreshold>,

    /// Most threads that run at a time, 1 to 1024 [default: as many as the program may
    /// use CPUs, by affinity, cpuset and CPU quota, as they are from moment to moment].
    /// A lower number leaves CPUs to others; a higher one has no effect
    #[arg(long, value_name = "N", env = abi::ENV_CPUS, hide_env_values = true,
          value_parser = clap::value_parser!(u32).range(1..=abi::MAX_SLOTS as i64))]
    pub cpus: Option<u32>,

    /// What a CPU does that no thread needs just now [default: haltpoll]. While other programs
    /// want the CPUs each of them gives it up at once
    #[arg(long, value_enum, env = abi::ENV_IDLE, hide_env_values = true)]
    pub idle: Option<Idle>,

    /// Whether to share the CPUs with other programs [default: auto]
    #[arg(long, value_enum, env = abi::ENV_SHARE, hide_env_values = true)]
    pub share: Option<Share>,

    /// OpenMP loops with schedule dynamic or guided [default: 1 with --max-threads, else 0].
    /// 1: threads for which there is no CPU wait between chunks until there is one, or the
    /// loop ends; makes loops with chunks of less than 100 ns up to 25 % slower. 0: they
    /// take chunks in turns, as without lissom
    #[arg(long, value_name = "0|1", env = abi::ENV_MALLEABLE, hide_env_values = true,
          value_parser = clap::value_parser!(u8).range(0..=1))]
    pub malleable: Option<u8>,

    /// Size of OpenMP's teams [default: program]
    #[arg(long, value_enum, env = abi::ENV_OMP_TEAM, hide_env_values = true)]
    pub omp_team: Option<Team>,

    /// Threads of each OpenMP team [default: as OpenMP decides]. OMP_NUM_THREADS, or
    /// omp_set_num_threads, then sets how many of them work on a dynamic or guided loop
    /// until `lissom manager` decides. Each thread has a stack, and takes part in every
    /// barrier. A program that counts on the size of teams breaks
    #[arg(long, value_name = "N", env = abi::ENV_MAX_THREADS, hide_env_values = true,
          value_parser = clap::value_parser!(u32).range(1..=abi::MAX_SLOTS as i64))]
    pub max_threads: Option<u32>,

    /// Schedule of OpenMP loops with schedule(runtime): dynamic or guided, and a chunk
    /// size [default: OMP_SCHEDULE, or what OpenMP decides]. OMP_SCHEDULE comes first. Small
    /// chunks cost time; loops that count on the iterations of a thread may break
    #[arg(long, value_name = "KIND[,CHUNK]", value_parser = omp_schedule)]
    pub omp_schedule: Option<String>,

    /// Print what lissom did when the program has ended, on standard error.
    /// lissom then stays the program's parent, and passes signals on to it
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "table")]
    pub stats: Option<StatsFormat>,

    /// Write the statistics to this file instead of standard error; implies --stats
    #[arg(long, value_name = "PATH")]
    pub stats_file: Option<PathBuf>,

    /// Say on standard error what is decided and why [default: quiet]. Mixes with
    /// the program's own messages
    #[arg(short, long)]
    pub verbose: bool,

    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// The options of `lissom run`, as `Cli` would read them. `arguments` begins with the verb.
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
    Err("dynamic or guided, and perhaps a comma and a number from 1".to_string())
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Switch in user space: a waiting thread's kernel thread runs another thread.
    /// Threads that are tied to theirs (--stats says why) hand over as with `kernel`
    Auto,
    /// The same as `auto`
    User,
    /// Keep each thread on its own kernel thread and hand over by a system call: for
    /// programs that tie state to kernel threads in ways lissom cannot see; gains less
    Kernel,
    /// Nothing is preloaded
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SpinThreshold {
    Auto,
    Nanoseconds(u32),
}

impl std::str::FromStr for SpinThreshold {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(SpinThreshold::Auto);
        }
        let ns = text.parse().ok().filter(|&ns| ns <= 1_000_000);
        ns.map(SpinThreshold::Nanoseconds).ok_or("`auto` or 0 to 1000000 is wanted")
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
    /// Looks for work before it is given up, for up to 200 us (3 ms in place of OpenMP's own
    /// spinning), longer after short waits and shorter after long ones
    Haltpoll,
    /// Given up at once: least CPU time, but a wake-up costs 5 to 50 us each time
    Sleep,
    /// Looks for work until there is some: soonest, but a program that waits for
    /// long keeps its CPUs busy
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
    /// While there are more threads than CPUs, those that are proven to wait for another's
    /// store let others run. Costs up to 1 %; one byte of such a loop is changed
    Auto,
    /// They are only counted, for --stats: every slot's thread is looked at every millisecond,
    /// which costs 1 to 10 %
    Observe,
    /// They are not looked for
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
    /// Programs of the same user on the same CPUs run as many threads at a time, together, as
    /// there are CPUs. They meet in a file in /dev/shm. Beside programs that are not under lissom,
    /// the number follows what those leave
    Auto,
    /// As if it were alone: with others beside it, more threads run than there are CPUs
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
    /// As many threads as the program asks for
    Program,
    /// No more than there are CPUs for the program when the parallel region begins: cheaper
    /// where regions are short. DANGER: a program that counts on the number that it asked for
    /// hangs, or computes wrong results (llama.cpp, for one)
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
    /// For people, at most 80 columns
    Table,
    /// One JSON document
    Json,
}

/// Say what would be active here, what not, why, and what would change it
///
/// Without CMD it looks at this machine; with CMD also at that program. Nothing is changed (only
/// the runtime is unpacked), and CMD is
/// not started: only its dynamic loader is, to list its libraries
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0 if lissom would be active, 1 if the program would run natively,
2 if lissom's own options are wrong.")]
pub struct DoctorArgs {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,

    /// A program to look at
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// Print a completion script for a shell, on standard output
#[derive(Args)]
pub struct CompletionsArgs {
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Print the manual pages, in roff, on standard output
#[derive(Args)]
pub struct ManArgs {
    /// Write each page into a file of its own in this folder instead, which is made if it is not
    /// there
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}
