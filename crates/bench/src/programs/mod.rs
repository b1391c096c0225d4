//! `lissom bench programs`: whole programs with more threads than CPUs.

mod catalogue;
pub mod check;
pub mod papers;
pub mod show;
pub mod suites;

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use self::catalogue::{ALL, Maker, QUICK};
pub use self::catalogue::{Kind, Ready};
use self::papers::{PAPERS, Paper, SUITES};
use self::suites::Suites;
use super::harness::{BOUND, Beside, Group, Measured, SECONDS};
use super::workload::Calibration;
use super::{Bench, Common, Session};

/// Measure whole programs with more threads than CPUs
///
/// The bound is the program natively with one thread per CPU. Native and lissom
/// have --factor times as many threads, or --threads. Programs that are not
/// installed are left out; the report names them.
///
///   none      ep (random numbers, OpenMP), blackscholes, blastn, pigz, xz, zstd,
///             sort: programs that hardly synchronize
///   blocking  histgb (scikit-learn), lightgbm, x264, fft3d (FFTW), barrier, cond
///   mixed     cg, particlefilter, stencil, pathfinder (OpenMP), pool (a thread
///             pool like that of llama.cpp): they busy-wait for a while, then block
///   spinning  pipeline, spin-barrier, omp-flags (like NPB's LU), omp-active
///
/// Programs written from the specifications of the papers' suites run only if you
/// name them or a suite (npb, parsec, splash, rodinia). --scale selects the class:
/// below 0.5 S or `test`, from 0.5 W or `small`, from 4 A or `medium`, from 16 B or
/// `large`.
///
///   npb-      ep, is, cg, mg, ft, lu, sp, bt, ua
///   parsec-   streamcluster, fluidanimate, blackscholes, swaptions, dedup,
///             canneal, freqmine
///   splash-   ocean, radix, lu_cb, barnes, volrend
///   rodinia-  srad, heartwall, leukocyte, particlefilter, pathfinder
///
/// Programs that may take 10,000 times as long natively do as many rounds as fit.
/// All others do the same work in each run, and must produce the same result.
///
/// All programs together take ten minutes on 2 CPUs, with --quick --runs 3 one.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct ProgramsArgs {
    /// Programs to measure [default: all except those of suites; with --quick nine]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(all_names()))]
    pub names: Vec<String>,

    /// Measure only programs that synchronize in this way [default: all]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub kind: Vec<Kind>,

    /// Threads per CPU [default: 4]
    #[arg(long, value_name = "N", value_parser = super::thread_count(), conflicts_with = "threads")]
    pub factor: Option<u32>,

    /// Numbers of threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    /// Numbers of CPUs that the programs may use [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub cpus: Vec<u32>,

    /// Measure nine programs with a tenth of the work
    #[arg(long)]
    pub quick: bool,

    /// Run N busy processes beside each program. The bound runs without them, and its time is
    /// multiplied by (CPUs + N) / CPUs: the time with its share of the CPUs
    #[arg(long, value_name = "N", value_parser = super::thread_count(), conflicts_with = "hog")]
    pub beside: Option<u32>,

    #[command(flatten)]
    pub suites: Suites,

    /// JSON file with programs of your own: [{"name": ..., "command": [..., "{threads}"], "kind":
    /// "blocking", "check": ...}]. `check` is a text that the output must contain
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,

    /// Python with scikit-learn and LightGBM [default: target/venv/bin/python3 if it exists,
    /// otherwise python3]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,

    #[command(flatten)]
    pub calibration: Calibration,

    #[command(flatten)]
    pub common: Common,
}

fn all_names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|p| p.0).chain(PAPERS.iter().map(|p| p.name)).chain(SUITES)
}

/// Default of --timeout, in seconds. Spinning programs may never finish natively.
const LIMIT: f64 = 60.0;
const QUICK_LIMIT: f64 = 8.0;

impl ProgramsArgs {
    fn scale(&self) -> f64 {
        self.common.scale * if self.quick { 0.1 } else { 1.0 }
    }

    fn of_suites(&self) -> impl Iterator<Item = &'static Paper> {
        PAPERS.iter().filter(|p| {
            let named = self.names.iter().any(|n| n == p.name || p.is_of(n));
            named && (self.kind.is_empty() || self.kind.contains(&p.kind))
        })
    }

    fn wanted(&self) -> impl Iterator<Item = (&'static str, Kind)> {
        let suites = self.catalogue.is_some() || self.suites.are_given();
        ALL.iter().copied().filter(move |(name, kind)| {
            let named = match (self.names.is_empty(), self.quick) {
                // --suite and --catalogue replace the default programs.
                (true, _) if suites => false,
                (true, true) => QUICK.contains(name),
                (true, false) => true,
                (false, _) => self.names.iter().any(|n| n == name),
            };
            named && (self.kind.is_empty() || self.kind.contains(kind))
        })
    }
}

pub fn prepare(args: &ProgramsArgs, session: &Session) -> anyhow::Result<Bench> {
    let timeout = args.common.timeout(if args.quick { QUICK_LIMIT } else { LIMIT });
    let maker = Maker {
        session,
        scale: args.scale(),
        per_us: args.calibration.per_us(session)?,
        python: args.python.clone(),
    };
    let (mut programs, mut notes) = (Vec::new(), Vec::new());
    let own = args.wanted().map(|(name, kind)| (name, maker.make(name, kind)));
    let of_suites = args.of_suites().map(|p| (p.name, p.make(session, args.scale())));
    for (name, made) in own.chain(of_suites) {
        match made {
            Ok(ready) => programs.push(ready),
            Err(error) => notes.push(format!("{name} is left out: {error:#}")),
        }
    }
    programs.extend(args.suites.programs()?);
    if let Some(file) = &args.catalogue {
        programs.extend(suites::catalogue(file)?);
    }
    if programs.is_empty() {
        bail!("nothing to measure: {}", notes.join("; "));
    }
    let cpus = super::numbers_of_cpus(&args.cpus, session)?;
    let compile = || super::workload::compile(session, super::workload::SYNC);
    let hog = args.beside.map(|_| compile()).transpose()?;
    let (mut groups, mut kinds) = (Vec::new(), serde_json::Map::new());
    for program in &programs {
        for &cpus in &cpus {
            let default = args.factor.unwrap_or(4) * cpus;
            for threads in super::or_default(&args.threads, [default]) {
                let workload = super::with_cpus(&program.name, &args.cpus, cpus);
                kinds.insert(workload.clone(), json!(program.kind));
                let beside = hog.as_ref().zip(args.beside).map(|(program, hogs)| Beside {
                    program: program.clone(),
                    hogs,
                    factor: f64::from(cpus + hogs) / f64::from(cpus),
                });
                let group = group(program, args, &maker, cpus, threads, timeout);
                groups.push(Group { workload, beside, ..group });
            }
        }
    }
    if let Some(hogs) = args.beside {
        notes.push(format!(
            "Beside {hogs} busy processes. The bound ran without them; its time is multiplied by \
             (CPUs + {hogs}) / CPUs."
        ));
    }
    Ok(Bench {
        name: "programs",
        timeout,
        groups,
        parameters: json!({ "iterations_per_us": maker.per_us, "scale": maker.scale, "kinds": kinds, "beside": args.beside }),
        notes,
        summary: Some(intervals),
        ..Bench::default()
    })
}

/// Prepare a program of the papers' suites, with the problem size for `scale`.
pub fn paper(name: &str, session: &Session, scale: f64) -> anyhow::Result<Ready> {
    Paper::find(name)?.make(session, scale)
}

fn group(
    program: &Ready,
    args: &ProgramsArgs,
    maker: &Maker,
    cpus: u32,
    threads: u32,
    limit: f64,
) -> Group {
    let mut scenarios =
        super::scenarios(threads, Some(cpus), &args.common, |threads| (program.command)(threads));
    for scenario in &mut scenarios {
        let threads = if scenario.name == BOUND { cpus } else { threads };
        scenario.effort = program.units.map(|units| maker.effort(units(threads), limit));
    }
    let limit = (program.metric.unit == SECONDS.unit).then_some(limit);
    let group = Group { limit, scenarios, ..program.group(threads) };
    group.around(&super::confined(cpus))
}

/// Return a note with the CPU time per wait of each program, from the runtime's counters.
fn intervals(groups: &[Measured]) -> Vec<String> {
    let of = |group: &Measured| {
        let interval = group.cells.iter().find_map(|c| c.counted?.interval_us())?;
        let text = if interval >= 1e6 {
            "over 1 s".into()
        } else {
            format!("{} us", super::table::number(interval))
        };
        Some(format!("{} {text}", group.workload))
    };
    let list: Vec<String> = groups.iter().filter_map(of).collect();
    if list.is_empty() {
        return vec![];
    }
    vec![format!("CPU time between two waits of a thread, under lissom: {}.", list.join(", "))]
}

#[cfg(test)]
mod tests {
    use super::super::chosen::tests::parse;
    use super::*;

    fn wanted(line: &str) -> Vec<&'static str> {
        let args: ProgramsArgs = parse(line).expect("good options");
        args.wanted().map(|w| w.0).collect()
    }

    #[test]
    fn what_is_measured() {
        assert_eq!(wanted("").len(), ALL.len());
        assert_eq!(wanted("--quick").len(), QUICK.len());
        assert_eq!(wanted("ep pool --quick"), ["ep", "pool"]);
        assert!(wanted("--kind spinning").iter().all(|n| n.contains("omp") || n.contains("pi")));
        assert!(wanted("--suite /npb").is_empty());
        assert!(parse::<ProgramsArgs>("--factor 2 --threads 3").is_err());
    }
}
