//! Tools for hosts that run virtual machines under KVM.

mod adapt;
mod apple;
mod halt_poll;
mod host;
mod observe;
mod simulate;
mod words;

use clap::{Args, Subcommand};

/// Observe, tune and simulate KVM, for hosts of virtual machines
#[derive(Args)]
pub struct KvmArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Observe(observe::ObserveArgs),
    HaltPoll(halt_poll::HaltPollArgs),
    Simulate(simulate::SimulateArgs),
    Apple(apple::AppleArgs),
}

/// Returns the exit code.
pub fn kvm(args: KvmArgs) -> anyhow::Result<i32> {
    match args.verb {
        Verb::Observe(args) => observe::observe(&args),
        Verb::HaltPoll(args) => halt_poll::halt_poll(&args),
        Verb::Simulate(args) => simulate::simulate(args),
        Verb::Apple(args) => apple::apple(&args),
    }
}
