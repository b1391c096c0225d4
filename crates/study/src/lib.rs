//! `lissom study list`, `run` and `report`: the study, every figure of it by its name.
//!
//! A figure (figures/) is a view of a measurement (measurements.rs), which is a command of lissom.
//! `run` runs the commands that the figures need, each once, keeps what they report in a file
//! (store.rs), and shows it: text.rs for the terminal, html.rs as a page, page.rs as Markdown.

mod claims;
mod figures;
pub mod format;
mod headline;
mod html;
pub mod measurements;
mod page;
mod panel;
mod plot;
mod read;
mod run;
mod shown;
mod single;
mod store;
mod text;
mod version;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use figures::{Figure, named};
use shown::Shown;
use store::Study;

/// Reproduce the figures of the papers, and more, on this machine
#[derive(Subcommand)]
pub enum Verb {
    List(ListArgs),
    Run(RunArgs),
    Report(ReportArgs),
}

/// The machine and the build that measure, as the tool knows them.
pub struct Host {
    /// That this process may use.
    pub cpus: u32,
    /// As the benchmarks' reports have it.
    pub machine: Value,
    pub version: String,
    /// The commit that the tool was built from, if known, and whether files differed from it.
    pub commit: Option<String>,
    pub dirty: bool,
}

/// Runs a verb and returns the exit code. `host` is asked for `run` only.
pub fn study(verb: &Verb, host: impl FnOnce() -> anyhow::Result<Host>) -> anyhow::Result<i32> {
    match verb {
        Verb::List(args) => list(args),
        Verb::Run(args) => run(args, &host()?),
        Verb::Report(args) => report(args),
    }
}

/// The figures that `study run` makes
#[derive(Args)]
pub struct ListArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Measure figures of the study, and show them
///
/// Each figure takes ten minutes at most, with --quick a minute. What is measured is kept
/// in a folder, with a page that shows it; a later run adds to it.
///
/// Run it on a machine that does nothing else: a second load makes the numbers worthless,
/// and is reported as noise.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0 if everything ran, 1 if something failed or was too slow under
lissom, 2 if options are wrong. Ctrl-C ends it, keeps and shows what is complete.

Examples:
  lissom study run all --quick
  lissom study run hpdc-fig11 own-threads
  lissom study run hpdc --suite ~/NPB3.4.2/NPB3.4-OMP")]
pub struct RunArgs {
    /// Figures by name, or hpdc, smt, em, apple, own, all
    #[arg(value_name = "NAME", required = true, value_parser = figures_of)]
    names: Vec<std::sync::Arc<Vec<&'static Figure>>>,

    /// A quick look, of a minute a figure at most: less work, fewer rounds, and so more noise
    #[arg(long)]
    quick: bool,

    /// Do not measure again what is there already
    #[arg(long)]
    missing: bool,

    /// The folder of results.json and report.html
    #[arg(short, long, value_name = "DIR", default_value = "lissom-study")]
    output: PathBuf,

    /// Measure the original programs of a suite that you have built, too: as `lissom bench
    /// programs --suite`. May be repeated
    #[arg(long = "suite", value_name = "DIR")]
    suites: Vec<PathBuf>,
}

/// Show what was measured, without measuring anything
#[derive(Args)]
pub struct ReportArgs {
    /// Figures by name, or hpdc, smt, em, apple, own, all [default: all that were measured]
    #[arg(value_name = "NAME", value_parser = figures_of)]
    names: Vec<std::sync::Arc<Vec<&'static Figure>>>,

    /// The results of `lissom study run`, or the --json file of one benchmark, `lissom bench --
    /// CMD` among them
    #[arg(short, long, value_name = "FILE", default_value = "lissom-study/results.json")]
    input: PathBuf,

    /// Write a page that needs no other file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Write each plot into this folder as SVG; --markdown then shows them
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Write the figures of training anew into this file, between its lines
    /// `<!-- figures -->` and `<!-- end of figures -->`. May be repeated
    #[arg(long, value_name = "FILE")]
    update: Vec<PathBuf>,

    /// Print the figures' tables, not only their averages
    #[arg(long)]
    tables: bool,

    /// Print the numbers of all figures as JSON
    #[arg(long)]
    json: bool,
}

fn figures_of(name: &str) -> Result<std::sync::Arc<Vec<&'static Figure>>, String> {
    named(name).map(std::sync::Arc::new)
}

/// Each once, in the order of the study. None were named: all that `or` says.
fn is_wanted<'a>(
    names: &'a [std::sync::Arc<Vec<&'static Figure>>],
    or: impl Fn(&Figure) -> bool + 'a,
) -> impl Fn(&Figure) -> bool + 'a {
    move |figure| {
        if names.is_empty() {
            or(figure)
        } else {
            names.iter().flat_map(|l| l.iter()).any(|f| f.name == figure.name)
        }
    }
}

fn print(lines: &[String]) -> anyhow::Result<i32> {
    print_text(&(lines.join("\n") + "\n"))
}

fn print_text(text: &str) -> anyhow::Result<i32> {
    match ui::output::print(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e).context("standard output"),
        _ => Ok(0),
    }
}

fn list(args: &ListArgs) -> anyhow::Result<i32> {
    if args.json {
        let figures: Vec<_> = figures::all()
            .map(|f| {
                json!({ "name": f.name, "source": f.source.name(), "number": f.number(),
                        "title": f.title,
                        "measurement": f.measurement, "shows": f.shows, "elsewhere": f.elsewhere,
                        "command": f.measurement().full, "quick": f.measurement().quick })
            })
            .collect();
        return print_text(&ui::output::json(&figures));
    }
    let head =
        "Figures of `lissom study run NAME...`; hpdc, smt, em, apple, own and all mean several.";
    let mut lines = ui::text::wrap(head, "", 0);
    for source in figures::SOURCES {
        lines.push(String::new());
        lines.extend(ui::text::wrap(source.title(), "", 2));
        for figure in figures::all().filter(|f| f.source == source) {
            let head = format!("  {:<16}{:<9}", figure.name, figure.number());
            lines.extend(ui::text::wrap(figure.title, &head, 27));
        }
    }
    lines.push(String::new());
    lines.push("Measurements, which may be shared by figures:".into());
    for measurement in measurements::MEASUREMENTS {
        lines.extend(ui::text::wrap(measurement.what, &format!("  {:<22}", measurement.name), 24));
    }
    print(&lines)
}

fn run(args: &RunArgs, host: &Host) -> anyhow::Result<i32> {
    let wanted = is_wanted(&args.names, |_| true);
    fs::create_dir_all(&args.output).with_context(|| args.output.display().to_string())?;
    let file = args.output.join("results.json");
    let mut study = Study::read_or_empty(&file)?;
    let mut needed: Vec<&str> = Vec::new();
    for figure in figures::all().filter(|f| wanted(f)) {
        let is_there = args.missing && study.measured.contains_key(figure.measurement);
        if !needed.contains(&figure.measurement) && !is_there {
            needed.push(figure.measurement);
        }
    }
    let code = run::run(&needed, args.quick, &args.suites, host, &mut study, &file)?;
    let page = args.output.join("report.html");
    write(
        &page,
        &html::render(&shown::shown(&study, |f| study.measured.contains_key(f.measurement))),
    )?;
    let list = shown::shown(&study, wanted);
    let mut lines = if list.len() <= 3 { figures_text(&list) } else { text::summary(&list) };
    lines.push(String::new());
    lines.extend(ui::text::wrap(
        &format!("{} shows all of it; numbers are in {}.", page.display(), file.display()),
        "",
        0,
    ));
    print(&lines)?;
    Ok(code)
}

fn figures_text(list: &[Shown]) -> Vec<String> {
    list.iter().map(text::figure).collect::<Vec<_>>().join(&String::new())
}

fn report(args: &ReportArgs) -> anyhow::Result<i32> {
    if let Some(measured) = single::read(&args.input) {
        anyhow::ensure!(
            args.update.is_empty() && args.names.is_empty(),
            "{} is of one benchmark: it has no figures by name, and nothing for --update",
            args.input.display()
        );
        let list = single::shown(&measured)?;
        let is_drawn = args.html.is_some() || args.markdown.is_some() || args.plots.is_some();
        return if args.json || is_drawn {
            render(args, &list)
        } else {
            print(&figures_text(&list))
        };
    }
    let study = Study::read(&args.input).context(
        "no results: `lissom study run all --quick` makes some, and --input says where they are",
    )?;
    let list = shown::shown(
        &study,
        is_wanted(&args.names, |f| study.measured.contains_key(f.measurement)),
    );
    for path in &args.update {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        write(path, &headline::update(&text, &study).with_context(name)?)?;
    }
    render(args, &list)
}

fn render(args: &ReportArgs, list: &[Shown]) -> anyhow::Result<i32> {
    if let Some(folder) = &args.plots {
        plots(folder, list)?;
    }
    if let Some(path) = &args.html {
        write(path, &html::render(list))?;
    }
    if let Some(path) = &args.markdown {
        let place = args.plots.as_ref().map(|plots| relative(path, plots));
        write(path, &page::render(list, place.as_deref()))?;
    }
    if args.json {
        let figures: Vec<_> =
            list.iter().map(|s| json!({ "name": s.figure.name, "panels": s.panels })).collect();
        return print_text(&ui::output::json(&figures));
    }
    if args.tables {
        return print(&figures_text(list));
    }
    let is_written = args.html.is_some() || args.markdown.is_some() || args.plots.is_some();
    if !is_written && args.update.is_empty() {
        return print(&text::summary(list));
    }
    Ok(0)
}

/// Those of other panels that were there before are left alone.
fn plots(folder: &Path, list: &[Shown]) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for shown in list {
        for (i, panel) in shown.panels.iter().enumerate() {
            if let Some(svg) = plot::alone(panel) {
                write(&folder.join(page::plot_name(shown, i)).with_extension("svg"), &svg)?;
            }
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// From a page to a folder beside it or below; as it is, if it is elsewhere.
fn relative(page: &Path, folder: &Path) -> String {
    let base = page.parent().unwrap_or(Path::new(""));
    folder.strip_prefix(base).unwrap_or(folder).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_find_their_plots() {
        assert_eq!(relative(Path::new("docs/results.md"), Path::new("docs/plots")), "plots");
        assert_eq!(relative(Path::new("results.md"), Path::new("plots")), "plots");
        assert_eq!(relative(Path::new("a/results.md"), Path::new("/b")), "/b");
    }

    #[test]
    fn figures_are_chosen() {
        let names = [figures_of("own").expect("several")];
        let wanted = is_wanted(&names, |_| true);
        assert!(figures::all().all(|f| wanted(f) == (f.source == figures::Source::Own)));
    }
}
