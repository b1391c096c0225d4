//! `lissom study list`, `run` and `report`: reproduce figures of papers on this machine.
//!
//! A figure (figures/) is a view of a measurement (measurements.rs), which is a command of lissom.
//! `run` runs the commands of the wanted figures, each once, and stores their reports in a file
//! (store.rs). Renderings: text.rs for the terminal, html.rs as a page, page.rs as Markdown.

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
use itertools::Itertools as _;
use serde_json::{Value, json};

use figures::Figure;
use shown::Shown;
use store::Study;

/// Reproduce the figures of four papers on this machine, and more
#[derive(Subcommand)]
pub enum Verb {
    List(ListArgs),
    Run(RunArgs),
    Report(ReportArgs),
}

/// The machine that measures, and the build of lissom.
pub struct Host {
    /// Number of CPUs that this process may use.
    pub cpus: u32,
    /// Description of the machine, as in reports of benchmarks.
    pub machine: Value,
    pub version: String,
    /// Commit of the build, if known.
    pub commit: Option<String>,
    /// Whether files of the build differed from that commit.
    pub dirty: bool,
}

/// Run a verb. Returns the exit code. Only `run` calls `host`.
pub fn study(verb: &Verb, host: impl FnOnce() -> anyhow::Result<Host>) -> anyhow::Result<i32> {
    match verb {
        Verb::List(args) => list(args),
        Verb::Run(args) => run(args, &host()?),
        Verb::Report(args) => report(args),
    }
}

/// List the figures and measurements
#[derive(Args)]
pub struct ListArgs {
    #[command(flatten)]
    json: ui::output::Json,
}

/// Measure figures of the study, and show them
///
/// Each figure takes at most ten minutes, with --quick one. The numbers and a page that shows them
/// are stored in a folder; a later run adds to them.
///
/// Run it on a machine that does nothing else. Another load makes the numbers worthless, and the
/// report shows it as noise.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0 if everything ran, 1 if something failed or was too slow under
lissom, 2 if options are wrong. Ctrl-C ends the run; complete numbers are stored
and shown.

Examples:
  lissom study run all --quick
  lissom study run hpdc-fig11 own-threads
  lissom study run hpdc --suite ~/NPB3.4.2/NPB3.4-OMP")]
pub struct RunArgs {
    /// Names of figures; hpdc, smt, em, apple and own select all of a source, and `all` all figures
    #[arg(value_name = "NAME", required = true, value_parser = figures::checked)]
    names: Vec<String>,

    /// Measure less work in fewer rounds, at most a minute a figure. The numbers are noisier
    #[arg(long)]
    quick: bool,

    /// Skip measurements that are already stored
    #[arg(long)]
    missing: bool,

    /// Folder for results.json and report.html
    #[arg(short, long, value_name = "DIR", default_value = "lissom-study")]
    output: PathBuf,

    /// Also measure the original programs of a suite that you have built, as `lissom bench programs
    /// --suite` does. May be repeated
    #[arg(long = "suite", value_name = "DIR")]
    suites: Vec<PathBuf>,
}

/// Show the stored numbers, without measuring
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0, 1 if the results or a file cannot be read or written, 2 if options
are wrong.

Examples:
  lissom study report all --html study.html
  lissom bench --json=app.json -- ./app
  lissom study report --input app.json --html app.html")]
pub struct ReportArgs {
    /// Names of figures; hpdc, smt, em, apple and own select all of a source, and `all` all figures
    /// [default: all figures that were measured]
    #[arg(value_name = "NAME", value_parser = figures::checked)]
    names: Vec<String>,

    /// Results of `lissom study run`, or the --json=FILE of one benchmark, such as `lissom bench --
    /// CMD`
    #[arg(short, long, value_name = "FILE", default_value = "lissom-study/results.json")]
    input: PathBuf,

    /// Write an HTML page to this file. It needs no other file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the figures as Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Write each plot as SVG into this folder. The page of --markdown then shows them
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Replace the table of training in this file, between its lines `<!-- figures -->` and
    /// `<!-- end of figures -->`. May be repeated
    #[arg(long, value_name = "FILE")]
    update: Vec<PathBuf>,

    /// Print the tables of the figures, not only their averages
    #[arg(long)]
    tables: bool,

    #[command(flatten)]
    json: ui::output::Json,
}

/// Return a filter that selects the named figures. Without names, `or` selects them.
fn is_wanted(names: &[String], or: impl Fn(&Figure) -> bool) -> impl Fn(&Figure) -> bool {
    move |figure| {
        if names.is_empty() { or(figure) } else { names.iter().any(|n| figure.is_called(n)) }
    }
}

fn print(lines: &[String]) -> anyhow::Result<i32> {
    ui::output::print((lines.join("\n") + "\n").as_bytes())?;
    Ok(0)
}

fn list(args: &ListArgs) -> anyhow::Result<i32> {
    let output = args.json.open()?;
    let document = || {
        let figures: Vec<_> = figures::all()
            .map(|f| {
                json!({ "name": f.name, "source": f.source().name(), "number": f.number(),
                        "title": f.title,
                        "measurement": f.measurement, "shows": f.shows, "elsewhere": f.elsewhere,
                        "command": f.measurement().full, "quick": f.measurement().quick })
            })
            .collect();
        ui::output::json(&figures)
    };
    let head =
        "Figures of `lissom study run NAME...`; hpdc, smt, em, apple, own and all select several.";
    let mut lines = ui::text::wrap(head, "", 0);
    for source in figures::SOURCES {
        lines.push(String::new());
        lines.extend(ui::text::wrap(source.title(), "", 2));
        for figure in figures::all().filter(|f| f.source() == source) {
            let head = format!("  {:<16}{:<9}", figure.name, figure.number());
            lines.extend(ui::text::wrap(figure.title, &head, 27));
        }
    }
    lines.push(String::new());
    lines.push("Measurements (several figures may show the same one):".into());
    for measurement in measurements::MEASUREMENTS {
        lines.extend(ui::text::wrap(measurement.what, &format!("  {:<22}", measurement.name), 24));
    }
    output.write(document, || lines.join("\n") + "\n")?;
    Ok(0)
}

fn run(args: &RunArgs, host: &Host) -> anyhow::Result<i32> {
    let wanted = is_wanted(&args.names, |_| true);
    fs::create_dir_all(&args.output).map_err(|e| {
        let folder = args.output.display();
        anyhow::anyhow!("cannot create the folder {folder}: {e}; pass another one by --output")
    })?;
    let file = args.output.join("results.json");
    let mut study = Study::read_or_empty(&file)?;
    let is_needed = |m: &&str| !(args.missing && study.measured.contains_key(*m));
    let measurements = figures::all().filter(|f| wanted(f)).map(|f| f.measurement).unique();
    let needed: Vec<&str> = measurements.filter(is_needed).collect();
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
        &format!("{} shows all figures; the numbers are in {}.", page.display(), file.display()),
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
        return render(args, &single::shown(&measured)?, figures_text);
    }
    let study = Study::read(&args.input)
        .context("no results: run `lissom study run all --quick` first, or pass --input")?;
    let list = shown::shown(
        &study,
        is_wanted(&args.names, |f| study.measured.contains_key(f.measurement)),
    );
    for path in &args.update {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        write(path, &headline::update(&text, &study).with_context(name)?)?;
    }
    render(args, &list, text::summary)
}

/// `usual`: the text without --tables.
fn render(
    args: &ReportArgs,
    list: &[Shown],
    usual: impl Fn(&[Shown]) -> Vec<String>,
) -> anyhow::Result<i32> {
    let output = args.json.open()?;
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
    let document = || {
        let figures: Vec<_> =
            list.iter().map(|s| json!({ "name": s.figure.name, "panels": s.panels })).collect();
        ui::output::json(&figures)
    };
    let is_written = args.html.is_some() || args.markdown.is_some() || args.plots.is_some();
    let lines = match args.tables {
        true => figures_text(list),
        false if is_written || !args.update.is_empty() => Vec::new(),
        false => usual(list),
    };
    let text = if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" };
    output.write(document, || text)?;
    Ok(0)
}

/// Write the plots of all panels. Other files in the folder remain.
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

/// Return the path from a page to a folder beside or below it. Returns any other path unchanged.
fn relative(page: &Path, folder: &Path) -> String {
    let base = page.parent().unwrap_or(Path::new(""));
    folder.strip_prefix(base).unwrap_or(folder).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_find_their_plots() {
        assert_eq!(
            relative(Path::new("docs/results/study.md"), Path::new("docs/results/plots")),
            "plots"
        );
        assert_eq!(relative(Path::new("results.md"), Path::new("plots")), "plots");
        assert_eq!(relative(Path::new("a/results.md"), Path::new("/b")), "/b");
    }

    #[test]
    fn figures_are_chosen() {
        let names = ["own".to_string()];
        let wanted = is_wanted(&names, |_| true);
        assert!(figures::all().all(|f| wanted(f) == (f.source() == figures::Source::Own)));
    }
}
