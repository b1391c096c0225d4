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
use clap::builder::RangedI64ValueParser;
use clap::{Args, ValueEnum};
use serde::Serialize;
use ui::exit::Failure;
use ui::number::Spread;
use ui::time::Unit;

use figures::{Name, Setup, run_seeds};
use host::Config;
use run::spread;
use scheduler::Rule;
use stats::Report;
use table::Table;
use window::Policy;
use workload::{WORKLOADS, Workload};

use crate::words;

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
    #[arg(long, value_name = "N", default_value = "16", value_parser = count(1024))]
    pcpus: usize,

    /// Number of identical VMs [default: 4; figures have their own]
    #[arg(long, value_name = "N", value_parser = count(256))]
    vms: Option<usize>,

    /// vCPUs per VM
    #[arg(long, value_name = "N", default_value = "16", value_parser = count(1024))]
    vcpus: usize,

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
    /// Settings of a single run, and of figures that have no own ones.
    fn config(&self, seconds: f64) -> Config {
        Config {
            scheduler: self.scheduler.unwrap_or_default(),
            pcpus: self.pcpus,
            vms: self.vms.unwrap_or(4),
            vcpus: self.vcpus,
            phases: vec![(0.0, self.workload)],
            policy: self.policy(),
            seconds: self.seconds.unwrap_or(seconds),
            seed: self.seed,
            ..Config::default()
        }
    }

    fn policy(&self) -> Policy {
        let Policy::Apple(mut apple) = self.window else { return self.window };
        apple.epoch = self.apple_epoch;
        apple.limits.step = self.apple_step;
        apple.limits.margin_permille = self.apple_margin;
        apple.limits.lower = self.apple_lower;
        apple.limits.upper = self.apple_upper;
        apple.start = self.apple_start;
        apple.counts_cut = self.apple_counts.contains(&Counts::Cut);
        apple.counts_remote = self.apple_counts.contains(&Counts::Remote);
        Policy::Apple(apple)
    }
}

fn number(most: i64) -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=most)
}

fn count(most: i64) -> RangedI64ValueParser<usize> {
    RangedI64ValueParser::new().range(1..=most)
}

fn workload(name: &str) -> Result<&'static Workload, String> {
    let names = || WORKLOADS.iter().map(|w| w.name).collect::<Vec<_>>().join(", ");
    workload::named(name).ok_or_else(|| format!("expected one of {}", names()))
}

/// Returns the exit code.
pub fn simulate(args: SimulateArgs) -> anyhow::Result<i32> {
    if args.apple_lower > args.apple_upper {
        let (lower, upper) = (args.apple_lower, args.apple_upper);
        let text = format!("--apple-lower={lower} is above --apple-upper={upper}: exchange them");
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
        base: args.config(2.5),
        vms: args.vms,
        scheduler: args.scheduler,
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
    pcpus: usize,
    vms: usize,
    vcpus: usize,
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
    let config = args.config(1.0);
    let (scheduler, vms) = (config.scheduler, config.vms);
    let runs = run_seeds([config].into_iter(), args.seeds.unwrap_or(1)).concat();
    let throughput = figures::throughput(&runs);
    let document = Single {
        workload: args.workload.name,
        window: args.window.to_string(),
        scheduler,
        pcpus: args.pcpus,
        vms,
        vcpus: args.vcpus,
        throughput: throughput.median,
        throughput_least: throughput.least,
        throughput_most: throughput.most,
        inefficiency: figures::inefficiency(&runs).median,
        runs,
    };
    output.write(|| ui::output::json(&document), || text(args.workload.about, &document))?;
    Ok(0)
}

fn text(about: &str, document: &Single) -> String {
    let Single { workload, pcpus, vms, vcpus, window, .. } = document;
    let rule = if document.scheduler == Rule::Cfs { ", CFS" } else { "" };
    let mut text = format!(
        "{workload}: {about}\n{pcpus} pCPUs, {vms} VMs of {vcpus} vCPUs, window {window}{rule}\n\n"
    );
    if let [run] = &document.runs[..] {
        let t = &run.cpu_cycles;
        let part = |cycles: u64| 100.0 * cycles as f64 / words::sum(t).max(1) as f64;
        text += &by_vm(run);
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
    let mut table = Table::new("", ["", "median", "least", "most"]);
    let mut row = |name, Spread { median, least, most }, unit: f64| {
        table.row(name, [median, least, most].map(|v| format!("{:.1}", v / unit)));
    };
    let runs = &document.runs;
    row("1000 operations/s", figures::throughput(runs), 1e3);
    row("inefficiency, %", spread(runs.iter().map(|r| 100.0 * r.inefficiency)), 1.0);
    row("all spinning, %", spread(runs.iter().map(|r| 100.0 * r.spinning)), 1.0);
    text + &table.text()
}

/// A table with a line for each VM.
fn by_vm(run: &Report) -> String {
    let columns =
        ["VM", "kops/s", "PLE exits", "tried", "yielded", "wasted spin", "switches", "window"];
    let mut table = Table::new("", columns);
    for (i, vm) in run.vms.iter().enumerate() {
        let cells = [
            format!("{:.1}", vm.throughput / 1e3),
            vm.ple_exits.to_string(),
            vm.yields_tried.to_string(),
            vm.yields_successful.to_string(),
            format!("{:.1}%", 100.0 * vm.wasted_spinning),
            format!("{:.1}%", 100.0 * vm.wasted_switches),
            vm.window_at_end.map_or("-".into(), |w| w.to_string()),
        ];
        table.row(i.to_string(), cells);
    }
    let all = format!(
        "All: {:.1} kops/s, inefficiency {:.1}%, all spinning {:.1}%\n",
        run.throughput / 1e3,
        100.0 * run.inefficiency,
        100.0 * run.spinning
    );
    table.text() + &all
}
