//! `lissom kvm halt-poll auto`: keeps halt_poll_ns at what the halts of the last seconds are worth.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;

use super::guard::{self, Guard};
use super::parameters::{NAMES, Parameters};
use super::policy::Policy;
use super::{Folder, seconds};
use crate::kvm::observe::counts::{BUCKETS, Counts, bound};
use crate::kvm::observe::is_there;
use crate::kvm::observe::load::{Observer, Vm};
use crate::stop::Stop;

/// Tune halt_poll_ns to what VMs do, until it is ended
///
/// Counts how long halts take, by BPF, and sets the longest poll to where wake-ups that are
/// caught are worth the CPU time of all polling; a change needs three intervals that agree. On
/// exit, by a signal or a crash too, the value is what it was: a child process sees to that.
/// Needs root. Every VM entry and exit takes a little longer.
///
/// Prints a line for each interval: halts a second, those polled for and how many of these
/// ended within the poll, ms of CPU time a second spent on polls that did and on the others,
/// and halt_poll_ns.
#[derive(Args)]
pub struct AutoArgs {
    /// The longest poll that it may choose, in ns, up to 10000000. Longer: more is caught, and
    /// more is burnt when what VMs do changes
    #[arg(long, value_name = "NS", default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    max: u32,

    /// What a wake-up that is caught is worth, in us of CPU time. More: longer polls, lower
    /// latency, more CPU time burnt
    #[arg(long, value_name = "US", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    worth: u32,

    /// Seconds between two decisions. Shorter: follows sooner, but bursts mislead it
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds)]
    interval: Duration,

    /// So many seconds [default: until it is ended]
    #[arg(long, value_name = "S", value_parser = seconds)]
    duration: Option<Duration>,

    /// Print nothing but changes and errors
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    folder: Folder,

    /// For tests: halts from a file, a line of US:COUNT pairs for each interval, instead of from
    /// the kernel
    #[arg(long, hide = true, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// What was polled, and for what, in an interval.
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
            let (us, n) = pair.split_once(':').context("--replay: pairs US:COUNT")?;
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
    // That it can be written is found out now, and not with the first change.
    parameters.check_writable(NAME)?;
    // It may be changed by hand meanwhile, but not by two of us.
    let Some(_lock) = guard::lock(File::open(&path)?).context("the lock")? else {
        bail!("another lissom kvm halt-poll auto runs already: end that first");
    };
    // Whoever reads what is printed may go away; that must not end this process before it has put
    // the value back. SAFETY: no handler, only to ignore it.
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
    if is_broken_pipe(&done) { Ok(()) } else { done }
}

fn is_broken_pipe(done: &anyhow::Result<()>) -> bool {
    let error = done.as_ref().err().and_then(|e| e.downcast_ref::<std::io::Error>());
    error.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
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
    let mut policy = Policy::new(u64::from(args.max), u64::from(args.worth) * 1000);
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
            bail!("{} is {value} now, which somebody else has set: it is left at that", NAMES[0]);
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

/// Times in ms of CPU time a second.
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
