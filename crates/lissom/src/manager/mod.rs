//! `lissom manager`: divide the CPUs of a node among programs. docs/design/manager.md explains it.

pub mod allocation;
mod feedback;
mod matching;
mod metrics;
mod options;
pub mod packing;
mod progress;
pub mod server;
mod topology;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use ui::exit::Failure;
use ui::time::Unit;

use allocation::{Application, Kind, Share};
use feedback::Feedback;
use metrics::Metrics;
use options::Limits;
use os::stop::Stop;
use progress::Rates;
use server::{Report, Server, Target};
use watch::activity::Id;
use watch::activity::sample::Seen;
use watch::activity::source::{self, Source};
use watch::activity::vector::ActivityVector;

/// Divide the CPUs among the programs of a node
///
/// CPUs that programs leave idle, in sequential phases or for lack of work, go to
/// the programs under `lissom run`. Each period, the manager sets how many threads
/// each of these may run at once: at least one. Programs under lissom connect to
/// the manager within a second, without any option. If it ends or hangs, they stop
/// following its targets within half a second.
///
/// Runs in the foreground until a signal ends it. Root's manager serves the
/// programs of all users, other managers only those of their own user.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_long_help = "\
Exit code: 0 after a signal or --once, 1 if something failed, 2 if options are
wrong.

Examples:
  lissom manager --dry-run --once
  lissom manager & lissom run -- ./solver --threads 64
  lissom manager --json=decisions.jsonl
  lissom manager --observe")]
pub struct ManagerArgs {
    /// Print decisions, but do not apply them
    #[arg(long)]
    pub dry_run: bool,

    /// End after one period [default: run until a signal]
    #[arg(long, requires = "dry_run")]
    pub once: bool,

    /// Path of the socket for programs [default: $XDG_RUNTIME_DIR/lissom/manager.sock, for root
    /// /run/lissom/manager.sock]. Programs find another path only by LISSOM_MANAGER in their
    /// environment
    #[arg(long, value_name = "PATH", env = runtime::abi::ENV_MANAGER, hide_env_values = true)]
    pub socket: Option<PathBuf>,

    /// Time between two decisions, 20ms to 30s. A shorter period follows phases sooner, but costs
    /// more CPU time
    #[arg(long, value_name = "TIME", default_value = "100ms",
          value_parser = ui::time::parser(Unit::Ms, "20ms", "30s"))]
    pub period: Duration,

    /// Time of a period for which a program must have n or more runnable threads to get n
    /// CPUs: 1ms to 60s, less than --period. A longer time ignores longer bursts
    #[arg(long, value_name = "TIME", default_value = "2ms",
          value_parser = ui::time::parser(Unit::Ms, "1ms", "60s"))]
    pub min_threshold: Duration,

    /// Time for which one CPU stays reserved for all programs that became idle. A longer
    /// time lets more of them resume at once; a shorter one frees the CPU sooner
    #[arg(long, value_name = "TIME", default_value = "1s",
          value_parser = ui::time::parser(Unit::Ms, "0s", "60s"))]
    pub keep: Duration,

    /// Limit the number of CPUs of programs, but do not bind their threads. Threads then use an
    /// idle CPU sooner, but disturb other programs more
    #[arg(long)]
    pub no_bind: bool,

    /// Print each decision that differs from the previous one [default: only with --dry-run or
    /// --json], and on standard error the programs that are refused because they belong to another
    /// user
    #[arg(short, long)]
    pub verbose: bool,

    /// Print only errors
    #[arg(short, long, conflicts_with_all = ["verbose", "dry_run"])]
    pub quiet: bool,

    /// How to measure the activity of programs
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    pub activity: source::Choice,

    #[command(flatten)]
    pub limits: Limits,

    /// Serve metrics to Prometheus at http://ADDRESS:PORT/metrics [default: off; ADDRESS
    /// 127.0.0.1, PORT 9754]. Anyone who can reach the port can read process IDs, names and
    /// counters of programs under lissom
    #[arg(long, value_name = "[ADDRESS:]PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = metrics::DEFAULT, value_parser = ui::endpoint::address,
          default_value_if("observe", "true", metrics::DEFAULT))]
    pub metrics: Option<SocketAddr>,

    /// Only serve metrics of programs under lissom: set no targets, and listen at no socket.
    /// Implies --metrics. Can run beside a manager
    #[arg(long, conflicts_with_all = ["dry_run", "period", "min_threshold", "keep", "no_bind",
          "verbose", "activity", "Limits", "json"])]
    pub observe: bool,

    #[command(flatten)]
    pub json: ui::output::JsonLines,
}

pub fn manager(args: &ManagerArgs) -> anyhow::Result<i32> {
    manage(args).map(|()| 0)
}

fn manage(args: &ManagerArgs) -> anyhow::Result<()> {
    if args.observe {
        return observe(args);
    }
    let period = args.period;
    let min_threshold = args.min_threshold;
    if min_threshold >= period {
        let text = "--min-threshold is not less than --period: all programs would be idle";
        return Err(Failure::wrong_use(text).into());
    }
    let mut output = args.json.open()?;
    let stop = Stop::on_signals()?;
    let mut server = if args.dry_run { None } else { Some(listen(args)?) };
    let metrics = args.metrics.map(Metrics::serve).transpose()?;
    if let Some(metrics) = &metrics {
        announce(metrics.address(), args);
    }
    let mut source = Source::open(args.activity, args.quiet)?;
    let packing = args.limits.packing();
    let mut feedback =
        args.limits.slowdown.map(|percent| Feedback::new(f64::from(percent) / 100.0));
    let (mut rates, mut caps) = (Rates::default(), BTreeMap::new());
    let mut idle_for = BTreeMap::new();
    let mut last = None;
    while !stop.asked() {
        let mut seen = match &mut server {
            Some(server) => {
                let mut failed = Ok(());
                let mut wait = |time| {
                    if failed.is_ok() {
                        failed = server.wait(time);
                    }
                };
                let seen = source.period(period, &mut wait)?;
                failed.context("cannot accept connections of programs")?;
                seen
            }
            None => source.period(period, &mut std::thread::sleep)?,
        };
        let mut reports = BTreeMap::new();
        if let Some(server) = &mut server {
            server.forget_closed();
            reports = server.reports();
            for program in &mut seen {
                program.malleable = reports.get(&program.id).is_some_and(|r| r.is_malleable);
            }
        }
        let counts: BTreeMap<Id, u32> =
            seen.iter().map(|s| (s.id, s.activity.typical_thread_count(min_threshold))).collect();
        idle_for = how_long_idle(&idle_for, &counts, period);
        let keep = args.keep;
        let counted = seen.iter().filter(|s| idle_for[&s.id] <= keep);
        let applications: Vec<Application> = counted
            .map(|s| {
                args.limits.application(
                    s,
                    kind(s, counts[&s.id]),
                    reports.get(&s.id),
                    caps.get(&s.id).copied(),
                )
            })
            .collect();
        let cpus = os::process::allowed_cpus();
        let shares = allocation::allocate(&applications, &cpus, &packing);
        if let Some(server) = &mut server {
            tell(server, &seen, &counts, &shares, &cpus, args);
        }
        if let Some(metrics) = &metrics {
            let target = |(&id, share): (&Id, &Share)| share.target_threads.map(|n| (id, n));
            metrics.decided(cpus.len(), reports.len(), shares.iter().filter_map(target).collect());
        }
        if let Some(feedback) = &mut feedback {
            let target = |(&id, share): (&Id, &Share)| share.target_threads.map(|n| (id, n));
            let targets = shares.iter().filter_map(target).collect();
            caps = feedback.period(&rates.since_last(&reports, &targets, period));
        }
        if last.as_ref() != Some(&shares) {
            let text = || match args.dry_run || args.verbose {
                true => table(&seen, &counts, &shares, &cpus),
                false => String::new(),
            };
            output.line(|| document(&seen, &counts, &shares, &cpus, &reports), text)?;
        }
        if args.once {
            return Ok(());
        }
        last = Some(shares);
    }
    Ok(())
}

/// Serve metrics of programs until a signal. Programs are read when a request arrives, so nothing
/// runs in between.
fn observe(args: &ManagerArgs) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let address = args.metrics.expect("--observe has a default for --metrics");
    let endpoint = metrics::observe(address)?;
    announce(endpoint.address(), args);
    while !stop.asked() {
        stop.wait(Instant::now() + Duration::from_secs(60));
    }
    Ok(())
}

fn announce(metrics: SocketAddr, args: &ManagerArgs) {
    if !args.quiet {
        ui::message!("lissom: metrics at http://{metrics}/metrics");
    }
}

/// Return how long each program has been idle. A new program that has not run yet counts as idle
/// for ever.
fn how_long_idle(
    before: &BTreeMap<Id, Duration>,
    counts: &BTreeMap<Id, u32>,
    period: Duration,
) -> BTreeMap<Id, Duration> {
    let since = |id| before.get(id).map_or(Duration::MAX, |d| d.saturating_add(period));
    counts.iter().map(|(id, &n)| (*id, if n > 0 { Duration::ZERO } else { since(id) })).collect()
}

fn listen(args: &ManagerArgs) -> anyhow::Result<Server> {
    let path = args.socket.clone().map_or_else(server::default_socket, Ok)?;
    let mut server = Server::listen(&path)?;
    if args.verbose {
        server.tell_refused();
    }
    if !args.quiet {
        ui::message!(
            "lissom: shares {} CPUs every {} ms; programs connect at {}",
            os::process::allowed_cpus().len(),
            args.period.as_millis(),
            server.path().display()
        );
    }
    Ok(server)
}

/// Maximum time for which a target holds. The runtime ignores targets more than a minute ahead.
const FAR: Duration = Duration::from_secs(59);

/// Send the targets to all connected programs. A target holds for several periods, so a late
/// decision leaves no gap. Idle malleable programs, and programs that connect later, may start with
/// the CPUs that the active programs outside lissom leave.
fn tell(
    server: &mut Server,
    seen: &[Seen],
    counts: &BTreeMap<Id, u32>,
    shares: &BTreeMap<Id, Share>,
    cpus: &[usize],
    args: &ManagerArgs,
) {
    let lasting = (args.period * 3 + Duration::from_millis(200)).min(FAR);
    let needed: u32 = seen.iter().filter(|s| !s.malleable).map(|s| counts[&s.id]).sum();
    let given: u32 = shares.values().filter_map(|s| s.target_threads).sum();
    // Do not bind if threads outnumber CPUs. The kernel lets unbound threads take turns on all
    // CPUs, but bound ones would share only their own CPU.
    let bind = !args.no_bind && needed + given <= cpus.len() as u32;
    let target = |threads: u32, cpus: &[usize]| Target {
        threads,
        cpus: if bind { cpus.into() } else { Vec::new() },
    };
    let left = (cpus.len() as u32).saturating_sub(needed).max(1);
    let left = target(left, &cpus[cpus.len().saturating_sub(left as usize)..]);
    for program in seen.iter().filter(|s| s.malleable) {
        let share = shares.get(&program.id);
        if share.is_some_and(|s| is_outside(s, cpus)) {
            continue;
        }
        let own = share.and_then(|s| Some(target(s.target_threads?, &s.cpus)));
        server.set_target(program.id, own.as_ref().unwrap_or(&left), lasting);
    }
    server.set_first_target(left, lasting);
}

/// Return whether a program may use none of `cpus`. It then gets no target, and keeps its own CPUs.
fn is_outside(share: &Share, cpus: &[usize]) -> bool {
    share.cpus.iter().all(|cpu| !cpus.contains(cpu))
}

/// Return the allocator's kind of a program. A malleable program that did not run counts as a rigid
/// one without threads: it needs no CPU now.
fn kind(seen: &Seen, typical_thread_count: u32) -> Kind {
    if seen.malleable && typical_thread_count > 0 {
        Kind::Malleable { max_threads: seen.threads }
    } else {
        Kind::Rigid { typical_thread_count }
    }
}

fn kind_name(seen: &Seen, count: u32) -> &'static str {
    match (seen.malleable, count) {
        (_, 0) => "idle",
        (true, _) => "malleable",
        (false, _) => "active",
    }
}

fn document(
    seen: &[Seen],
    counts: &BTreeMap<Id, u32>,
    shares: &BTreeMap<Id, Share>,
    cpus: &[usize],
    reports: &BTreeMap<Id, Report>,
) -> Value {
    let programs = seen.iter().map(|s| {
        let share = shares.get(&s.id);
        json!({
            "pid": s.id, "name": s.name, "kind": kind_name(s, counts[&s.id]), "threads": s.threads,
            "activity_ms": milliseconds(&s.activity), "typical_thread_count": counts[&s.id],
            "target_threads": share.and_then(|s| s.target_threads), "cpus": share.map(|s| &s.cpus), "slots": reports.get(&s.id).map(|r| r.slots),
        })
    });
    json!({ "cpus": cpus, "programs": programs.collect::<Vec<_>>() })
}

fn milliseconds(activity: &ActivityVector) -> Vec<f64> {
    activity.times().map(|t| t.as_micros() as f64 / 1000.0).collect()
}

/// Render a decision as a table, at most 80 columns wide. It only counts idle programs.
fn table(
    seen: &[Seen],
    counts: &BTreeMap<Id, u32>,
    shares: &BTreeMap<Id, Share>,
    cpus: &[usize],
) -> String {
    let mut lines = vec![format!(
        "{:>8} {:<20} {:<10} {:>7} {:>7} {:>6}  CPUS",
        "PID", "PROGRAM", "KIND", "THREADS", "TYPICAL", "TARGET"
    )];
    let mut idle = 0;
    for s in seen {
        let count = counts[&s.id];
        let Some(share) = shares.get(&s.id).filter(|_| count > 0) else {
            idle += 1;
            continue;
        };
        let target = share.target_threads.map_or("-".into(), |n| n.to_string());
        lines.push(format!(
            "{:>8} {:<20.20} {:<10} {:>7} {:>7} {:>6}  {}",
            s.id,
            s.name,
            kind_name(s, count),
            s.threads,
            count,
            target,
            ranges(&share.cpus)
        ));
    }
    lines.push(format!("{} CPUs; {idle} idle programs", cpus.len()));
    lines.push(String::new());
    lines.join("\n")
}

/// Format a sorted list of CPUs, such as `0-3,8`.
fn ranges(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == cpu => *end = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let show = |&(a, b): &(usize, usize)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    parts.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }
}
