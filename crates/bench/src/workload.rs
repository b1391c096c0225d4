//! The programs of workloads/. This binary contains their sources, and compiles them where it runs.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use include_dir::{Dir, include_dir};

use super::Session;
use super::command::words;

/// The name of a source file without its `.c`, and extra compiler flags. The flags follow the
/// source on the command line, as libraries must.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Program(pub &'static str, pub &'static [&'static str]);

pub const SYNC: Program = Program("sync", &["-pthread"]);
pub const SYNC_OMP: Program = Program("sync_omp", &["-fopenmp"]);
pub const SPIN: Program = Program("spin", &["-pthread"]);
pub const SPIN_OMP: Program = Program("spin_omp", &["-fopenmp"]);
pub const POOL: Program = Program("pool", &["-pthread"]);
pub const SWITCH: Program = Program("switch", &["-pthread"]);
pub const LOCALITY: Program = Program("locality", &["-pthread"]);
/// A library for LD_PRELOAD.
pub const LOCKS: Program = Program("locks/preload", &["-shared", "-fPIC", "-ldl"]);
/// A library for LD_PRELOAD.
pub const PIN: Program = Program("pin", &["-shared", "-fPIC", "-pthread", "-ldl"]);
pub const SCHEDULE: Program = Program("schedule", &[]);
pub const WORK: Program = Program("work", &["-pthread"]);
pub const IDLE: Program = Program("idle", &["-pthread"]);
pub const OMP_LOOPS: Program = Program("omp_loops", &["-fopenmp"]);
pub const STENCIL: Program = Program("stencil", &["-fopenmp"]);
pub const PATHFINDER: Program = Program("pathfinder", &["-fopenmp"]);
pub const BLACKSCHOLES: Program = Program("blackscholes", &["-pthread", "-lm"]);
pub const FFT3D: Program = Program("fft3d", &["-pthread", "-lfftw3_threads", "-lfftw3", "-lm"]);

/// All of workloads/: programs include headers from there.
static SOURCES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../workloads");

/// The layout of the counters of `lissom run --stats`, which workloads/spin_sensitivity.h reads.
const ABI: &str = include_str!("../../../runtime/abi.h");

fn compiler() -> OsString {
    std::env::var_os("CC").filter(|c| !c.is_empty()).unwrap_or_else(|| "cc".into())
}

pub fn compiler_version(session: &Session) -> String {
    let text = session.output(&[compiler(), "--version".into()]).unwrap_or_default();
    text.lines().next().unwrap_or_default().into()
}

/// Compile a program into the session's folder, unless it is there. Returns its path. Programs are
/// not kept between sessions: compiling is fast, and a kept one may be stale or untrusted.
pub fn compile(session: &Session, program: Program) -> anyhow::Result<PathBuf> {
    let Program(name, flags) = program;
    let folder = session.scratch.path();
    let built = folder.join(name);
    if built.exists() {
        return Ok(built);
    }
    if !folder.join("abi.h").exists() {
        SOURCES.extract(folder).context("cannot write the workloads' sources")?;
        session.scratch.write("abi.h", ABI)?;
    }
    let mut command = words![compiler(), "-std=gnu11", "-O2", folder.join(format!("{name}.c"))];
    command.extend(flags.iter().map(OsString::from));
    command.extend(words!["-o", &built]);
    session.output(&command).context(
        "cannot compile a workload (on Debian: apt-get install gcc libc6-dev; CC selects the compiler)",
    )?;
    Ok(built)
}

/// Compile the program of the pattern `name`. None: the compiler lacks OpenMP, but can compile the
/// other patterns. Then adds a note.
pub fn compile_if_possible(
    session: &Session,
    name: &str,
    program: Program,
    notes: &mut Vec<String>,
) -> anyhow::Result<Option<PathBuf>> {
    match compile(session, program) {
        Err(error) if program.1.contains(&"-fopenmp") => {
            notes.push(format!("{name} is left out: {error:#}"));
            Ok(None)
        }
        compiled => compiled.map(Some),
    }
}

#[derive(Args)]
pub struct Calibration {
    /// Iterations of the work loop per microsecond [default: measured first]. To compare with an
    /// earlier run, pass its value (iterations_per_us in its JSON)
    #[arg(id = "calibration", long = "calibration", value_name = "N", value_parser = super::positive)]
    given: Option<f64>,
}

impl Calibration {
    pub(super) fn per_us(&self, session: &Session) -> anyhow::Result<f64> {
        self.given.map_or_else(|| calibrate(session), Ok)
    }
}

/// Measure the iterations per microsecond of the workloads' loop, with one thread per CPU.
fn calibrate(session: &Session) -> anyhow::Result<f64> {
    let threads = session.cpus().to_string();
    let command = words![compile(session, SYNC)?, "calibrate", "--threads", threads];
    let output = session.output(&command).context(
        "cannot run the workloads (TMPDIR must name a folder that is not mounted noexec)",
    )?;
    let output: serde_json::Value =
        serde_json::from_str(&output).context("cannot parse the calibration's output")?;
    output["iterations_per_us"]
        .as_f64()
        .filter(|n| *n > 0.0)
        .context("the calibration measured nothing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn names(dir: &Dir) -> Vec<String> {
        let files = dir.files().map(|f| f.path().display().to_string());
        files.chain(dir.dirs().flat_map(names)).collect()
    }

    fn below(folder: &Path, prefix: &str) -> Vec<String> {
        let mut list = Vec::new();
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = format!("{prefix}{}", entry.file_name().to_str().expect("ASCII"));
            if entry.path().is_dir() {
                list.extend(below(&entry.path(), &format!("{name}/")));
            } else {
                list.push(name);
            }
        }
        list
    }

    /// `include_dir!` does not notice new files.
    #[test]
    fn every_source_is_carried() {
        let mut there = below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads"), "");
        let mut carried = names(&SOURCES);
        there.sort();
        carried.sort();
        assert_eq!(carried, there);
    }
}
