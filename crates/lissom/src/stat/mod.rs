//! `lissom stat`: show what programs do, and what lissom does for them.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use ui::time::Unit;

use os::place::Places;
use os::stop::Stop;
use ui::text::{WIDTH, wrap};
use watch::look::{self, Watch, Which};
use watch::places;
use watch::program::{Past, Program, State, is_worth_a_line};
use watch::text::{self, Column};

/// Show where programs wait, spin and lose CPU time
///
/// Takes two samples and shows the activity in between: all details of each PID, or one line for
/// each program with --all. The programs are not stopped. Those under `lissom run` report more than
/// others. As root (or with CAP_PERFMON and CAP_SYS_PTRACE), it also finds CPU time lost in loops
/// that wait, in any program: a timer interrupts each CPU 99 times a second meanwhile.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["pids", "all"])))]
#[command(after_long_help = format!("\
Columns:
  STATE   active, idle (at most one thread can run), native (lissom gave up),
          silent (no statistics), STUCK (no update for 2 seconds), stopped,
          dead, hidden (another user's), or - (not under lissom)
  {}

The details of a PID split its CPU time, in percent of one CPU: in loops that
wait (+- the 95 % confidence interval), in other user code, undecided user code,
and in the kernel. These add up. The shares of loops are of the program's CPU
time.

Exit code: 0, or 1 if a program does not exist, or ended before the conditions
of --wait-for held.

Examples:
  lissom stat 1234
  lissom stat 1234 --wait-for active,locks --interval 100ms
  lissom stat --all --interval 5s
  lissom stat --all --json | jq '.programs[] | select(.spin_percent > 50)'",
    text::legend().join("\n  ")))]
pub struct StatArgs {
    /// Process IDs of the programs
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pids: Vec<u32>,

    /// Show all programs of this user; as root, of all users
    #[arg(long)]
    all: bool,

    /// Time between the two samples. A short interval finds fewer loops
    #[arg(long, value_name = "TIME", default_value = "1s",
          value_parser = ui::time::parser(Unit::S, "100ms", "24h"))]
    interval: Duration,

    /// Sample until all conditions hold for each PID, then print [default: print after one
    /// interval]. Separate conditions by commas. Exits with 1 if a program ends first
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',', conflicts_with = "all")]
    wait_for: Vec<Condition>,

    /// Show at most N loops and N locks per program
    #[arg(long, value_name = "N", default_value = "5")]
    places: usize,

    /// Take one sample, and print states and counters only: they are totals since the program
    /// began. Needs --json; takes milliseconds
    #[arg(long, requires = "json", conflicts_with_all = ["interval", "wait_for", "places"])]
    once: bool,

    #[command(flatten)]
    json: ui::output::Json,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Condition {
    /// lissom switches between its threads
    Active,
    /// Threads waited in user space during the interval
    Waits,
    /// A futex on which threads wait is known
    Locks,
    /// Enough samples of its loops were taken during the interval
    Samples,
}

impl Condition {
    fn holds(self, p: &Program) -> bool {
        match self {
            Condition::Active => p.state == State::Active,
            Condition::Waits => p.blocks_per_s.is_some_and(|n| n > 0.0),
            Condition::Locks => !p.locks.is_empty(),
            Condition::Samples => p.spin_percent.is_some(),
        }
    }
}

/// Interval at which waits of the threads of listed programs are sampled.
const WAITS_EVERY: Duration = Duration::from_millis(20);

/// Run the verb. Returns the exit code.
pub fn stat(args: &StatArgs) -> anyhow::Result<i32> {
    let output = args.json.open()?;
    let which = if args.all { Which::All } else { Which::These(args.pids.clone()) };
    if args.once {
        let look = Watch::without_sampling(which).look()?;
        let programs = Past::default().programs(&look, &look);
        let text = || text::table(&programs, ui::terminal::columns());
        output.write(|| ui::output::json(&totals(&programs)), text)?;
        return Ok(exit_code(&args.pids, &programs, true));
    }
    let stop = Stop::on_signals()?;
    let mut watch = Watch::new(which);
    let mut before = watch.look()?;
    let mut past = Past::default();
    let is_met = |p: &Program| args.wait_for.iter().all(|condition| condition.holds(p));
    let (now, mut programs) = loop {
        let now = second_look(&mut watch, args, &stop)?;
        let programs = past.programs(&before, &now);
        let lives = |pid: &u32| {
            let is_dead = |p: &Program| matches!(p.state, State::Ended | State::Dead);
            programs.iter().any(|p| p.pid == *pid && !is_dead(p))
        };
        if programs.iter().all(is_met) || !args.pids.iter().all(lives) {
            break (now, programs);
        }
        before = now;
    };
    if args.all {
        programs.retain(is_worth_a_line);
        programs.sort_by(|a, b| Column::Cpu.compare(a, b));
    }
    let mut places = Places::default();
    let json = if args.json.is_given() {
        ui::output::json(&document(&programs, &watch, &mut places, args, now.at - before.at))
    } else {
        String::new()
    };
    let text = || match args.all {
        true => overview(&programs, &watch),
        false => programs.iter().map(|p| one(p, &watch, &mut places, args.places)).collect(),
    };
    output.write(|| json.clone(), text)?;
    Ok(exit_code(&args.pids, &programs, programs.iter().all(is_met)))
}

/// Print which programs do not exist, and whether one ended too early. Return the exit code.
fn exit_code(pids: &[u32], programs: &[Program], are_met: bool) -> i32 {
    let missing: Vec<u32> =
        pids.iter().copied().filter(|pid| programs.iter().all(|p| p.pid != *pid)).collect();
    for pid in &missing {
        ui::message!(
            "lissom: there is no process {pid}; lissom stat --all shows those under lissom"
        );
    }
    let ended = missing.is_empty() && !are_met;
    if ended {
        ui::message!("lissom: a program ended before the conditions of --wait-for held");
    }
    i32::from(ended || !missing.is_empty())
}

/// Sample waits until the interval ends, then take the second snapshot.
///
/// Fails if a signal requested the end, or /proc cannot be read.
fn second_look(watch: &mut Watch, args: &StatArgs, stop: &Stop) -> anyhow::Result<look::Look> {
    let end = Instant::now() + args.interval;
    while !stop.asked() && Instant::now() < end {
        let begin = Instant::now();
        if !args.all {
            watch.look_at_waits();
        }
        // Sampling many threads costs CPU time that others need: pause for ten times as long.
        let pause = (begin.elapsed() * 10).max(if args.all { args.interval } else { WAITS_EVERY });
        stop.wait(end.min(Instant::now() + pause));
    }
    if stop.asked() {
        bail!("interrupted before the second sample");
    }
    watch.look()
}

fn overview(programs: &[Program], watch: &Watch) -> String {
    let mut text = text::table(programs, ui::terminal::columns());
    if programs.is_empty() {
        text += "no program is under lissom, and no other program ran\n";
    }
    if let Some(why) = watch.no_sampling() {
        text += &(wrap(&format!("SPIN% is unknown without root privileges: {why}"), "", 2)
            .join("\n")
            + "\n");
    }
    text
}

fn one(p: &Program, watch: &Watch, places: &mut Places, n: usize) -> String {
    let under = match p.state {
        State::Other => "not under lissom".to_string(),
        State::Hidden => "unknown whether under lissom".to_string(),
        State::Ended => "has ended".to_string(),
        state => format!("under lissom, {}", state.name()),
    };
    let mut lines = vec![format!("{} [{}]: {under}", p.name, p.pid)];
    lines.extend(text::details(p, WIDTH));
    lines.extend(text::places(
        &places::spin_sites(p, places, n),
        &places::lock_profiles(p, places, n),
    ));
    if let Some(why) = watch.no_sampling().filter(|_| p.spin_percent.is_none()) {
        lines.extend(wrap(
            &format!("loops that wait are not detected without root privileges: {why}"),
            "  ",
            4,
        ));
    }
    lines.join("\n") + "\n"
}

fn document(
    programs: &[Program],
    watch: &Watch,
    places: &mut Places,
    args: &StatArgs,
    time: Duration,
) -> Value {
    let each = programs.iter().map(|p| {
        let mut value = json!(p);
        value["spin_sites"] = json!(places::spin_sites(p, places, args.places));
        value["locks"] = json!(places::lock_profiles(p, places, args.places));
        value
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seconds": (time.as_secs_f64() * 1e3).round() / 1e3,
        "spinning_not_sampled": watch.no_sampling(),
        "programs": each.collect::<Vec<_>>(),
    })
}

/// Return the fields of programs that need only one sample.
fn totals(programs: &[Program]) -> Value {
    let each = programs.iter().map(|p| {
        json!({
            "pid": p.pid,
            "name": p.name,
            "state": p.state,
            "why": p.why,
            "threads": p.threads,
            "slots": p.slots,
            "limit": p.limit,
            "counters": p.counters,
            "pinned": p.pinned,
        })
    });
    json!({ "version": env!("CARGO_PKG_VERSION"), "programs": each.collect::<Vec<_>>() })
}
