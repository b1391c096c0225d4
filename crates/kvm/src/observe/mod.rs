//! `lissom kvm observe`: show what KVM does for each VM, and its costs.

pub mod counts;
pub mod load;
mod prometheus;
mod show;

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::bail;
use clap::Args;
use ui::time::Unit;

use load::Observer;
use prometheus::Exporter;
use show::Interval;

use os::process::exists;
use os::stop::Stop;
use ui::terminal;

/// Show pause-loop exits, directed yields and halt polling of each VM
///
/// BPF programs at KVM's tracepoints count them. It changes nothing and loads no module. Needs
/// root, or CAP_BPF and CAP_PERFMON. Every VM entry and exit takes a little longer.
#[derive(Args)]
#[command(after_long_help = "\
Columns, for each VM and interval:
  CPU%    time in the guest, of one CPU
  EXITS   VM exits a second
  PAUSE   of these, exits by PAUSE: pause-loop (Intel), PAUSE filter (AMD)
  SWITCH  mean us from such an exit until the CPU does something useful
  YIELD   directed yields a second; OK% of them found a vCPU to run
  HALT    ends of HLT a second
  HIT%    of the halts that KVM polled for, those that ended within the poll
  POLL%   CPU time spent polling, of one CPU
  INEFF%  APPLE's inefficiency: spinning before PAUSE exits, and the switches
          after them, of the VM's CPU time
A dash: there was none, or it is not visible here.

Exit code: 0; 1 if it cannot observe, or if the VM of --vm has ended; 2 for
wrong use.

Examples:
  lissom kvm observe
  lissom kvm observe --vm $(pidof qemu-system-x86_64) --interval 5s
  lissom kvm observe --json --count 1
  lissom kvm observe --metrics=127.0.0.1:9109")]
pub struct ObserveArgs {
    /// Time between two reports. A shorter interval shows short changes, but less exact rates
    #[arg(long, value_name = "TIME", default_value = "1s",
          value_parser = ui::time::parser(Unit::S, "100ms", "24h"))]
    interval: Duration,

    /// Number of reports [default: until a signal]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with = "duration")]
    count: Option<u64>,

    /// Time to run [default: until a signal]
    #[arg(long, value_name = "TIME", value_parser = ui::time::parser(Unit::S, "100ms", "24h"))]
    duration: Option<Duration>,

    #[command(flatten)]
    json: ui::output::JsonLines,

    /// Write metrics in OpenMetrics format once an interval: to standard output, to FILE (replaced
    /// as a whole, for a textfile collector), or served at ADDR:PORT (loopback only), to all users
    /// of this machine
    #[arg(long = "metrics", visible_alias = "prometheus", value_name = "ADDR:PORT|FILE",
          num_args = 0..=1, require_equals = true, default_missing_value = "-",
          conflicts_with = "json", value_parser = prometheus::place)]
    prometheus: Option<prometheus::Place>,

    /// Show only VMs of this VMM process, such as QEMU (repeatable) [default: all]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    vm: Vec<u32>,
}

/// Returns the exit code.
pub fn observe(args: &ObserveArgs) -> anyhow::Result<i32> {
    args.vm.iter().try_for_each(|&pid| check_process(pid))?;
    let mut observer = Observer::load()?;
    let stop = Stop::on_signals()?;
    let mut output = Output::new(args)?;
    let begin = Instant::now();
    let reports = args.count.unwrap_or(u64::MAX);
    let end = args.duration.and_then(|d| begin.checked_add(d));
    let mut last = begin;
    for report in 0..reports {
        let next = last + args.interval;
        stop.wait(end.map_or(next, |end| end.min(next)));
        let now = Instant::now();
        observer.update(&args.vm)?;
        let seconds = (now - last).as_secs_f64();
        output.write(&Interval { seconds, observer: &observer })?;
        last = now;
        if stop.asked() || end.is_some_and(|end| now >= end) {
            break;
        }
        if report + 1 < reports
            && let Some(pid) = args.vm.iter().find(|pid| !exists(**pid))
        {
            bail!("the VM of process {pid} has ended");
        }
    }
    Ok(0)
}

/// Check that the process exists and has a VM, before loading anything.
fn check_process(pid: u32) -> anyhow::Result<()> {
    if !exists(pid) {
        bail!("there is no process {pid}");
    }
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Ok(()) };
    let is_vm = |path: PathBuf| {
        fs::read_link(path)
            .is_ok_and(|file| file.to_string_lossy().starts_with("anon_inode:kvm-vm"))
    };
    if !files.flatten().any(|file| is_vm(file.path())) {
        bail!("process {pid} has no VM: pass the process ID of the VMM, such as QEMU");
    }
    Ok(())
}

/// The user's name for a VM: QEMU's -name, otherwise the process's name.
fn name(pid: u32) -> String {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments: Vec<String> =
        arguments.split(|&b| b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect();
    named(&arguments).unwrap_or_else(|| os::process::name(pid))
}

fn named(arguments: &[String]) -> Option<String> {
    let at = arguments.iter().position(|a| a == "-name" || a == "--name")?;
    let name = arguments.get(at + 1)?.split(',').next()?;
    Some(name.strip_prefix("guest=").unwrap_or(name).to_string()).filter(|n| !n.is_empty())
}

enum Output {
    /// On a terminal (`live`), each table replaces the one before.
    Report {
        live: bool,
        report: ui::output::Report,
    },
    Metrics(Exporter),
}

impl Output {
    fn new(args: &ObserveArgs) -> anyhow::Result<Output> {
        if let Some(place) = &args.prometheus {
            return Ok(Output::Metrics(Exporter::new(place)?));
        }
        let report = args.json.open()?;
        let live = io::stdout().is_terminal() && !args.json.is_alone();
        if live && args.interval > Duration::from_secs(2) {
            ui::output::print(
                format!("first report in {:.0} s\n", args.interval.as_secs_f64()).as_bytes(),
            )?;
        }
        Ok(Output::Report { live, report })
    }

    fn write(&mut self, interval: &Interval) -> anyhow::Result<()> {
        match self {
            Output::Report { live, report } => {
                let rows = if *live { terminal::rows() } else { usize::MAX };
                let table = || show::table(interval, rows);
                let text = || match live {
                    true => format!("\x1b[H\x1b[2J{}", table()),
                    false => table() + "\n",
                };
                let now = SystemTime::now();
                report.line(|| show::document(interval, now), text)?;
            }
            Output::Metrics(exporter) => exporter.write(interval)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let arguments = |line: &str| line.split(' ').map(str::to_string).collect::<Vec<_>>();
        let name = |line: &str| named(&arguments(line));
        assert_eq!(name("qemu -name guest=web1,debug-threads=on -m 5").as_deref(), Some("web1"));
        assert_eq!(name("qemu -m 5 -name db").as_deref(), Some("db"));
        assert_eq!(name("qemu -m 5 -name").as_deref(), None);
        assert_eq!(name("crosvm run"), None);
    }
}
