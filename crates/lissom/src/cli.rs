//! The command line. One variant of `Verb` per verb; each verb's options are a struct of their own.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::{doctor, gdb, run};
#[cfg(feature = "monitor")]
use crate::{manager, record, stat, top};

/// Run multithreaded programs fast, also when threads outnumber CPUs
#[derive(Parser)]
#[command(name = "lissom", version, max_term_width = 80)]
#[command(after_help = "\
LISSOM=off in the environment disables lissom for all programs that inherit it.

Examples:
  lissom doctor -- ./solver
  lissom run --stats -- ./solver --threads 64
  lissom bench -- ./solver --threads 64
  lissom stat --all")]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand)]
pub enum Verb {
    Run(run::RunArgs),
    Doctor(doctor::DoctorArgs),
    #[cfg(feature = "monitor")]
    Stat(stat::StatArgs),
    #[cfg(feature = "monitor")]
    Top(top::TopArgs),
    #[cfg(feature = "monitor")]
    Record(record::RecordArgs),
    #[cfg(feature = "bench")]
    Bench(Box<bench::BenchArgs>),
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Study(study::Verb),
    #[cfg(feature = "monitor")]
    Manager(manager::ManagerArgs),
    #[cfg(feature = "kvm")]
    Kvm(kvm::KvmArgs),
    #[cfg(feature = "sched")]
    Sched(scx::SchedArgs),
    Gdb(gdb::GdbArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[cfg(feature = "bench")]
    /// Put load on a server and measure its response times, for `lissom bench server`
    #[command(hide = true)]
    Load(bench::load::LoadArgs),
    /// Write the runtime into a folder, under the name that `lissom run` expects. For packages:
    /// the folder is lib/lissom beside the bin folder
    #[command(hide = true)]
    Unpack {
        folder: PathBuf,
    },
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

/// Print a completion script for a shell, on standard output
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  lissom completions bash > ~/.local/share/bash-completion/completions/lissom
  lissom completions fish > ~/.config/fish/completions/lissom.fish")]
pub struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Print the manual pages in roff, on standard output
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  lissom man | man -l -
  lissom man --dir ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write each page to a file of its own in this folder instead; create the folder if it does
    /// not exist
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}
