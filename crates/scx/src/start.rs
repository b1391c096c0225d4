//! `lissom sched start`: load the scheduler, and judge its candidates until it is to end.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use nix::sys::mman::{MlockAllFlags, mlockall};
use serde_json::json;
use ui::output::Report;
use ui::time::Unit;

use super::audit::{Auditor, Scans};
use super::branches::{self, Counters, Source};
use super::layout::{Config, Counts, Detector, Exit, State, VERSION};
use super::load::Scheduler;
use super::looks::Looks;
use super::report::{self, thousandths};
use super::scope::{Only, Scope};
use super::sites::Sites;
use super::{kernel, refuse, vcpus};
use os::stop::Stop;
use os::{cgroup, process};

/// Start the scheduler, for machines with more threads than CPUs
///
/// Loads a scheduler into the kernel (sched_ext) and stays in the foreground. However it ends, the
/// kernel's own scheduler takes all threads back. It schedules all threads except real-time ones,
/// or only those of --only. Real-time priorities, nice values and weights of cgroups keep their
/// effect. CPU limits (cpu.max) do not, so it refuses to start if there are any. Needs Linux 6.18
/// or newer, and root, or CAP_BPF, CAP_PERFMON, CAP_SYS_NICE and CAP_SYS_PTRACE.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0 after SIGINT, SIGTERM or lissom sched stop, 1 if it cannot start,
2 for wrong use, 3 if the scheduler ended by itself; a line then says why.

Examples:
  lissom sched start
  lissom sched start --stats 10s --spin=off
  lissom sched start --only /sys/fs/cgroup/batch.slice")]
pub struct StartArgs {
    /// Time that a thread runs while others want its CPU, 100us to 100ms. Longer slices mean fewer
    /// switches, but threads wait longer for their turn
    #[arg(long, value_name = "TIME", default_value = "3ms",
          value_parser = ui::time::parser(None, "100us", "100ms"))]
    slice: Duration,

    /// Whether to detect threads that busy-wait for another thread's store
    #[arg(long, value_enum, value_name = "on|off", default_value = "on")]
    spin: Spin,

    /// Time between two scans of the running thread, 20us to 10ms; ten times that on a CPU that had
    /// no busy-waiting thread for a second. Shorter intervals detect busy-waiting sooner, but
    /// interrupt the CPUs more often
    #[arg(long, value_name = "TIME", default_value = "100us",
          value_parser = ui::time::parser(None, "20us", "10ms"))]
    sample: Duration,

    /// How to detect that a thread may busy-wait. branches: by its registers, and by the CPU's
    /// last-branch records and counts of misses. This suspects more loops, but profilers have to
    /// share these counters, and some scans take microseconds. paper: only by records and counts,
    /// without proof from the code, so a thread that computes may have to yield; each scan may take
    /// microseconds. auto: branches if the CPU has records and counts, and they show a test loop;
    /// otherwise registers
    #[arg(long, value_enum, value_name = "auto|registers|branches|paper", default_value = "auto")]
    detector: Asked,

    /// Longest time that a thread under `lissom run` stays parked before it sleeps, 1ms to 1s.
    /// Longer times mean fewer sleeps, but the thread stays in the scheduler's queues
    #[arg(long, value_name = "TIME", default_value = "20ms",
          value_parser = ui::time::parser(None, "1ms", "1s"))]
    park_for: Duration,

    /// Schedule only the threads of this cgroup or process, and of what it starts [default: all].
    /// All other threads stay with the kernel's own scheduler, which runs them first: beside
    /// threads that never sleep, those of --only get a twentieth of a CPU, and nothing before Linux
    /// 7.0
    #[arg(long, value_name = "CGROUP|PID")]
    only: Option<Only>,

    /// Allow --only on kernels before Linux 7.0, where its threads may not run at all
    #[arg(long, requires = "only")]
    force: bool,

    /// Start although cgroups have CPU limits (cpu.max), which are then not enforced
    #[arg(long)]
    ignore_cpu_max: bool,

    /// Print a line of counts on standard output at this interval. --json applies to these lines,
    /// and to the counts at the end
    #[arg(long, value_name = "TIME", value_parser = ui::time::parser(Unit::S, "100ms", "24h"))]
    stats: Option<Duration>,

    #[command(flatten)]
    json: ui::output::JsonLines,

    /// Time that a runnable thread may wait before the kernel ends the scheduler, 1s to 30s, the
    /// most that the kernel permits. A
    /// shorter time limits the harm of errors, but a machine that swaps may exceed it
    #[arg(long, value_name = "TIME", default_value = "5s",
          value_parser = ui::time::parser(None, "1s", "30s"))]
    timeout: Duration,

    /// For tests: fault to inject
    #[arg(long, value_enum, hide = true)]
    fault: Option<Fault>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Spin {
    /// Detect busy-waiting threads, and run other threads first: docs/operate/sched.md
    On,
    /// Let busy-waiting threads run for their whole slice; no scans interrupt the CPUs
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Asked {
    /// `branches` if this machine supports it, otherwise `registers`
    Auto,
    /// All registers of a thread equal those of an earlier scan
    Registers,
    /// As `registers`, or all branch records are equal and there were no cache misses
    Branches,
    /// Only branch records and misses, without proof: the detector of Huang et al.
    Paper,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fault {
    /// Stop running threads
    Stall,
    /// Read branch records that do not exist
    Blind,
    /// Invent branch records: every thread appears to loop
    Records,
}

/// Interval between checks that the scheduler still runs.
const TICK: Duration = Duration::from_millis(200);
/// Interval between checks of CPUs, the threads of --only and their limits.
const FOLLOW: Duration = Duration::from_secs(1);
/// Interval between searches for ended processes.
const FORGET: Duration = Duration::from_secs(5);
/// Time for other threads to run while candidates are left.
const PAUSE: Duration = Duration::from_millis(20);

/// Number of programs shown at the end, those with the most scans; the JSON has all.
const PROGRAMS_TOLD: usize = 20;

enum End {
    Asked,
    /// All processes of --only have ended.
    Nobody,
    /// A cgroup of --only got a limit.
    Limited(String),
    ByItself(Exit),
}

/// Returns the exit code.
pub fn start(args: &StartArgs) -> anyhow::Result<i32> {
    let types = refuse::machine()?;
    let roots = cgroup::roots("cpu");
    let only = args.only.as_ref().map(|only| only.resolve(&roots)).transpose()?;
    if only.is_some() {
        refuse::partial(&types, args.force)?;
    }
    drop(types);
    if !args.ignore_cpu_max {
        refuse::limited(only.as_ref(), &roots)?;
    }
    let stop = Stop::on_signals()?;
    put_first();
    let mut daemon = Daemon::start(args, only, roots)?;
    let end = daemon.run(&stop);
    // On any result, return the threads first.
    daemon.finish()?;
    daemon.tell(&end?)
}

struct Daemon<'a> {
    args: &'a StartArgs,
    roots: Vec<PathBuf>,
    config: Config,
    begin: Instant,
    // The fields from here on must be dropped in this order.
    looks: Option<Looks>,
    /// None unless the detector is the paper's.
    auditor: Option<Auditor>,
    scope: Option<Scope>,
    sites: Sites,
    scheduler: Scheduler,
    /// Number of sites at the last check.
    site_count: usize,
    output: Report,
}

impl<'a> Daemon<'a> {
    fn start(
        args: &'a StartArgs,
        only: Option<Only>,
        roots: Vec<PathBuf>,
    ) -> anyhow::Result<Daemon<'a>> {
        let output = args.json.open()?;
        let ns = |time: Duration| time.as_nanos() as u64;
        let config = Config {
            slice_ns: ns(args.slice),
            sample_ns: if args.spin == Spin::On { ns(args.sample) } else { 0 },
            park_ns: ns(args.park_for),
            is_partial: only.is_some().into(),
            ignore_limits: args.ignore_cpu_max.into(),
            stall: (args.fault == Some(Fault::Stall)).into(),
            made_up: (args.fault == Some(Fault::Records)).into(),
        };
        let with_branches = config.sample_ns > 0 && args.detector != Asked::Registers;
        let mut scheduler = Scheduler::load(&config, args.timeout, with_branches)?;
        let counters = if with_branches { counters(&scheduler, args)? } else { None };
        let detector = match (&counters, args.detector) {
            (None, _) => Detector::Registers,
            (Some(_), Asked::Paper) => Detector::Paper,
            (Some(_), _) => Detector::Branches,
        };
        let auditor = match detector {
            Detector::Paper => Some(Auditor::new(&scheduler)?),
            _ => None,
        };
        let sites = Sites::new(&scheduler)?;
        let (pid, started) = (std::process::id(), process::monotonic().as_nanos() as u64);
        let state = State { version: VERSION, pid, started, detector, config };
        scheduler.attach(&state)?;
        let begin = Instant::now();
        let looks = match config.sample_ns {
            0 => None,
            ns => Some(
                Looks::start(&scheduler, ns, detector, counters)
                    .context("cannot detect busy-waiting here (--spin=off starts without it)")?,
            ),
        };
        let whom = only.as_ref().map_or(String::new(), |only| format!(", for {only}"));
        let (scope, site_count) = (only.map(Scope::new), 0);
        let mut daemon = Daemon {
            args,
            roots,
            config,
            begin,
            looks,
            auditor,
            scope,
            sites,
            scheduler,
            site_count,
            output,
        };
        if let Some(scope) = &mut daemon.scope {
            scope.follow();
        }
        let cpus = process::online_cpus().map_or(0, |cpus| cpus.len());
        ui::message!(
            "lissom sched: running ({}, {cpus} CPU{}, {}{}{}{whom})",
            kernel::name(),
            if cpus == 1 { "" } else { "s" },
            report::config_text(&config),
            match detector {
                Detector::Registers => "",
                Detector::Branches => ", with branch records",
                Detector::Paper => ", by the paper's rule, without proofs",
            },
            if daemon.scheduler.vcpus.is_ok() { ", spinning guests are detected" } else { "" },
        );
        if config.sample_ns > 0
            && vcpus::is_kvm_loaded()
            && let Err(why) = &daemon.scheduler.vcpus
        {
            ui::message!("lissom sched: spinning vCPUs are not detected: {why}");
        }
        Ok(daemon)
    }

    /// Run until there is a reason to end, and return it.
    fn run(&mut self, stop: &Stop) -> anyhow::Result<End> {
        let mut follow = Instant::now() + FOLLOW;
        let mut forget = Instant::now() + FORGET;
        let mut told = (self.begin, Counts::default());
        loop {
            stop.wait_or_readable(Instant::now() + TICK, Some(self.sites.readable()));
            if stop.asked() {
                return Ok(End::Asked);
            }
            if let Some(exit) = self.scheduler.exit() {
                return Ok(End::ByItself(exit));
            }
            if self.sites.judge_some()? {
                stop.wait(Instant::now() + PAUSE);
            }
            if let Some(looks) = &mut self.looks {
                let kicks: Vec<u64> =
                    self.scheduler.counts_of_cpus()?.iter().map(|c| c.spin_kicks).collect();
                looks.keep_pace(&kicks, self.sites.has_judged());
            }
            let now = Instant::now();
            if now >= follow {
                follow = now + FOLLOW;
                self.audit()?;
                if let Some(end) = self.follow()? {
                    return Ok(end);
                }
            }
            if now >= forget {
                forget = now + FORGET;
                self.audit()?;
                self.site_count = self.sites.forget_ended();
            }
            if let Some(every) = self.args.stats
                && now >= told.0 + every
            {
                self.audit()?;
                let counts = self.scheduler.counts()?;
                self.print_line(&counts.since(told.1), &counts, (now - told.0).as_secs_f64())?;
                told = (now, counts);
            }
        }
    }

    fn audit(&mut self) -> anyhow::Result<()> {
        self.auditor.as_mut().map_or(Ok(()), Auditor::follow)
    }

    /// Returns None unless the detector is the paper's.
    fn scans(&self) -> anyhow::Result<Option<Scans>> {
        let read = |_| Scans::read(|name| self.scheduler.handle(name));
        self.auditor.as_ref().map(read).transpose()
    }

    fn follow(&mut self) -> anyhow::Result<Option<End>> {
        if let Some(looks) = &mut self.looks {
            looks.follow_cpus(&self.scheduler)?;
        }
        let Some(scope) = &mut self.scope else { return Ok(None) };
        // A cgroup that is empty may fill again.
        if scope.follow() == 0 && matches!(scope.only, Only::Process(_)) {
            return Ok(Some(End::Nobody));
        }
        let limit = match self.args.ignore_cpu_max {
            true => Ok(()),
            false => refuse::limited(Some(&scope.only), &self.roots),
        };
        Ok(limit.err().map(|e| End::Limited(e.to_string())))
    }

    /// End the scheduler, and wait until the kernel's own scheduler has all threads again.
    fn finish(&mut self) -> anyhow::Result<()> {
        self.looks = None;
        if let Some(scope) = &mut self.scope {
            scope.give_back();
        }
        self.scheduler.detach()
    }

    fn print_line(&mut self, since: &Counts, total: &Counts, seconds: f64) -> anyhow::Result<()> {
        let scans = self.scans()?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let document = || {
            json!({
                "time": thousandths(time.as_secs_f64()),
                "seconds": thousandths(seconds),
                "counts": since,
                "total": total,
                "sites": self.site_count,
                "scans": scans.as_ref().map(Scans::total_document),
            })
        };
        let text = || {
            let line = report::counts_line(since, seconds, self.site_count);
            scans.as_ref().map_or(format!("{line}\n"), |s| format!("{line}; {}\n", s.line()))
        };
        Ok(self.output.line(document, text)?)
    }

    /// Print the summary. Returns the exit code.
    fn tell(&mut self, end: &End) -> anyhow::Result<i32> {
        self.sites.judge_some()?;
        self.audit()?;
        let scans = self.scans()?;
        let seconds = self.begin.elapsed().as_secs_f64();
        let counts = self.scheduler.counts()?;
        let (code, why) = match end {
            End::Asked => (0, "as requested".to_string()),
            End::Nobody => (0, "all processes of --only have ended".to_string()),
            End::Limited(message) => (3, message.clone()),
            End::ByItself(exit) => (3, report::end_text(exit, self.args.timeout)),
        };
        ui::message!("lissom sched: ended after {seconds:.1} s, {why}");
        let document = || {
            json!({
                "ended": why, "seconds": thousandths(seconds), "exit_code": code,
                "config": self.config, "counts": counts,
                "scans": scans.as_ref().map(Scans::document),
            })
        };
        self.output.line(document, String::new)?;
        if !self.args.json.is_alone() {
            let mut lines = report::counts_table(&counts, seconds, &counts);
            lines.extend(scans.iter().flat_map(|s| s.table(PROGRAMS_TOLD)));
            ui::message!("{}", lines.join("\n"));
        }
        Ok(code)
    }
}

/// Open the counters for branch records. Returns None if detection is by registers only.
fn counters(scheduler: &Scheduler, args: &StartArgs) -> anyhow::Result<Option<Counters>> {
    let source = match args.fault {
        Some(Fault::Blind | Fault::Records) => Source::Software,
        _ => Source::Hardware,
    };
    let cpus = process::online_cpus().unwrap_or_default();
    let refusal = match branches::find(scheduler, &cpus, source) {
        Ok(counters) => return Ok(Some(counters)),
        Err(refusal) => refusal,
    };
    if args.fault == Some(Fault::Blind) {
        ui::message!("lissom sched: fault: blind: {}", refusal.why);
        return Ok(Some(Counters::new(scheduler, source)?));
    }
    let needed = match args.detector {
        Asked::Branches => "branches",
        Asked::Paper => "paper",
        Asked::Auto | Asked::Registers => "",
    };
    if !needed.is_empty() {
        bail!("--detector {needed}: {} (--detector registers needs no counters)", refusal.why);
    }
    if refusal.is_odd {
        ui::message!("lissom sched: not using last-branch records: {}", refusal.why);
    }
    Ok(None)
}

impl Drop for Daemon<'_> {
    /// Return the threads if the start failed halfway.
    fn drop(&mut self) {
        if let Some(scope) = &mut self.scope {
            scope.give_back();
        }
    }
}

/// Set real-time priority, so that threads that it schedules cannot block this one. Lock memory,
/// because reading a page from disk may need such threads. Neither is required.
fn put_first() {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    let locked = || Ok(mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE)?);
    let done = process::set_policy(0, policy, 1).and_then(|()| locked());
    if let Err(error) = done
        && std::env::var_os("LISSOM_VERBOSE").is_some()
    {
        ui::message!("lissom: running without real-time priority and locked memory: {error}");
    }
}
