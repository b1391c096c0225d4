//! The programs of workloads/, which this binary carries as sources and compiles where it runs.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::Session;

/// The name of the source without its `.c`, and the flags that it needs beside the usual ones:
/// behind the source, so libraries work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Program(&'static str, &'static [&'static str]);

pub const SYNC: Program = Program("sync", &["-pthread"]);
pub const SYNC_OMP: Program = Program("sync_omp", &["-fopenmp"]);
pub const SPIN: Program = Program("spin", &["-pthread"]);
pub const SPIN_OMP: Program = Program("spin_omp", &["-fopenmp"]);
pub const POOL: Program = Program("pool", &["-pthread"]);
pub const SWITCH: Program = Program("switch", &["-pthread"]);
pub const LOCALITY: Program = Program("locality", &["-pthread"]);
/// A library, to be preloaded.
pub const LOCKS: Program = Program("locks/preload", &["-shared", "-fPIC", "-ldl"]);
pub const SCHEDULE: Program = Program("schedule", &[]);
pub const WORK: Program = Program("work", &["-pthread"]);
pub const IDLE: Program = Program("idle", &["-pthread"]);
pub const OMP_LOOPS: Program = Program("omp_loops", &["-fopenmp"]);
pub const EP: Program = Program("ep", &["-fopenmp", "-lm"]);
pub const CG: Program = Program("cg", &["-fopenmp", "-lm"]);
pub const PARTICLE: Program = Program("particle", &["-fopenmp", "-lm"]);
pub const STENCIL: Program = Program("stencil", &["-fopenmp"]);
pub const PATHFINDER: Program = Program("pathfinder", &["-fopenmp"]);
pub const BLACKSCHOLES: Program = Program("blackscholes", &["-pthread", "-lm"]);
pub const FFT3D: Program = Program("fft3d", &["-pthread", "-lfftw3_threads", "-lfftw3", "-lm"]);

macro_rules! sources {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("../../workloads/", $name)))),*] };
}

/// Each program includes some of the headers; all are written, side by side as they are in
/// workloads/.
const SOURCES: &[(&str, &str)] = &sources! {
    "sync.c" "sync_omp.c" "omp_loops.c" "spin.c" "spin_omp.c" "work.c" "pool.c" "switch.c" "locality.c" "known.c" "handover.h" "idle.c" "schedule.c"
    "ep.c" "cg.c" "particle.c" "stencil.c" "pathfinder.c" "blackscholes.c" "fft3d.c" "mix.h"
    "suite.h" "sync.h" "threads.h" "spin.h" "spin_block.h" "spin_sensitivity.h"
    "locks/all.h" "locks/aqs.h" "locks/array.h" "locks/clh.h" "locks/cna.h" "locks/instance.h" "locks/lock.h"
    "locks/loops.h" "locks/malthusian.h" "locks/mcs.h" "locks/numa.h" "locks/partitioned.h" "locks/pthread.h"
    "locks/preload.c" "locks/preload.h" "locks/mutexee.h" "locks/mcs_tp.h" "locks/shfllock.h" "locks/queued.h" "locks/ticket.h" "locks/ttas.h"
};

/// What `lissom run --stats` counts.
const ABI: &str = include_str!("../../runtime/abi.h");

fn compiler() -> OsString {
    std::env::var_os("CC").filter(|c| !c.is_empty()).unwrap_or_else(|| "cc".into())
}

pub fn compiler_version(session: &Session) -> String {
    let text = session.output(&[compiler(), "--version".into()]).unwrap_or_default();
    text.lines().next().unwrap_or_default().into()
}

/// Into the session's own folder each time: it takes a moment, and nothing has to be trusted or
/// found stale.
pub fn compile(session: &Session, program: Program) -> anyhow::Result<PathBuf> {
    let Program(name, flags) = program;
    let folder = session.scratch.path();
    let built = folder.join(name);
    if built.exists() {
        return Ok(built);
    }
    std::fs::create_dir_all(folder.join("locks")).context("the session's folder")?;
    for (name, text) in SOURCES.iter().chain([&("abi.h", ABI)]) {
        session.scratch.write(name, text)?;
    }
    let mut command = vec![compiler(), "-std=gnu11".into(), "-O2".into()];
    command.push(folder.join(format!("{name}.c")).into());
    command.extend(flags.iter().map(OsString::from));
    command.extend(["-o".into(), built.clone().into()]);
    session.output(&command).context(
        "a workload cannot be compiled (on Debian: apt-get install gcc libc6-dev; CC names the compiler)",
    )?;
    Ok(built)
}

/// Adds options of a workload.
pub fn add(command: &mut Vec<OsString>, options: &[(&str, f64)]) {
    command.extend(
        options.iter().flat_map(|(name, value)| [OsString::from(name), value.to_string().into()]),
    );
}

#[derive(Args)]
pub struct Calibration {
    /// Iterations of the work loop that take a microsecond [default: measured first].
    /// Give that of an earlier run (iterations_per_us in its JSON) to compare with it
    #[arg(id = "calibration", long = "calibration", value_name = "N", value_parser = super::positive)]
    given: Option<f64>,
}

impl Calibration {
    pub(super) fn per_us(&self, session: &Session) -> anyhow::Result<f64> {
        self.given.map_or_else(|| calibrate(session), Ok)
    }
}

/// Iterations of the workloads' loop that take a microsecond, with as many threads as CPUs.
fn calibrate(session: &Session) -> anyhow::Result<f64> {
    let threads = session.cpus().to_string();
    let command =
        [compile(session, SYNC)?.into(), "calibrate".into(), "--threads".into(), threads.into()];
    let output = session.output(&command).context(
        "the workloads cannot be run (TMPDIR must name a folder in which programs may be executed)",
    )?;
    let output: serde_json::Value =
        serde_json::from_str(&output).context("the calibration's output")?;
    output["iterations_per_us"]
        .as_f64()
        .filter(|n| *n > 0.0)
        .context("the calibration measured nothing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_source_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
        let files = |folder: &str| {
            let entries = std::fs::read_dir(root.join(folder)).expect("a folder");
            entries
                .map(|e| e.expect("an entry").file_name().into_string().expect("ASCII"))
                .collect::<Vec<_>>()
        };
        let mut there: Vec<String> =
            files(".").into_iter().filter(|n| n.ends_with(".c") || n.ends_with(".h")).collect();
        there.extend(files("locks").iter().map(|n| format!("locks/{n}")));
        there.sort();
        let mut carried: Vec<&str> = SOURCES.iter().map(|s| s.0).collect();
        carried.sort_unstable();
        assert_eq!(carried, there);
    }
}
