//! `lissom sched`: a kernel scheduler for all programs of the machine (bpf/scx_lissom.bpf.c), by
//! sched_ext.

mod audit;
mod branches;
mod events;
mod find;
pub mod judge;
pub mod kernel;
pub mod layout;
mod limits;
mod load;
mod looks;
mod memory;
mod refuse;
mod report;
mod scope;
mod sites;
mod start;
mod status;
mod stop;
mod top;
mod vcpus;

use std::io;

use clap::{Args, Subcommand};

/// Schedule all programs of this machine with a kernel scheduler (sched_ext)
#[derive(Args)]
pub struct SchedArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Start(start::StartArgs),
    Stop(stop::StopArgs),
    Status(status::StatusArgs),
    Top(top::TopArgs),
}

/// Returns the exit code.
pub fn sched(args: &SchedArgs) -> i32 {
    let done = match &args.verb {
        Verb::Start(args) => start::start(args),
        Verb::Stop(args) => stop::stop(args),
        Verb::Status(args) => status::status(args),
        Verb::Top(args) => top::top(args),
    };
    match done {
        Ok(code) => code,
        // The reader of the output has closed it.
        Err(error)
            if error
                .downcast_ref::<io::Error>()
                .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) =>
        {
            0
        }
        Err(error) => {
            eprintln!("lissom: {error:#}");
            1
        }
    }
}
