//! `lissom kvm simulate`: a model of an overcommitted host. It shows the effect of PLE windows on
//! guests whose vCPUs wait for each other's locks. docs/operate/kvm-simulation.md.

mod calibration;
mod events;
mod figures;
mod guest;
mod host;
mod lock;
mod own;
mod ple;
mod plot;
mod run;
mod scheduler;
mod stats;
mod table;
#[cfg(test)]
mod tests;
mod window;
mod workload;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde::Serialize;
use ui::exit::Failure;
use ui::time::Unit;

use figures::{Name, Setup};
use host::{Config, Machine};
use run::{middle, run_all};
use scheduler::Rule;
use stats::Report;
use window::{AppleSetup, Policy};
use workload::{WORKLOADS, Workload};

/// Simulate the effect of PLE windows on guests with spin locks
///
/// A discrete-event model: physical CPUs with fair run queues, VMs whose vCPUs compute, take spin
/// locks and halt, and KVM's pause-loop exiting (PLE). A vCPU that spins for longer than the window
/// leaves the guest, and KVM runs another vCPU of the VM. The simulation needs no KVM, and changes
/// nothing on this machine. Absolute numbers are the model's, not your machine's: use it to compare
/// windows.
#[derive(Args)]
#[command(after_long_help = "\
Workloads (all times are means, in cycles):
  ticket     one ticket lock, and little else
  hackbench  messages: short critical sections of 8 ticket locks
  kernbench  compiling: user mode, now and then one of 16 ticket locks
  dbench     files: long critical sections of one TTAS lock, waits for disks
  ebizzy     page faults: one TTAS lock that is busy most of the time
  barrier    a queued lock, and a barrier of all vCPUs every 50 operations
  streamcluster, dedup, raytrace
             user mode with barriers, with a pipeline, with a task queue

Exit code: 0 if the simulation finished, 1 if a file could not be written, 2 if
options are wrong.

Examples:
  lissom kvm simulate --workload ebizzy --window apple
  lissom kvm simulate --figure 1 --plots plots")]
pub struct SimulateArgs {
    /// Make a figure of docs/operate/kvm-simulation.md instead of a single run. One takes a minute
    /// or two on all CPUs, `all` takes several minutes
    #[arg(long, value_enum, conflicts_with_all = ["workload", "window", "apple_epoch", "apple_start", "apple_step", "apple_margin", "apple_lower", "apple_upper", "apple_counts"])]
    figure: Option<Name>,

    /// Write the figures as SVG files into this folder, which is created if it is missing
    #[arg(long, value_name = "DIR", requires = "figure")]
    plots: Option<PathBuf>,

    /// Number of physical CPUs
    #[arg(long, value_name = "N", default_value = "16", value_parser = number(1024))]
    pcpus: u32,

    /// Number of identical VMs [default: 4; figures have their own]
    #[arg(long, value_name = "N", value_parser = number(256))]
    vms: Option<u32>,

    /// vCPUs per VM
    #[arg(long, value_name = "N", default_value = "16", value_parser = number(1024))]
    vcpus: u32,

    /// Workload of the guests, from the list below
    #[arg(long, value_name = "NAME", default_value = "ticket", value_parser = workload)]
    workload: &'static Workload,

    /// PLE window: a number of cycles; `kvm` for KVM's own (4096, doubled by each exit, 4096 again
    /// when the vCPU is scheduled in); `apple` for a window of each VM that follows its
    /// inefficiency; or `off` for no PLE exits
    #[arg(long, value_name = "CYCLES|kvm|apple|off", default_value = "kvm")]
    window: Policy,

    /// Scheduler of the host [default: eevdf; for APPLE's figures cfs, as on its hosts]
    #[arg(long, value_enum, value_name = "RULE")]
    scheduler: Option<Rule>,

    /// Time to simulate [default: 1s; for figures 2.5s with APPLE and a fifth of that without]. A
    /// second of 16 CPUs takes up to 5 s of one CPU. The first fifth is not counted, in figures
    /// with APPLE the first three fifths
    #[arg(long = "duration", visible_alias = "seconds", value_name = "TIME",
          value_parser = ui::time::seconds(Unit::S, "1ms", "1000s"))]
    seconds: Option<f64>,

    /// Seed of the random numbers: the same seed gives the same result
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(..=u64::from(u32::MAX)))]
    seed: u64,

    /// Number of runs, each with the next seed; shows the median, least and most [default: 1; for
    /// figures 3]. The time grows in proportion
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,

    /// PLE exits in an epoch of APPLE. Longer epochs follow changes later, but are less noisy
    #[arg(long, value_name = "N", default_value = "1000", value_parser = number(1_000_000))]
    apple_epoch: u32,

    /// APPLE's first window, in cycles
    #[arg(long, value_name = "CYCLES", default_value = "8192", value_parser = number(1 << 24))]
    apple_start: u32,

    /// Step between APPLE's windows, in cycles. Larger steps find the best window sooner, but less
    /// exactly
    #[arg(long, value_name = "CYCLES", default_value = "1024", value_parser = number(1 << 20))]
    apple_step: u32,

    /// How much less another window must waste for APPLE to choose it, in permille of the waste. A
    /// larger margin resists noise, but stops farther from the best window
    #[arg(long, value_name = "PERMILLE", default_value = "0", value_parser = clap::value_parser!(u32).range(..=1000))]
    apple_margin: u32,

    /// APPLE's shortest window, in cycles. For guests with ticket locks, shorter is better
    #[arg(long, value_name = "CYCLES", default_value = "4096", value_parser = number(1 << 24))]
    apple_lower: u32,

    /// APPLE's longest window, in cycles. A shorter one limits the harm of a wrong choice
    #[arg(long, value_name = "CYCLES", default_value = "32768", value_parser = number(1 << 24))]
    apple_upper: u32,

    /// Waste that APPLE counts besides PLE exits and the spins that ended in them (repeatable)
    /// [default: nothing]
    #[arg(long, value_enum, value_name = "WHAT")]
    apple_counts: Vec<Counts>,

    #[command(flatten)]
    json: ui::output::Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Counts {
    /// Spins that the scheduler ended before the window did; real KVM cannot know them
    Cut,
    /// Switches on the CPUs of the vCPUs that are yielded to
    Remote,
}

impl SimulateArgs {
    fn scheduler(&self) -> Rule {
        self.scheduler.unwrap_or(Rule::Eevdf)
    }

    fn vms(&self) -> u32 {
        self.vms.unwrap_or(4)
    }
}

fn number(most: i64) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=most)
}

fn workload(name: &str) -> Result<&'static Workload, String> {
    let names = || WORKLOADS.iter().map(|w| w.name).collect::<Vec<_>>().join(", ");
    workload::named(name).ok_or_else(|| format!("expected one of {}", names()))
}

/// Returns the exit code.
pub fn simulate(args: SimulateArgs) -> anyhow::Result<i32> {
    if args.apple_lower > args.apple_upper {
        let (lower, upper) = (args.apple_lower, args.apple_upper);
        let text = format!("--apple-lower={lower} is above --apple-upper={upper}");
        return Err(Failure::wrong_use(text).into());
    }
    match args.figure {
        Some(name) => make_figures(&args, name),
        None => single(&args),
    }
}

fn make_figures(args: &SimulateArgs, name: Name) -> anyhow::Result<i32> {
    // Fail before the simulation if the folder cannot be made.
    if let Some(folder) = &args.plots {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    let output = args.json.open()?;
    let setup = Setup {
        pcpus: args.pcpus as usize,
        vcpus: args.vcpus as usize,
        vms: args.vms.map(|n| n as usize),
        scheduler: args.scheduler,
        seconds: args.seconds.unwrap_or(2.5),
        seed: args.seed,
        seeds: args.seeds.unwrap_or(3),
    };
    let figures = figures::make(name, &setup);
    if let Some(folder) = &args.plots {
        for plot in figures.iter().flat_map(|f| &f.plots) {
            plot::draw(plot, folder)?;
        }
    }
    let tables = figures.iter().flat_map(|f| f.tables.iter().map(move |t| (f.figure, t)));
    let texts = tables.map(|(figure, table)| match figure {
        number if number.parse::<u32>().is_ok() => {
            format!("APPLE, Fig. {number}. {}", table.text())
        }
        _ => table.text(),
    });
    output.write(|| ui::output::json(&figures), || texts.collect::<Vec<_>>().join("\n"))?;
    Ok(0)
}

#[derive(Serialize)]
struct Single {
    workload: &'static str,
    window: String,
    scheduler: Rule,
    pcpus: u32,
    vms: u32,
    vcpus: u32,
    /// Operations per second: the median of the seeds.
    throughput: f64,
    throughput_least: f64,
    throughput_most: f64,
    inefficiency: f64,
    /// One report per seed.
    runs: Vec<Report>,
}

fn single(args: &SimulateArgs) -> anyhow::Result<i32> {
    let output = args.json.open()?;
    let mut apple = AppleSetup { epoch: args.apple_epoch, ..AppleSetup::PAPER };
    apple.limits.step = args.apple_step;
    apple.limits.margin_permille = args.apple_margin;
    apple.limits.lower = args.apple_lower;
    apple.limits.upper = args.apple_upper;
    apple.start = args.apple_start;
    apple.counts_cut = args.apple_counts.contains(&Counts::Cut);
    apple.counts_remote = args.apple_counts.contains(&Counts::Remote);
    let configs = (0..args.seeds.unwrap_or(1)).map(|seed| Config {
        machine: Machine { scheduler: args.scheduler(), ..Machine::DEFAULT },
        pcpus: args.pcpus as usize,
        vms: args.vms() as usize,
        vcpus: args.vcpus as usize,
        phases: vec![(0.0, args.workload)],
        policy: args.window,
        apple,
        seconds: args.seconds.unwrap_or(1.0),
        warm_up: 0.2,
        seed: args.seed + seed,
        stacked: false,
        samples: 0,
        epochs: false,
    });
    let runs = run_all(configs.collect());
    let throughput = middle(runs.iter().map(|r| r.throughput));
    let document = Single {
        workload: args.workload.name,
        window: args.window.to_string(),
        scheduler: args.scheduler(),
        pcpus: args.pcpus,
        vms: args.vms(),
        vcpus: args.vcpus,
        throughput: throughput.median,
        throughput_least: throughput.least,
        throughput_most: throughput.most,
        inefficiency: middle(runs.iter().map(|r| r.inefficiency)).median,
        runs,
    };
    output.write(|| ui::output::json(&document), || text(args, &document))?;
    Ok(0)
}

fn text(args: &SimulateArgs, document: &Single) -> String {
    let mut text = format!(
        "{}: {}\n{} pCPUs, {} VMs of {} vCPUs, window {}{}\n\n",
        document.workload,
        args.workload.about,
        args.pcpus,
        args.vms(),
        args.vcpus,
        document.window,
        if args.scheduler() == Rule::Cfs { ", CFS" } else { "" }
    );
    if let [run] = &document.runs[..] {
        let part = |cycles: u64| 100.0 * cycles as f64 / run.cpu_cycles.sum().max(1) as f64;
        let t = &run.cpu_cycles;
        text += &vms(run);
        text += &format!(
            "CPU time, %: useful {:.1}, spinning {:.1}, PLE exits {:.1}, switches by\n\
             yields elsewhere {:.1}, other switches {:.1}, halt polling {:.1}, idle {:.1}\n",
            part(t.useful),
            part(t.spin),
            part(t.ple),
            part(t.remote),
            part(t.switch),
            part(t.poll),
            part(t.idle)
        );
        return text;
    }
    let rate = |v: f64| format!("{:.1}", v / 1e3);
    let mut table = table::Table::new("", &["", "median", "least", "most"]);
    let mut row = |name: &str, m: run::Middle, show: &dyn Fn(f64) -> String| {
        table.rows.push(vec![name.into(), show(m.median), show(m.least), show(m.most)]);
    };
    let runs = &document.runs;
    row("1000 operations/s", middle(runs.iter().map(|r| r.throughput)), &rate);
    row("inefficiency, %", middle(runs.iter().map(|r| 100.0 * r.inefficiency)), &|v| {
        format!("{v:.1}")
    });
    row("all spinning, %", middle(runs.iter().map(|r| 100.0 * r.spinning)), &|v| format!("{v:.1}"));
    text + &table.text()
}

/// A table with a line for each VM.
fn vms(run: &Report) -> String {
    let columns =
        ["VM", "kops/s", "PLE exits", "tried", "yielded", "wasted spin", "switches", "window"];
    let mut table = table::Table::new("", &columns);
    for (i, vm) in run.vms.iter().enumerate() {
        table.rows.push(vec![
            i.to_string(),
            format!("{:.1}", vm.throughput / 1e3),
            vm.ple_exits.to_string(),
            vm.yields_tried.to_string(),
            vm.yields_successful.to_string(),
            format!("{:.1}%", 100.0 * vm.wasted_spinning),
            format!("{:.1}%", 100.0 * vm.wasted_switches),
            vm.window_at_end.map_or("-".into(), |w| w.to_string()),
        ]);
    }
    let all = format!(
        "All: {:.1} kops/s, inefficiency {:.1}%, all spinning {:.1}%\n",
        run.throughput / 1e3,
        100.0 * run.inefficiency,
        100.0 * run.spinning
    );
    table.text() + &all
}
