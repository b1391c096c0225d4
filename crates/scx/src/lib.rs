//! `lissom sched`: a kernel scheduler for all programs of the machine (bpf/scx_lissom.bpf.c), by
//! sched_ext.

mod audit;
mod branches;
mod find;
mod kernel;
mod layout;
mod limits;
mod load;
mod looks;
mod maps;
mod refuse;
mod report;
mod scope;
mod sites;
mod start;
mod status;
mod stop;
mod top;
mod vcpus;

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
pub fn sched(args: &SchedArgs) -> anyhow::Result<i32> {
    match &args.verb {
        Verb::Start(args) => start::start(args),
        Verb::Stop(args) => stop::stop(args),
        Verb::Status(args) => status::status(args),
        Verb::Top(args) => top::top(args),
    }
}
