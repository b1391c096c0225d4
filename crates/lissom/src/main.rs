//! The command line of lissom: one module per verb.
#![cfg_attr(not(test), no_main)]

mod cli;
mod doctor;
#[cfg(test)]
mod fuzz;
mod gdb;
#[cfg(test)]
mod help_test;
mod man;
#[cfg(feature = "monitor")]
mod manager;
#[cfg(feature = "monitor")]
mod record;
mod run;
#[cfg(feature = "monitor")]
mod stat;
#[cfg(feature = "monitor")]
mod top;
mod usage;

use std::path::Path;

use clap::Parser as _;

/// Define the C entry point instead of Rust's. Rust's start-up ignores SIGPIPE, opens closed
/// standard streams, and installs a signal stack. The program that `lissom run` becomes would
/// inherit the first two.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn main(
    _argc: std::ffi::c_int,
    _argv: *const *const std::ffi::c_char,
) -> std::ffi::c_int {
    // A panic must not unwind into C. It has printed its message already.
    std::panic::catch_unwind(|| ui::exit::code(dispatch())).unwrap_or(70)
}

fn unwritable(folder: &Path, error: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("cannot write to {}: {error:#}; pass a writable folder", folder.display())
}

fn dispatch() -> anyhow::Result<i32> {
    // Parse `run` separately, because the options of all verbs take 1 ms to set up.
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|verb| verb == "run") {
        return run::run(run::arguments(&arguments[1..]).unwrap_or_else(|e| usage::exit(e)));
    }
    let cli = cli::Cli::try_parse().unwrap_or_else(|e| usage::exit(e));
    match cli.verb {
        cli::Verb::Run(args) => return run::run(args),
        cli::Verb::Doctor(args) => return doctor::doctor(&args),
        cli::Verb::Gdb(args) => return gdb::gdb(args),
        #[cfg(feature = "bench")]
        cli::Verb::Bench(args) => return bench::bench(&args),
        #[cfg(feature = "bench")]
        cli::Verb::Study(verb) => return bench::study(&verb),
        #[cfg(feature = "monitor")]
        cli::Verb::Manager(args) => return manager::manager(&args),
        #[cfg(feature = "monitor")]
        cli::Verb::Stat(args) => return stat::stat(&args),
        #[cfg(feature = "monitor")]
        cli::Verb::Top(args) => return top::top(&args),
        #[cfg(feature = "monitor")]
        cli::Verb::Record(args) => return record::record(&args),
        #[cfg(feature = "kvm")]
        cli::Verb::Kvm(args) => return kvm::kvm(args),
        #[cfg(feature = "sched")]
        cli::Verb::Sched(args) => return scx::sched(&args),
        #[cfg(feature = "bench")]
        cli::Verb::Load(args) => return bench::load::load(args),
        cli::Verb::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut cli::visible(), "lissom", &mut script);
            ui::output::print(&script)?;
        }
        cli::Verb::Unpack { folder } => {
            runtime::unpack::install(&folder).map_err(|e| unwritable(&folder, e))?
        }
        cli::Verb::Man(cli::ManArgs { dir: Some(folder) }) => {
            man::write(&folder).map_err(|e| unwritable(&folder, e))?;
        }
        cli::Verb::Man(_) => ui::output::print(&man::all()?)?,
    }
    Ok(0)
}
