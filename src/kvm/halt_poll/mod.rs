//! `lissom kvm halt-poll`: how long KVM polls before it puts a halted vCPU to sleep.

mod auto;
mod guard;
mod parameters;
mod policy;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};

use crate::kvm::observe;
use parameters::{NAMES, Parameters};

/// Show, set, or tune how long KVM polls for a halted vCPU's wake-up
///
/// A vCPU that halts (HLT) need not be put to sleep at once: KVM can look for its wake-up for a
/// while, which saves the sleep (5 to 50 us of latency) and costs the CPU time of the poll. Each
/// vCPU has a window of its own, which KVM grows after short halts and shrinks after long ones,
/// up to halt_poll_ns. The values are those of the module kvm, and hold for all VMs, until they
/// are changed or the module is loaded again; VMs for which the VMM has set its own
/// (KVM_CAP_HALT_POLL) keep that.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_long_help = "\
Polling in the guest instead saves the VM exit, too. The guest needs one of:
  cpuidle-haltpoll
      A driver (modprobe cpuidle-haltpoll; force=1 where KVM does not offer
      KVM_HINTS_REALTIME) with the governor haltpoll. Polls for up to
      guest_halt_poll_ns (200000), tuned by guest_halt_poll_grow, _grow_start,
      _shrink and _allow_shrink in /sys/module/haltpoll/parameters. Tells the
      host not to poll as well. The host takes the vCPU for busy, and gives the
      CPU to others late.
  idle=poll
      On the guest's command line: it never halts. Only for vCPUs that have a
      CPU each: its loop takes all of it, its PAUSEs cause pause-loop exits, and
      neighbours lose what it burns (one lost 45%).
  KVM_HINTS_REALTIME
      Said by the VMM (QEMU: kvm-hint-dedicated=on): the guest counts on a CPU
      for each vCPU, and gives up paravirtual spinlocks. Slow where vCPUs share
      CPUs.

Examples:
  lissom kvm halt-poll
  lissom kvm halt-poll set --ns 50000
  lissom kvm halt-poll auto --max 500000")]
pub struct HaltPollArgs {
    #[command(subcommand)]
    verb: Option<Verb>,

    #[command(flatten)]
    show: ShowArgs,
}

#[derive(Subcommand)]
enum Verb {
    Show(ShowArgs),
    Set(SetArgs),
    Auto(auto::AutoArgs),
}

/// Where the parameters are.
#[derive(Args)]
struct Folder {
    /// For tests: another folder with files of the same names
    #[arg(long, hide = true, value_name = "DIR", default_value = "/sys/module/kvm/parameters")]
    parameters: PathBuf,
}

/// Show the values (this is the default)
#[derive(Args)]
struct ShowArgs {
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    folder: Folder,
}

/// Change values, until they are changed again or kvm is loaded again
///
/// To keep them, write `options kvm halt_poll_ns=N` into a file of /etc/modprobe.d. Needs root.
#[derive(Args)]
#[command(override_usage = "lissom kvm halt-poll set [OPTIONS]")]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
struct SetArgs {
    /// Longest poll of a vCPU, in ns, up to 10000000 (10 ms); 0: none. Longer: fewer sleeps, but
    /// each halt that lasts longer burns so much CPU time that others could have used
    #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    ns: Option<u32>,

    /// A vCPU's window grows by this factor after a halt that was short but missed; 0: never,
    /// so that it stays 0. Larger: it is long enough sooner, and too long sooner
    #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(..=1024))]
    grow: Option<u32>,

    /// What a window of 0 grows to, in ns
    #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    grow_start: Option<u32>,

    /// A vCPU's window is divided by this after a long halt; 0: it becomes 0 at once, which
    /// burns least
    #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(..=1024))]
    shrink: Option<u32>,

    #[command(flatten)]
    folder: Folder,
}

/// Returns the exit code.
pub fn halt_poll(args: &HaltPollArgs) -> i32 {
    let done = match &args.verb {
        None => show(&args.show),
        Some(Verb::Show(args)) => show(args),
        Some(Verb::Set(args)) => set(args),
        Some(Verb::Auto(args)) => auto::auto(args),
    };
    match done {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("lissom: {error:#}");
            1
        }
    }
}

const MEANINGS: [&str; 4] = [
    "longest poll of a vCPU, ns; 0: none",
    "a window grows by this factor; 0: never",
    "what a window of 0 grows to, ns",
    "a window is divided by this; 0: it becomes 0",
];

fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let values = Parameters::at(&args.folder.parameters)?.read()?;
    let text = if args.json {
        ui::output::json(&values)
    } else {
        let line = |((name, value), meaning): ((&str, u32), &str)| {
            format!("{name:<24} {value:>9}  {meaning}\n")
        };
        NAMES.into_iter().zip(values.array()).zip(MEANINGS).map(line).collect()
    };
    Ok(ui::output::print(text.as_bytes())?)
}

fn set(args: &SetArgs) -> anyhow::Result<()> {
    let parameters = Parameters::at(&args.folder.parameters)?;
    let before = parameters.read()?.array();
    let given = [args.ns, args.grow, args.grow_start, args.shrink];
    let wanted: Vec<_> =
        NAMES.into_iter().zip(given).filter_map(|(name, value)| Some((name, value?))).collect();
    parameters.write_all(&wanted)?;
    let was = |name: &str| NAMES.iter().position(|n| *n == name).map_or(0, |i| before[i]);
    let text: String =
        wanted.iter().map(|(name, value)| format!("{name}: {} -> {value}\n", was(name))).collect();
    Ok(ui::output::print(text.as_bytes())?)
}

fn seconds(text: &str) -> Result<Duration, String> {
    observe::seconds(text)
}
