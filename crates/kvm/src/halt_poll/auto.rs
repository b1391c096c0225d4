//! `lissom kvm halt-poll auto`: keep halt_poll_ns at the best value for the halts of the last
//! seconds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytemuck::Zeroable as _;
use clap::Args;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};
use ui::output::Report;
use ui::text::row;
use ui::time::Unit;

use super::Folder;
use super::guard::Guard;
use super::parameters::{NAMES, Parameters};
use super::policy::Policy;
use crate::observe::counts::{Counts, bucket};
use crate::observe::load::Observer;
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
#[command(after_long_help = "\
Exit code: 0 after a signal or --duration; 1 if something failed, or if another
program has set the value; 2 if options are wrong.

Examples:
  lissom kvm halt-poll auto --max 200us --quiet
  lissom kvm halt-poll auto --duration 1h --json=halts.jsonl")]
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
    json: ui::output::JsonLines,

    #[command(flatten)]
    folder: Folder,

    /// For tests: read halts from a file instead of the kernel, for each interval a line of
    /// US:COUNT pairs
    #[arg(long, hide = true, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// Returns the counts of the interval since the last call.
type Source = Box<dyn FnMut() -> anyhow::Result<Counts>>;

fn kernel() -> anyhow::Result<Source> {
    let mut observer = Observer::load()?;
    Ok(Box::new(move || {
        observer.update(&[])?;
        Ok(observer.seen.iter().fold(Counts::zeroed(), |sum, vm| sum.plus(&vm.counts)))
    }))
}

fn replay(path: &Path) -> anyhow::Result<Source> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut lines = text.lines().map(str::to_string).collect::<Vec<_>>().into_iter();
    Ok(Box::new(move || {
        let mut counts = Counts::zeroed();
        for pair in lines.next().unwrap_or_default().split_whitespace() {
            let (us, n) = pair.split_once(':').context("--replay: expected pairs US:COUNT")?;
            let (us, n) = (us.parse::<u64>()?, n.parse::<u64>()?);
            counts.halts[bucket(us * 1000)] += n;
            counts.wakeups += n;
        }
        Ok(counts)
    }))
}

pub fn auto(args: &AutoArgs) -> anyhow::Result<()> {
    let mut output = args.json.open()?;
    let parameters = Parameters::at(&args.folder.parameters)?;
    let path = parameters.path(NAME);
    // Fail now, not at the first change.
    parameters.check_writable(NAME)?;
    // Prevent a second `auto` from changing the value; other programs still can. The child of the
    // guard has a copy of the descriptor, and holds the lock until it ends.
    let _lock = match Flock::lock(File::open(&path)?, FlockArg::LockExclusiveNonblock) {
        Err((_, Errno::EWOULDBLOCK)) => {
            bail!("another lissom kvm halt-poll auto is running: end it first")
        }
        lock => lock.map_err(|(_, error)| error).context("cannot lock halt_poll_ns")?,
    };
    // If the reader of the output goes away, this process still has to restore the value.
    // SAFETY: the signal is ignored, without a handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let mut guard = Guard::new(&parameters, NAME)?;
    let stop = Stop::on_signals()?;
    let source = match &args.replay {
        Some(path) => replay(path)?,
        None => kernel()?,
    };
    let done = tune(args, &mut guard, &stop, source, &mut output);
    let original = guard.original();
    let is_restored = guard.restore()?;
    if is_restored && !done.as_ref().is_err_and(ui::exit::is_closed) {
        let text = format!("{NAME} is {original} again");
        match args.json.is_alone() {
            true => ui::message!("lissom: {text}"),
            false => say(&format!("{text}\n"))?,
        }
    }
    done
}

/// The parameter to tune.
const NAME: &str = NAMES[0];

/// Widths of the columns; the value of the parameter follows.
const WIDTHS: [isize; 5] = [9, 9, 10, 6, 6];

fn say(text: &str) -> anyhow::Result<()> {
    Ok(ui::output::print(text.as_bytes())?)
}

fn tune(
    args: &AutoArgs,
    guard: &mut Guard,
    stop: &Stop,
    mut source: Source,
    output: &mut Report,
) -> anyhow::Result<()> {
    let mut policy = Policy::new(ns(args.max), ns(args.worth));
    let mut window = u64::from(guard.original());
    let begin = Instant::now();
    let end = args.duration.and_then(|d| begin.checked_add(d));
    if !args.quiet && !args.json.is_alone() {
        let titles = ["HALT/s", "POLLED/s", "HIT%", "HIT ms", "MISS ms"];
        say(&format!("{}  {NAME}\n", row(&WIDTHS, &titles)))?;
    }
    let mut last = begin;
    loop {
        let next = last + args.interval;
        stop.wait(end.map_or(next, |end| end.min(next)));
        if stop.asked() {
            return Ok(());
        }
        let (now, counts) = (Instant::now(), source()?);
        if let Some(value) = guard.changed_by_others()? {
            bail!("{} is {value} now: another program has set it, so it stays", NAME);
        }
        let wanted = policy.interval(window, &counts.halts);
        if wanted != window {
            guard.set(wanted as u32)?;
        }
        let seconds = (now - last).as_secs_f64();
        if !args.quiet || wanted != window {
            let document = || document(&counts, seconds, window, wanted);
            output.line(document, || line(&counts, seconds, window, wanted))?;
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

fn document(counts: &Counts, seconds: f64, window: u64, wanted: u64) -> Value {
    json!({
        "seconds": seconds, "halts": counts.wakeups, "polled": counts.polls,
        "poll_hits": counts.poll_hits(), "poll_hit_ns": counts.poll_hit_ns,
        "poll_miss_ns": counts.poll_miss_ns, "halt_poll_ns": window, "next_halt_poll_ns": wanted,
    })
}

/// Format an interval as a line. Times are in ms of CPU time per second.
fn line(counts: &Counts, seconds: f64, window: u64, wanted: u64) -> String {
    let rate = |n: u64| format!("{:.0}", n as f64 / seconds);
    let time = |ns: u64| format!("{:.1}", ns as f64 / 1e6 / seconds);
    let change =
        if wanted == window { window.to_string() } else { format!("{window} -> {wanted}") };
    let cells = [
        rate(counts.wakeups),
        rate(counts.polls),
        counts.poll_hits().map_or("-".into(), |share| format!("{:.0}", share * 100.0)),
        time(counts.poll_hit_ns),
        time(counts.poll_miss_ns),
    ];
    format!("{}  {change}\n", row(&WIDTHS, &cells))
}
