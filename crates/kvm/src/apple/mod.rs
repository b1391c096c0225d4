//! `lissom kvm apple`: give each VM its own pause-loop window, by APPLE.
//! docs/operate/kvm-apple.md.

mod device;
mod machine;
mod report;
mod waste;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use nix::errno::Errno;
use ui::exit::Failure;
use ui::output::Report;
use ui::time::Unit;

use crate::adapt::{Apple, Limits};
use device::{Counters, Device, Module, Snapshot};
use machine::{Interval, Machine};

/// Interval between reads of the counters. Epochs can end only then; most take longer.
const POLL: Duration = Duration::from_millis(20);

/// Give each VM the pause-loop window that wastes the least CPU time
///
/// A vCPU that spins with PAUSE for longer than a window exits, and KVM gives its CPU to another
/// vCPU: pause-loop exiting (PLE). KVM has one window for all VMs of a host. This command tries
/// longer and shorter windows for each VM, an epoch of 1000 exits each. It moves to the window that
/// wastes the least CPU time, in spins that ended with an exit and in the switches after them. The
/// defaults are the paper's; on hosts with Linux 6.6 or newer, --epoch=4000 --margin=50 resists
/// noise better.
///
/// Needs the kernel module lissom_ple (make kmod) and root. Without --apply, it changes nothing.
/// With --apply, all windows are KVM's own again when it ends, however it ends. Trying windows has
/// a cost: two of three epochs run with a window that may be worse.
#[derive(Args)]
#[command(after_long_help = "\
SPUN%, SWITCH% and WASTED% (the sum) are shares of the VM's CPU time. On Intel,
a window is in cycles of the time stamp counter. On AMD, it is in PAUSEs: their
duration is measured at the start, and defaults in cycles are converted.

Exit code: 0 after a signal or --duration, 1 if something failed, 2 if options
are wrong.

Examples:
  lissom kvm apple --duration=5s
  lissom kvm apple --apply --vm=$(pidof qemu-system-x86_64)")]
pub struct AppleArgs {
    /// Set windows [default: show them, and change nothing]
    #[arg(long)]
    apply: bool,

    /// Show and adapt only the VMs of this process (repeatable) [default: all VMs]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    vm: Vec<i32>,

    /// Time between two reports, at least 100ms
    #[arg(long, value_name = "TIME", default_value = "1s",
          value_parser = ui::time::parser(Unit::S, "100ms", "1000000s"))]
    interval: Duration,

    /// Time to run, at least 100ms [default: until a signal]
    #[arg(long, value_name = "TIME", value_parser = ui::time::parser(Unit::S, "100ms", "1000000s"))]
    duration: Option<Duration>,

    /// First window of each VM, in cycles (Intel) or PAUSEs (AMD) [default: 8192 cycles]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    start: Option<u32>,

    /// Shortest window, in the same unit [default: 4096 cycles]. If it is too short, vCPUs yield
    /// although the lock that they wait for is about to be free
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    lower: Option<u32>,

    /// Longest window, in the same unit [default: 32768 cycles]. If it is too long, vCPUs spin
    /// while the owner of the lock does not run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    upper: Option<u32>,

    /// Difference between the windows to try [default: 1024 cycles]. A smaller one reaches the best
    /// window later, and noise misleads it more easily
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    step: Option<u32>,

    /// Exits in an epoch, which lasts at least 20 ms. Fewer exits follow changes sooner, but also
    /// noise
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    epoch: u64,

    /// How much less another window must waste to be chosen, in permille of the waste. A larger
    /// margin resists noise, but may stop near the best window
    #[arg(long, value_name = "PERMILLE", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    margin: u32,

    #[command(flatten)]
    json: ui::output::JsonLines,

    /// Use this file instead of the module's device
    #[arg(long, value_name = "PATH", default_value = device::PATH, hide = true)]
    device: PathBuf,
}

pub fn apple(args: &AppleArgs) -> anyhow::Result<i32> {
    if let (Some(lower), Some(upper)) = (args.lower, args.upper)
        && lower > upper
    {
        let text = format!("--lower={lower} is above --upper={upper}: exchange them");
        return Err(Failure::wrong_use(text).into());
    }
    let mut output = args.json.open()?;
    let stop = os::stop::Stop::on_signals()?;
    let mut device = Device::open(&args.device, args.apply)?;
    let first = device.read()?;
    let unit = waste::window_unit(&first.module);
    let (start, limits) = limits(args, &first.module, unit).map_err(Failure::wrong_use)?;
    check_named(args, &first)?;
    announce(args, start, &limits, &first.module);
    let mut control = Control {
        args,
        start,
        limits,
        unit,
        machines: BTreeMap::new(),
        held: BTreeSet::new(),
        unheeded: BTreeSet::new(),
    };
    let begin = Instant::now();
    let (mut reported, mut reports) = (begin, 0);
    loop {
        let snapshot = device.read()?;
        control.look(&mut device, &snapshot)?;
        let is_over = stop.asked() || args.duration.is_some_and(|d| begin.elapsed() >= d);
        let since = reported.elapsed();
        if since >= args.interval || (is_over && reports == 0) {
            control.report(since.as_secs_f64(), &mut output)?;
            (reported, reports) = (Instant::now(), reports + 1);
        }
        if is_over || control.has_none_left() {
            return Ok(0);
        }
        let left = args.duration.map_or(POLL, |d| d.saturating_sub(begin.elapsed()));
        std::thread::sleep(POLL.min(left));
    }
}

/// Returns the first window and the limits, in the CPU's unit. Defaults are the paper's. unit: TSC
/// cycles per unit of a window. Fails if an option exceeds the largest window.
fn limits(args: &AppleArgs, module: &Module, unit: f64) -> Result<(u32, Limits), String> {
    for (name, value) in [("start", args.start), ("lower", args.lower), ("upper", args.upper)] {
        if let Some(value) = value.filter(|v| *v > module.largest) {
            return Err(format!(
                "--{name}={value} is too large for this CPU: {} at most",
                module.largest
            ));
        }
    }
    let units =
        |cycles: u32| (f64::from(cycles) / unit).round().clamp(1.0, module.largest.into()) as u32;
    let lower = units(Limits::PAPER.lower).min(args.upper.unwrap_or(u32::MAX));
    let lower = args.lower.unwrap_or(lower);
    let upper = args.upper.unwrap_or(units(Limits::PAPER.upper)).max(lower);
    let step = args.step.unwrap_or(units(Limits::PAPER.step));
    let start = args.start.unwrap_or(units(Limits::PAPERS_START)).clamp(lower, upper);
    Ok((start, Limits { lower, upper, step, margin_permille: args.margin, ..Limits::default() }))
}

fn check_named(args: &AppleArgs, seen: &Snapshot) -> anyhow::Result<()> {
    for pid in &args.vm {
        if seen.vms.iter().any(|vm| vm.pid == *pid) {
            continue;
        }
        if !os::process::exists(*pid) {
            bail!("there is no process {pid}: has the VM ended?");
        }
        bail!("process {pid} has no VM that has run since lissom_ple was loaded");
    }
    Ok(())
}

fn announce(args: &AppleArgs, start: u32, limits: &Limits, module: &Module) {
    if args.json.is_alone() {
        return;
    }
    let unit = module.vendor.unit;
    if args.apply {
        let Limits { lower, upper, step, .. } = limits;
        ui::message!(
            "lissom: adapting windows from {lower} to {upper} {unit}, in steps of {step}, \
             until the end"
        );
    } else {
        let mut apple = Apple::new(*limits, start);
        // Equal waste in all epochs, so that the base does not move.
        let (first, second, third) = (apple.threshold(), apple.epoch(1, 1), apple.epoch(1, 1));
        ui::message!(
            "lissom: nothing is changed; --apply would try {first}, {second} and {third} {unit} \
             first"
        );
    }
}

struct Control<'a> {
    args: &'a AppleArgs,
    start: u32,
    limits: Limits,
    /// TSC cycles per unit of a window.
    unit: f64,
    machines: BTreeMap<i32, Machine>,
    /// Processes whose window another program has set; each was reported once.
    held: BTreeSet<i32>,
    /// Processes reported for mostly running without their window.
    unheeded: BTreeSet<i32>,
}

impl Control<'_> {
    /// Count what happened since the last call. With --apply, end epochs and set windows.
    fn look(&mut self, device: &mut Device, snapshot: &Snapshot) -> anyhow::Result<()> {
        if snapshot.module.is_refused {
            bail!(
                "lissom_ple found a vCPU that does not match this kernel's types, and stopped: \
                 see the kernel's log"
            );
        }
        let is_there = |pid: &i32| snapshot.vms.iter().any(|vm| vm.pid == *pid);
        for pid in self.machines.keys().filter(|pid| self.args.vm.contains(pid) && !is_there(pid)) {
            ui::message!("lissom: the VM of process {pid} has ended");
        }
        self.machines.retain(|pid, _| is_there(pid));
        let is_wanted = |pid| self.args.vm.is_empty() || self.args.vm.contains(&pid);
        for vm in snapshot.vms.iter().filter(|vm| is_wanted(vm.pid)) {
            let mut is_new = false;
            let machine = self.machines.entry(vm.pid).or_insert_with(|| {
                is_new = true;
                Machine::new(vm, self.limits, self.start)
            });
            machine.see(vm);
            if !self.args.apply {
                continue;
            }
            let next = match vm.window {
                _ if self.held.contains(&vm.pid) => None,
                Some(_) => machine.end_epoch(self.args.epoch, self.unit),
                // KVM's own: a further VM has started in the process.
                None => Some(machine.apple.threshold()),
            };
            if let Some(window) = next.or(is_new.then(|| machine.apple.threshold())) {
                set(device, vm.pid, window, &mut self.held)?;
            }
        }
        Ok(())
    }

    fn report(&mut self, seconds: f64, output: &mut Report) -> anyhow::Result<()> {
        let machines = self.machines.values_mut();
        let intervals: Vec<Interval> = machines.map(|m| m.interval(self.unit)).collect();
        for Interval { machine: Machine { vm, apple, .. }, counters, .. } in &intervals {
            let Counters { entries, applied, .. } = *counters;
            let is_set = self.args.apply && vm.window.is_some() && apple.rounds().0 > 0;
            if is_set && applied < entries / 2 && self.unheeded.insert(vm.pid) {
                ui::message!(
                    "lissom: the window was set in only {applied} of {entries} entries of process {}: \
                     it may have no effect",
                    vm.pid
                );
            }
        }
        let applies = self.args.apply;
        let document = || report::document(&intervals, seconds, applies);
        Ok(output.line(document, || report::table(&intervals, seconds, applies))?)
    }

    /// Returns whether all VMs of --vm have ended.
    fn has_none_left(&self) -> bool {
        !self.args.vm.is_empty() && self.machines.is_empty()
    }
}

fn set(device: &mut Device, pid: i32, window: u32, held: &mut BTreeSet<i32>) -> anyhow::Result<()> {
    let Err(error) = device.ask(pid, window) else { return Ok(()) };
    match error.raw_os_error().map(Errno::from_raw) {
        // An ended VM is not seen again; the next call of Control::look reports a refusal.
        Some(Errno::ESRCH | Errno::EOPNOTSUPP) => Ok(()),
        Some(Errno::EBUSY) => {
            if held.insert(pid) {
                ui::message!("lissom: skipping process {pid}: another program has set its window");
            }
            Ok(())
        }
        _ => Err(error).with_context(|| format!("cannot set window {window} for process {pid}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::AMD;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: AppleArgs,
    }

    /// Returns start, lower, upper and step. unit: TSC cycles per PAUSE.
    fn limits_of(options: &[&str], unit: f64) -> Result<(u32, u32, u32, u32), String> {
        let module = Module { vendor: AMD, largest: 65_535, tsc_khz: 2_000_000, is_refused: false };
        let args = Line::parse_from(["apple"].iter().chain(options)).args;
        limits(&args, &module, unit).map(|(start, l)| (start, l.lower, l.upper, l.step))
    }

    #[test]
    fn limits_are_the_papers() {
        assert_eq!(limits_of(&[], 1.0), Ok((8192, 4096, 32_768, 1024)));
        assert_eq!(limits_of(&[], 64.0), Ok((128, 64, 512, 16)));
        assert_eq!(limits_of(&["--lower=60000"], 1.0), Ok((60_000, 60_000, 60_000, 1024)));
        assert_eq!(limits_of(&["--upper=100", "--step=7"], 1.0), Ok((100, 100, 100, 7)));
        assert_eq!(limits_of(&["--start=5", "--lower=5"], 1.0), Ok((5, 5, 32_768, 1024)));
        assert!(limits_of(&["--upper=65536"], 1.0).unwrap_err().contains("65535 at most"));
    }
}
