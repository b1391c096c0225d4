//! `lissom bench ml`: gradient boosting, by native libraries that people do run with too many
//! threads.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::command::{add, words};
use super::harness::{Group, Metric};
use super::{Bench, Common, Session, scenarios};

/// Measure training with LightGBM and scikit-learn's HistGradientBoosting
#[derive(Args)]
pub struct MlArgs {
    /// Libraries to measure [default: all]
    #[arg(value_enum, value_name = "LIBRARY")]
    pub libraries: Vec<Library>,

    /// Numbers of threads [default: 2,8,32]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    /// Numbers of training samples; with more samples, threads wait less often
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "20000,100000",
        value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    pub rows: Vec<u32>,

    /// Python with these libraries [default: target/venv/bin/python3, which `make bench` creates,
    /// if it exists, otherwise python3]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Library {
    /// scikit-learn's HistGradientBoostingRegressor
    Histgb,
    /// LightGBM's LGBMRegressor
    Lightgbm,
}

impl Library {
    /// Return the library's name in workloads/ml.py, and its Python module.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Library::Histgb => ("histgb", "sklearn"),
            Library::Lightgbm => ("lightgbm", "lightgbm"),
        }
    }
}

pub const PROGRAM: &str = include_str!("../../../workloads/ml.py");
const TREES: f64 = 100.0;
const TIME: Metric = Metric::ratio("seconds", "seconds of training");

/// Field of the output that all runs must share, and its tolerance: sums, and so the models, depend
/// slightly on the order of the threads.
const SAME_MODEL: (&str, f64) = ("error", 0.05);

/// Python script that imports each module named on its command line. It prints versions and errors.
const PROBE: &str = "\
import importlib, json, platform, sys
found = {'python': platform.python_version()}
missing = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.import_module(name).__version__
    except Exception as e:
        missing[name] = f'{type(e).__name__}: {e}'
print(json.dumps({'found': found, 'missing': missing}))
";

pub fn prepare(args: &MlArgs, session: &Session) -> anyhow::Result<Bench> {
    let python = args.python.clone().unwrap_or_else(default_python);
    let libraries = match args.libraries.as_slice() {
        [] => &[Library::Histgb, Library::Lightgbm],
        asked => asked,
    };
    let versions = probe(session, &python, libraries)?;
    let program = session.scratch.write("ml.py", PROGRAM)?;
    let threads = if args.threads.is_empty() { &[2, 8, 32] } else { args.threads.as_slice() };
    let trees = (TREES * args.common.scale).ceil();
    let mut groups = Vec::new();
    for (library, rows) in libraries.iter().flat_map(|l| args.rows.iter().map(move |r| (l, r))) {
        let name = library.names().0;
        let command = |threads: u32| {
            let mut command = words![&python, &program, "--library", name];
            let numbers =
                [("--threads", threads.into()), ("--trees", trees), ("--rows", (*rows).into())];
            add(&mut command, &numbers);
            command
        };
        groups.extend(threads.iter().map(|&threads| Group {
            workload: if args.rows.len() > 1 { format!("{name}-{rows}") } else { name.into() },
            threads,
            same: Some(SAME_MODEL),
            scenarios: scenarios(threads, Some(session.cpus()), &args.common, command),
            ..Group::of(TIME)
        }));
    }
    Ok(Bench {
        name: "ml",
        timeout: args.common.timeout(120.0),
        groups,
        parameters: json!({ "versions": versions, "trees": trees, "rows": args.rows }),
        ..Bench::default()
    })
}

/// Return target/venv/bin/python3 of the source tree, or else `python3`. The source tree is that of
/// this binary, or the working directory.
pub fn default_python() -> PathBuf {
    let built = std::env::current_exe().ok();
    let target = built.as_deref().and_then(Path::parent).and_then(Path::parent);
    [target, Some(Path::new("target"))]
        .into_iter()
        .flatten()
        .map(|target| target.join("venv/bin/python3"))
        .find(|python| python.exists())
        .unwrap_or_else(|| "python3".into())
}

fn probe(session: &Session, python: &Path, libraries: &[Library]) -> anyhow::Result<Value> {
    let mut command = words![python, "-c", PROBE, "numpy"];
    command.extend(libraries.iter().map(|l| l.names().1.into()));
    let output =
        session.output(&command).context("cannot run Python; --python selects another one")?;
    let mut answer: Value =
        serde_json::from_str(&output).context("cannot parse Python's output")?;
    if let Some((module, error)) = answer["missing"].as_object().and_then(|m| m.iter().next()) {
        bail!(
            "{} has no usable module {module} ({}). `make bench` installs it into target/venv; or run \
             `python3 -m venv DIR` and `DIR/bin/pip install numpy scikit-learn lightgbm`, and pass \
             --python DIR/bin/python3",
            python.display(),
            error.as_str().unwrap_or_default(),
        );
    }
    Ok(answer["found"].take())
}
