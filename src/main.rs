//! The command line of lissom: one module per verb.
#![cfg_attr(not(test), no_main)]

mod abi;
mod adapt;
mod bench;
mod cli;
mod doctor;
mod elf;
#[cfg(test)]
mod fuzz;
mod gdb;
mod knobs;
mod kvm;
mod load;
mod man;
mod manager;
mod place;
mod process;
mod program;
mod run;
mod sched;
mod stat;
mod stats;
mod stop;
mod supervise;
mod symbol;
mod terminal;
mod top;
mod unpack;
mod version;

use clap::{CommandFactory as _, Parser as _};

/// Define the C entry point instead of Rust's. Rust's start-up ignores SIGPIPE, opens closed
/// standard streams, and installs a signal stack. The program that `lissom run` becomes would
/// inherit the first two.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn main(
    _argc: std::ffi::c_int,
    _argv: *const *const std::ffi::c_char,
) -> std::ffi::c_int {
    // A panic must not unwind into C. It has printed its message already.
    std::panic::catch_unwind(dispatch).unwrap_or(70)
}

fn dispatch() -> i32 {
    // Parse `run` separately, because the options of all verbs take 1 ms to set up.
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|verb| verb == "run") {
        return run::run(cli::run_args(&arguments[1..]).unwrap_or_else(|e| e.exit()));
    }
    let cli = cli::Cli::try_parse().unwrap_or_else(|e| e.exit());
    let done = match cli.verb {
        cli::Verb::Run(args) => return run::run(args),
        cli::Verb::Doctor(args) => return doctor::doctor(&args),
        cli::Verb::Gdb(args) => return gdb::gdb(args),
        cli::Verb::Bench(args) => return bench::bench(&args),
        cli::Verb::Study(verb) => return bench::study(&verb),
        cli::Verb::Manager(args) => return manager::manager(&args),
        cli::Verb::Stat(args) => return stat::stat(&args),
        cli::Verb::Top(args) => return top::top(&args),
        cli::Verb::Kvm(args) => return kvm::kvm(args),
        cli::Verb::Sched(args) => return sched::sched(&args),
        cli::Verb::Load(args) => return load::load(args),
        cli::Verb::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut cli::Cli::command(), "lissom", &mut script);
            ui::output::print(&script)
        }
        cli::Verb::Unpack { folder } => return written(&folder, unpack::install(&folder)),
        cli::Verb::Man(cli::ManArgs { dir: Some(folder) }) => {
            return written(&folder, man::write(&folder));
        }
        cli::Verb::Man(_) => man::all().and_then(|roff| ui::output::print(&roff)),
    };
    match done {
        Ok(()) => 0,
        // The reader has closed the pipe, as in `lissom man | head`.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(e) => {
            eprintln!("lissom: cannot write to standard output: {e}");
            1
        }
    }
}

/// Return the exit code of a verb that writes into a folder.
fn written(folder: &std::path::Path, done: std::io::Result<()>) -> i32 {
    match done {
        Ok(()) => 0,
        Err(e) => {
            eprintln!("lissom: cannot write to {}: {e}", folder.display());
            1
        }
    }
}
