//! `lissom kvm halt-poll`: how long KVM polls before it puts a halted vCPU to sleep.

mod auto;
mod guard;
mod parameters;
mod policy;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use parameters::{NAMES, Parameters};

/// Show, set, or tune how long KVM polls for a halted vCPU's wake-up
///
/// When a vCPU halts (HLT), KVM can poll for its wake-up before it puts the thread to sleep. A
/// wake-up within the poll saves the sleep (5 to 50 us of latency); a poll costs CPU time. Each
/// vCPU has its own window: KVM grows it after short halts and shrinks it after long ones, up to
/// halt_poll_ns. The values are parameters of the module kvm. They apply to all VMs until the next
/// change, or until the module is loaded again. VMs whose VMM has set its own limit
/// (KVM_CAP_HALT_POLL) keep that.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_long_help = "\
Polling in the guest instead also saves the VM exit. The guest needs one of:
  cpuidle-haltpoll
      A driver (modprobe cpuidle-haltpoll; force=1 where KVM does not offer
      KVM_HINTS_REALTIME) with the governor haltpoll. Polls for up to
      guest_halt_poll_ns (200000), tuned by guest_halt_poll_grow, _grow_start,
      _shrink and _allow_shrink in /sys/module/haltpoll/parameters. Asks the
      host not to poll as well. The host takes the vCPU for busy, and gives the
      CPU to others late.
  idle=poll
      On the guest's kernel command line: the guest never halts. Only for vCPUs
      that have a CPU each: the loop takes the whole CPU, its PAUSEs cause
      pause-loop exits, and neighbours lose CPU time (one lost 45%).
  KVM_HINTS_REALTIME
      Set by the VMM (QEMU: kvm-hint-dedicated=on). The guest then relies on a
      CPU for each vCPU, and drops paravirtual spinlocks. Slow where vCPUs share
      CPUs.

Exit code: 0; 1 if KVM is not loaded or a value cannot be written; 2 if options
are wrong.

Examples:
  lissom kvm halt-poll
  lissom kvm halt-poll set --ns 50000
  lissom kvm halt-poll auto --max 500us")]
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
    /// For tests: use the files of the same names in this folder
    #[arg(long, hide = true, value_name = "DIR", default_value = "/sys/module/kvm/parameters")]
    parameters: PathBuf,
}

/// Show the values (default)
#[derive(Args)]
struct ShowArgs {
    #[command(flatten)]
    json: ui::output::Json,

    #[command(flatten)]
    folder: Folder,
}

/// Set values, until the next change or until kvm is loaded again
///
/// To keep them, write `options kvm halt_poll_ns=N` into a file in /etc/modprobe.d. Needs root.
#[derive(Args)]
#[command(override_usage = "lissom kvm halt-poll set [OPTIONS]")]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
struct SetArgs {
    /// Longest poll of a vCPU, in ns, up to 10000000 (10 ms); 0 disables polling. Longer polls
    /// avoid sleeps, but each halt that is longer still wastes this much CPU time
    #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    ns: Option<u32>,

    /// Factor by which a vCPU's window grows after a short halt that it missed; 0: never, so it
    /// stays 0. A larger factor reaches a sufficient window sooner, but overshoots
    #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(..=1024))]
    grow: Option<u32>,

    /// Window to which a window of 0 grows, in ns
    #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    grow_start: Option<u32>,

    /// Divisor of a vCPU's window after a long halt; 0: the window becomes 0 at once, which wastes
    /// the least CPU time
    #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(..=1024))]
    shrink: Option<u32>,

    #[command(flatten)]
    folder: Folder,
}

/// Returns the exit code.
pub fn halt_poll(args: &HaltPollArgs) -> anyhow::Result<i32> {
    match &args.verb {
        None => show(&args.show),
        Some(Verb::Show(args)) => show(args),
        Some(Verb::Set(args)) => set(args),
        Some(Verb::Auto(args)) => auto::auto(args),
    }?;
    Ok(0)
}

const MEANINGS: [&str; 4] = [
    "longest poll of a vCPU, ns; 0: none",
    "growth factor of a window; 0: never",
    "window to which 0 grows, ns",
    "divisor of a window; 0: it becomes 0",
];

fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let values = Parameters::at(&args.folder.parameters)?.read()?;
    let line =
        |(name, meaning): (&str, &str)| format!("{name:<24} {:>9}  {meaning}\n", values[name]);
    let text = || NAMES.into_iter().zip(MEANINGS).map(line).collect();
    Ok(args.json.open()?.write(|| ui::output::json(&values), text)?)
}

fn set(args: &SetArgs) -> anyhow::Result<()> {
    let parameters = Parameters::at(&args.folder.parameters)?;
    let before = parameters.read()?;
    let given = NAMES.into_iter().zip([args.ns, args.grow, args.grow_start, args.shrink]);
    let wanted: Vec<_> = given.filter_map(|(name, value)| Some((name, value?))).collect();
    parameters.write_all(&wanted)?;
    let line = |(name, value): &(&str, u32)| format!("{name}: {} -> {value}\n", before[name]);
    Ok(ui::output::print(wanted.iter().map(line).collect::<String>().as_bytes())?)
}
