//! `lissom kvm halt-poll auto`: keep halt_poll_ns at the best value for the halts of the last
//! seconds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use ui::time::Unit;

use super::Folder;
use super::guard::{self, Guard};
use super::parameters::{NAMES, Parameters};
use super::policy::Policy;
use crate::observe::counts::{BUCKETS, Counts, bound};
use crate::observe::is_there;
use crate::observe::load::{Observer, Vm};
use os::stop::Stop;

/// Tune halt_poll_ns to the halts of all VMs
///
/// Measures the duration of halts by BPF. Sets the longest poll to the value at which the wake-ups
/// that it catches are worth the CPU time of all polls; a change needs three intervals that agree.
/// A child process restores the old value at the end, also after a signal or a crash. Needs root.
/// Every VM entry and exit takes a little longer.
///
/// Prints a line for each interval: halts a second, halts that KVM polled for and the percentage of
/// these that ended within the poll, ms of CPU time a second in polls that hit and in polls that
/// missed, and halt_poll_ns.
#[derive(Args)]
pub struct AutoArgs {
    /// Longest poll to choose, up to 10ms. A longer one catches more wake-ups, but
    /// wastes more CPU time when the behaviour of VMs changes
    #[arg(long, value_name = "TIME", default_value = "500us",
          value_parser = ui::time::parser(Unit::Ns, "0s", "10ms"))]
    max: Duration,

    /// Value of a wake-up within a poll, in CPU time, 1us to 10ms. A higher value means longer
    /// polls: lower latency, but more CPU time
    #[arg(long, value_name = "TIME", default_value = "50us",
          value_parser = ui::time::parser(Unit::Us, "1us", "10ms"))]
    worth: Duration,

    /// Time between two decisions. A shorter interval follows changes sooner, but bursts mislead
    /// it
    #[arg(long, value_name = "TIME", default_value = "2s",
          value_parser = ui::time::parser(Unit::S, "100ms", "24h"))]
    interval: Duration,

    /// Time to run [default: until a signal]
    #[arg(long, value_name = "TIME", value_parser = ui::time::parser(Unit::S, "100ms", "24h"))]
    duration: Option<Duration>,

    /// Print only changes and errors
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    folder: Folder,

    /// For tests: read halts from a file instead of the kernel, for each interval a line of
    /// US:COUNT pairs
    #[arg(long, hide = true, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// Source of the counts of each interval.
trait Source {
    fn interval(&mut self) -> anyhow::Result<Counts>;
}

struct Kernel {
    observer: Observer,
    last: BTreeMap<Vm, Counts>,
}

impl Source for Kernel {
    fn interval(&mut self) -> anyhow::Result<Counts> {
        let mut sum = Counts::zero();
        for (vm, counts) in self.observer.counts()? {
            let last = self.last.insert(vm, counts.clone()).unwrap_or(Counts::zero());
            sum = sum.plus(&counts.since(&last));
            if !is_there(vm.pid) {
                self.observer.forget(vm);
                self.last.remove(&vm);
            }
        }
        Ok(sum)
    }
}

struct Replay {
    lines: Vec<String>,
    next: usize,
}

impl Source for Replay {
    fn interval(&mut self) -> anyhow::Result<Counts> {
        let line = self.lines.get(self.next).cloned().unwrap_or_default();
        self.next += 1;
        let mut counts = Counts::zero();
        for pair in line.split_whitespace() {
            let (us, n) = pair.split_once(':').context("--replay: expected pairs US:COUNT")?;
            let (us, n) = (us.parse::<u64>()?, n.parse::<u64>()?);
            let bucket = (0..BUCKETS - 1).find(|&b| us * 1000 < bound(b)).unwrap_or(BUCKETS - 1);
            counts.halts[bucket] += n;
            counts.wakeups += n;
        }
        Ok(counts)
    }
}

pub fn auto(args: &AutoArgs) -> anyhow::Result<()> {
    const NAME: &str = NAMES[0];
    let parameters = Parameters::at(&args.folder.parameters)?;
    let path = parameters.path(NAME);
    // Fail now, not at the first change.
    parameters.check_writable(NAME)?;
    // Prevent a second `auto` from changing the value; other programs still can.
    let Some(_lock) = guard::lock(File::open(&path)?).context("cannot lock halt_poll_ns")? else {
        bail!("another lissom kvm halt-poll auto is running: end it first");
    };
    // If the reader of the output goes away, this process still has to restore the value.
    // SAFETY: the signal is ignored, without a handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let mut guard = Guard::new(&parameters, NAME)?;
    let stop = Stop::on_signals()?;
    let mut source: Box<dyn Source> = match &args.replay {
        Some(path) => {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Box::new(Replay { lines: text.lines().map(str::to_string).collect(), next: 0 })
        }
        None => Box::new(Kernel { observer: Observer::load()?, last: BTreeMap::new() }),
    };
    let done = tune(args, &mut guard, &stop, source.as_mut());
    let original = guard.original();
    let is_restored = guard.restore()?;
    if is_restored && !is_broken_pipe(&done) {
        say(&format!("{NAME} is {original} again\n"))?;
    }
    done
}

fn is_broken_pipe(done: &anyhow::Result<()>) -> bool {
    done.as_ref().err().is_some_and(ui::exit::is_closed)
}

fn say(text: &str) -> anyhow::Result<()> {
    Ok(ui::output::print(text.as_bytes())?)
}

fn tune(
    args: &AutoArgs,
    guard: &mut Guard,
    stop: &Stop,
    source: &mut dyn Source,
) -> anyhow::Result<()> {
    let mut policy = Policy::new(ns(args.max), ns(args.worth));
    let mut window = u64::from(guard.original());
    let begin = Instant::now();
    let end = args.duration.and_then(|d| begin.checked_add(d));
    if !args.quiet {
        say(&format!(
            "{:>9} {:>9} {:>10} {:>6} {:>6}  halt_poll_ns\n",
            "HALT/s", "POLLED/s", "HIT%", "HIT ms", "MISS ms"
        ))?;
    }
    let mut last = begin;
    loop {
        let next = last + args.interval;
        stop.wait(end.map_or(next, |end| end.min(next)));
        if stop.asked() {
            return Ok(());
        }
        let (now, counts) = (Instant::now(), source.interval()?);
        if let Some(value) = guard.changed_by_others()? {
            bail!("{} is {value} now: another program has set it, so it stays", NAMES[0]);
        }
        let wanted = policy.interval(window, &counts.halts);
        if wanted != window {
            guard.set(wanted as u32)?;
        }
        let line = row(&counts, (now - last).as_secs_f64(), window, wanted);
        if !args.quiet || wanted != window {
            say(&line)?;
        }
        (window, last) = (wanted, now);
        if end.is_some_and(|end| now >= end) {
            return Ok(());
        }
    }
}

/// Returns a time of at most 10 ms in nanoseconds.
fn ns(time: Duration) -> u64 {
    u64::from(time.subsec_nanos())
}

/// Format an interval as a line. Times are in ms of CPU time per second.
fn row(counts: &Counts, seconds: f64, window: u64, wanted: u64) -> String {
    let rate = |n: u64| format!("{:.0}", n as f64 / seconds);
    let time = |ns: u64| format!("{:.1}", ns as f64 / 1e6 / seconds);
    let hits = counts.poll_hits().map_or("-".into(), |share| format!("{:.0}", share * 100.0));
    let change =
        if wanted == window { window.to_string() } else { format!("{window} -> {wanted}") };
    format!(
        "{:>9} {:>9} {:>10} {:>6} {:>6}  {change}\n",
        rate(counts.wakeups),
        rate(counts.polls),
        hits,
        time(counts.poll_hit_ns),
        time(counts.poll_miss_ns)
    )
}
