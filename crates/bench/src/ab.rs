//! `lissom bench -- CMD`: the user's own program, natively and under lissom.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use itertools::Itertools as _;
use serde_json::{Value, json};
use ui::exit::Failure;
use ui::output::Json;

use super::advice::{self, Advice};
use super::child;
use super::command::{shown, words};
use super::harness::{BOUND, Cell, Group, Measured, NATIVE, SECONDS, Scenario, Spread, State};
use super::report::Report;
use super::table::number;
use super::ways::{self, Way};
use super::{Bench, Common, EXIT_CODES, Session, table};
use os::program;
use runtime::knobs;
use ui::text::{plural, wrap};

/// Name of this benchmark in the JSON.
pub const NAME: &str = "program";

/// Options of `lissom bench -- CMD`.
#[derive(Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct AbArgs {
    /// Ways to run CMD under lissom, besides native [default: auto, and where they can help
    /// visible-cpus and omp-team]. Ways in LIST are always measured
    #[arg(long, visible_alias = "switch", value_enum, value_name = "LIST", value_delimiter = ',')]
    ways: Vec<Way>,

    /// Environment variables that set CMD's number of threads: OMP_NUM_THREADS, RAYON_NUM_THREADS,
    /// ... Adds the column `bound`, CMD natively with one thread per CPU: the time that lissom aims
    /// at
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = variable)]
    threads_env: Vec<String>,

    /// Shell command that runs CMD with one thread per CPU, in place of --threads-env; `{cpus}`
    /// stands for the number of CPUs
    #[arg(long, value_name = "COMMAND", conflicts_with = "threads_env")]
    bound: Option<String>,

    /// Rounds; each runs every column once. A warm-up round comes first and does not count
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = super::rounds())]
    runs: usize,

    /// Time after which a run is killed
    #[arg(long, visible_alias = "limit", value_name = "TIME", default_value = "600s",
        value_parser = super::limit())]
    timeout: f64,

    #[command(flatten)]
    json: Json,

    /// Write the table as Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Program to measure, with its arguments. It runs natively and under lissom in turns. It has
    /// no standard input, and its output is not shown
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

fn variable(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains('=') {
        Err("expected the name of an environment variable".into())
    } else {
        Ok(text.into())
    }
}

/// Return, as NAME=value, the user's variables that other measured programs do not inherit. The
/// user's own program gets them, except for LISSOM, which switches lissom off.
fn environment() -> Vec<OsString> {
    let settings =
        std::env::vars_os().filter(|(name, _)| child::disturbs(name) && name != "LISSOM");
    settings
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            name
        })
        .collect()
}

/// Build the columns. `settings`: environment variables of CMD, as NAME=value.
fn scenarios(args: &AbArgs, cpus: u32, settings: &[OsString]) -> Vec<Scenario> {
    let around = |more: Vec<OsString>| -> Vec<OsString> {
        if settings.is_empty() && more.is_empty() {
            return vec![];
        }
        std::iter::once("env".into()).chain(settings.iter().cloned()).chain(more).collect()
    };
    let bound = match &args.bound {
        None if args.threads_env.is_empty() => None,
        Some(bound) => {
            let script = bound.replace("{cpus}", &cpus.to_string());
            Some((around(vec![]), words!["/bin/sh", "-c", script]))
        }
        None => {
            let set = args.threads_env.iter().map(|name| format!("{name}={cpus}").into());
            Some((around(set.collect()), args.command.clone()))
        }
    };
    let native = Scenario::of(NATIVE, None, args.command.clone());
    let bound =
        bound.map(|(around, command)| Scenario { around, ..Scenario::of(BOUND, None, command) });
    let managed = ways(args, settings).into_iter().unique().map(|way| Scenario {
        around: around(way.variable().into_iter().collect()),
        ..Scenario::of(way.name(), Some(way.switch()), args.command.clone())
    });
    let native = Scenario { around: around(vec![]), ..native };
    bound.into_iter().chain([native]).chain(managed).collect()
}

/// Return the ways to measure: those of --ways, or all that may help.
fn ways(args: &AbArgs, settings: &[OsString]) -> Vec<Way> {
    if !args.ways.is_empty() {
        return args.ways.clone();
    }
    let mut list = vec![Way::Auto];
    if ways::sees_too_many_cpus(settings) {
        list.push(Way::VisibleCpus);
    }
    // `leave_out` removes it again.
    list.push(Way::OmpTeam);
    list
}

/// Check the command, and convert the options that other benchmarks have as well.
pub fn common(args: &AbArgs) -> anyhow::Result<Common> {
    let Some(name) = args.command.first() else {
        let text = "nothing to measure: name a benchmark, or a program after `--` \
             (`lissom bench --help`)";
        return Err(Failure::wrong_use(text).into());
    };
    program::find(name, std::env::var_os("PATH").as_deref())?;
    Ok(Common {
        runs: args.runs,
        json: args.json.clone(),
        markdown: args.markdown.clone(),
        ..Common::default()
    })
}

pub fn prepare(args: &AbArgs, session: &Session) -> anyhow::Result<Bench> {
    let name = Path::new(&args.command[0]);
    let path = program::find(&args.command[0], std::env::var_os("PATH").as_deref())?;
    let omp_is_known = !args.ways.is_empty() || ways::needs_openmp(&path);
    let group = Group {
        workload: name.file_name().unwrap_or(name.as_os_str()).to_string_lossy().into_owned(),
        scenarios: scenarios(args, session.cpus(), &environment()),
        tried: args.ways.is_empty().then_some(Way::OmpTeam.name()),
        leave_out: (!omp_is_known).then_some(ways::leave_out),
        ..Group::of(SECONDS)
    };
    Ok(Bench {
        name: NAME,
        timeout: args.timeout,
        groups: vec![group],
        parameters: json!({
            "command": shown(&args.command),
            "bound": args.bound,
            "threads_env": args.threads_env,
        }),
        summary: Some(|groups| groups.iter().flat_map(notes).collect()),
        advise: Some(advise),
        ..Bench::default()
    })
}

fn advise(groups: &[Measured], parameters: &Value) -> Option<Advice> {
    let command = parameters["command"].as_array()?;
    let words: Vec<String> = command.iter().filter_map(|w| Some(w.as_str()?.into())).collect();
    advice::advise(groups.first()?, &words)
}

/// Describe what lissom did, from the statistics of the warm-up.
fn notes(group: &Measured) -> Vec<String> {
    let told = |cell: &Cell| -> Option<String> {
        let processes = cell.statistics.as_ref()?["processes"].as_array()?;
        let sum = |name: &str| -> u64 {
            processes.iter().filter_map(|p| p["counters"][name].as_u64()).sum()
        };
        let threads =
            processes.iter().filter_map(|p| p["counters"]["threads_peak"].as_u64()).max()?;
        let (blocks, loops) = (sum("blocks") + sum("blocks_spun"), sum("parks"));
        Some(format!(
            "{}: at most {}; {} and {} without the kernel's scheduler, {} in loops that yielded.",
            cell.scenario,
            plural(threads, "thread"),
            plural(blocks, "wait"),
            plural(sum("wakes"), "wake-up"),
            plural(loops, "wait"),
        ))
    };
    let managed = || group.cells.iter().filter(|c| c.managed && c.native_because.is_none());
    managed().filter_map(told).chain(spinning(managed())).collect()
}

/// Name the settings that stop libraries from spinning, if threads waited in their loops.
fn spinning<'a>(cells: impl Iterator<Item = &'a Cell>) -> Option<String> {
    let processes = cells.filter_map(|c| c.statistics.as_ref()?["processes"].as_array()).flatten();
    let loops = processes.filter_map(|p| p["spin_loops"].as_array()).flatten();
    let files: Vec<&str> = loops
        .filter(|l| l["waits"].as_u64() > Some(0) || l["yields"].as_u64() > Some(0))
        .filter_map(|l| l["file"].as_str()?.rsplit('/').next())
        .collect();
    let knobs = knobs::named(files.into_iter());
    (!knobs.is_empty()).then(|| {
        format!(
            "Threads of libraries spun while they outnumbered the CPUs. Blocking at once may be \
             faster, also natively: {}.",
            knobs.join("; ")
        )
    })
}

/// Render the report, at most 80 columns wide.
pub fn text(report: &Report) -> String {
    let mut lines = wrap(&report.title(), "", 2);
    let command = report.parameters["command"].as_array().into_iter().flatten();
    lines.extend(wrap(&command.filter_map(Value::as_str).join(" "), "  ", 4));
    let Some(group) = report.groups.first() else {
        return table::close(lines, &table::notes(report));
    };
    let has_bound = group.cell(BOUND).is_some();
    let mut head = format!("\n{:13}{:>18}", "", "seconds");
    if has_bound {
        head += &format!("{:>18}", "x bound");
    }
    head += &format!("{:>18}{:>7}{:>6}", "x native", "CPUs", "sw/s");
    lines.push(head);
    for cell in &group.cells {
        lines.push(row(cell, has_bound));
    }
    lines.push(String::new());
    lines.extend(wrap(
        "Median, least-most. CPUs: average number used. sw/s: the kernel's context switches a second.",
        "",
        0,
    ));
    lines.extend(group.cells.iter().filter_map(verdict).flat_map(|v| wrap(&v, "", 0)));
    let text = table::close(lines, &table::notes(report));
    let advice = report.advice.iter().flat_map(|advice| &advice.lines);
    let lines: Vec<String> = advice.flat_map(|line| wrap(line, "", 2)).collect();
    if lines.is_empty() { text } else { format!("{text}\n{}\n", lines.join("\n")) }
}

fn row(cell: &Cell, has_bound: bool) -> String {
    let shown = |s: Option<Spread>| s.map_or("-".to_string(), |s| table::spread(&s));
    let value = match cell.state {
        State::Ok => shown(cell.value),
        State::Timeout => "timeout".into(),
        State::Failed => "failed".into(),
    };
    let mut row = format!("{:13}{value:>18}", cell.scenario);
    if has_bound {
        row += &format!("{:>18}", shown(cell.to_bound));
    }
    let over = |of: &dyn Fn(&super::harness::Sample) -> f64| {
        let values: Vec<f64> = cell.samples.iter().map(of).collect();
        Spread::of(&values).map_or("-".into(), |s| number(s.median))
    };
    let cpus = over(&|s| s.process.cpus_used);
    let switches = over(&|s| s.process.context_switches as f64 / s.process.seconds.max(1e-9));
    row += &format!("{:>18}{cpus:>7}{switches:>6}", shown(cell.to_native));
    row.trim_end().into()
}

/// Compare a managed cell with native, in one sentence. All rounds must agree on a difference.
fn verdict(cell: &Cell) -> Option<String> {
    let ratio = cell.to_native.filter(|_| cell.managed && cell.state == State::Ok)?;
    let name = cell.scenario;
    Some(if ratio.most < 1.0 {
        format!(
            "With lissom ({name}) it is {} times as fast ({}-{}).",
            number(1.0 / ratio.median),
            number(1.0 / ratio.most),
            number(1.0 / ratio.least)
        )
    } else if ratio.least > 1.0 {
        format!(
            "With lissom ({name}) it takes {} times as long ({}-{}).",
            number(ratio.median),
            number(ratio.least),
            number(ratio.most)
        )
    } else {
        format!("With lissom ({name}) these rounds show no difference.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: AbArgs,
    }

    fn columns(line: &str) -> Vec<(String, Vec<String>)> {
        let args = Line::try_parse_from(line.split(' ')).expect("good options").args;
        let list = scenarios(&args, 4, &["OMP_X=1".into()]);
        let all = |s: &Scenario| shown(s.around.iter().chain(&s.command));
        list.iter().map(|s| (s.name.to_string(), all(s))).collect()
    }

    #[test]
    fn the_bound_is_there_if_it_is_known() {
        // Whether visible-cpus is there depends on the machine.
        let names = |line| {
            let names = columns(line).into_iter().map(|c| c.0);
            names.filter(|name| name != "visible-cpus").collect::<Vec<_>>()
        };
        assert_eq!(names("bench -- sleep 1"), ["native", "auto", "omp-team"]);
        assert_eq!(names("bench --ways user,kernel,user -- sleep 1"), ["native", "user", "kernel"]);
        let list = columns("bench --threads-env OMP_NUM_THREADS,N -- sleep 1");
        assert_eq!(list[0].1, ["env", "OMP_X=1", "OMP_NUM_THREADS=4", "N=4", "sleep", "1"]);
        assert_eq!(list[1].1, ["env", "OMP_X=1", "sleep", "1"]);
        let args = ["bench", "--bound", "run -t {cpus}", "--", "run"];
        let args = Line::try_parse_from(args).expect("good options").args;
        assert_eq!(scenarios(&args, 4, &[])[0].command[2], "run -t 4");
    }

    #[test]
    fn options_are_checked() {
        assert!(Line::try_parse_from("bench --threads-env A=B -- x".split(' ')).is_err());
        assert!(Line::try_parse_from("bench --threads-env A --bound b -- x".split(' ')).is_err());
    }
}
