//! Specificity of the detection of busy-waiting: count the scans of working programs that are
//! mistaken for waits. The programs are common ones, and our loops that look like waiting.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context as _;
use fastrand::Rng;

use super::Session;
use super::command::{add, words};
use super::programs;
use super::sensitivity::scan_every;
use super::spin::SpinArgs;
use super::watch::{Watch, What, is_missing};
use super::workload::{self, WORK};

/// Programs that do not busy-wait. If they support threads, they usually have more than CPUs. NumPy
/// has only one, because the threads of its linear algebra library do busy-wait.
const PROGRAMS: &[(&str, &str, &str)] = &[
    // name, name of the process, shell script
    ("gzip", "gzip", "exec gzip -9 -c data data data data >/dev/null"),
    // Its threads block all signals: only the main thread is scanned.
    ("xz", "xz", "exec xz -T1 -2 -c data data data >/dev/null"),
    ("zstd", "zstd", "exec zstd -q -T8 -12 -c data >/dev/null"),
    ("sort", "sort", "exec sort --parallel=8 -S 64M data data data data -o /dev/null"),
    ("sha256sum", "sha256sum", "exec sha256sum $(yes data | head -n 30) >/dev/null"),
    ("gcc -O2", "cc1", "exec gcc -O2 -S big.c -o /dev/null"),
    ("python3", "python", "exec \"$PYTHON\" compute.py sums"),
    ("numpy linear algebra", "python", "exec \"$PYTHON\" compute.py algebra"),
    ("numpy FFT", "python", "exec \"$PYTHON\" compute.py fft"),
    ("reduction", "work", "exec ./work reduction --threads 8 --seconds 1"),
    ("delay loop", "work", "exec ./work delay --threads 8 --seconds 1"),
    ("random numbers", "work", "exec ./work random --threads 8 --seconds 1"),
];

/// Programs of workloads/npb whose threads do not busy-wait: all but LU.
const NPB: [&str; 8] =
    ["npb-is", "npb-ep", "npb-cg", "npb-mg", "npb-ft", "npb-sp", "npb-bt", "npb-ua"];
const ALL_OF_NPB: &str = "npb";
/// Default of --samples, except for NPB.
const SAMPLES: u64 = 10_000;
/// Default of --samples for NPB at --scale 1.
const SAMPLES_OF_NPB: f64 = 500_000.0;
/// Shortest and longest run of an NPB program, in seconds. A run has at least one round, and fits
/// into --timeout.
const SECONDS: (f64, f64) = (0.5, 4.0);
const THREADS_A_CPU: u32 = 4;

pub fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|p| p.0).chain(NPB).chain([ALL_OF_NPB])
}

const COMPUTE: &str = include_str!("../../../workloads/compute.py");

pub fn watches(args: &SpinArgs, session: &Session) -> anyhow::Result<Vec<Watch>> {
    let named = |name: &str| args.program.iter().any(|p| p == name);
    let mut watches = Vec::new();
    for name in NPB.into_iter().filter(|n| named(n) || named(ALL_OF_NPB)) {
        watches.extend(of_npb(name, args, session)?);
    }
    let wanted = |name: &str| args.program.is_empty() || named(name);
    if PROGRAMS.iter().any(|p| wanted(p.0)) {
        watches.extend(of_others(wanted, args, session)?);
    }
    Ok(watches)
}

/// Prepare a program of NPB. OpenMP blocks at once, as its own spinning would rightly be recognised
/// as a wait.
fn of_npb(name: &'static str, args: &SpinArgs, session: &Session) -> anyhow::Result<Vec<Watch>> {
    let scale = args.common.scale;
    let program = programs::paper(name, session, scale)?;
    let cpus = session.cpus();
    let samples = args.samples.unwrap_or((SAMPLES_OF_NPB * scale).ceil() as u64);
    let seconds = samples as f64 * args.period.as_secs_f64() / f64::from(cpus);
    let mut command = words!["env", "OMP_WAIT_POLICY=passive"];
    command.extend((program.command)(THREADS_A_CPU * cpus));
    add(&mut command, &[("--seconds", seconds.clamp(SECONDS.0, SECONDS.1))]);
    let watch = |switch| Watch {
        what: What::Specificity,
        name: name.into(),
        switch,
        outside: scan_every(args.period),
        options: vec!["--spin=observe"],
        command: command.clone(),
        process: name.trim_start_matches("npb-"),
        samples,
        missing: None,
        pairs: args.common.runs,
    };
    Ok(args.common.switches().map(watch).collect())
}

fn of_others(
    wanted: impl Fn(&str) -> bool,
    args: &SpinArgs,
    session: &Session,
) -> anyhow::Result<Vec<Watch>> {
    let folder = session.scratch.path();
    workload::compile(session, WORK)?;
    session.scratch.write("data", &data(8 << 20))?;
    session.scratch.write("big.c", &big_source(250))?;
    session.scratch.write("compute.py", COMPUTE)?;
    let mut python = args.python.clone().unwrap_or_else(super::ml::default_python);
    if python.components().count() > 1 {
        python = std::path::absolute(&python).context("--python")?; // for use in another folder
    }
    let import = words![&python, "-c", "import numpy"];
    let has_numpy = session.output(&import).is_ok();
    let mut watches = Vec::new();
    for &(name, process, script) in PROGRAMS.iter().filter(|p| wanted(p.0)) {
        let needed: OsString = match process {
            "cc1" => "gcc".into(),
            "python" => python.clone().into(),
            "work" => folder.join("work").into(),
            program => program.into(),
        };
        let missing = if name.starts_with("numpy") && !has_numpy {
            Some(format!("{} cannot import numpy", python.display()))
        } else {
            is_missing(&needed)
        };
        for switch in args.common.switches() {
            watches.push(Watch {
                what: What::Specificity,
                name: name.into(),
                switch,
                outside: vec![],
                options: vec!["--spin=observe"],
                command: command(folder, &python, script),
                process,
                samples: args.samples.unwrap_or(SAMPLES),
                missing: missing.clone(),
                pairs: 0,
            });
        }
    }
    Ok(watches)
}

fn command(folder: &Path, python: &Path, script: &str) -> Vec<OsString> {
    let mut python_set = OsString::from("PYTHON=");
    python_set.push(python);
    let threads = "OPENBLAS_NUM_THREADS=1";
    words!["env", "-C", folder, threads, python_set, "sh", "-c", script]
}

/// Generate `bytes` of lines of words, or a few more, which compress and sort well. The text is
/// always the same.
pub fn data(bytes: usize) -> String {
    let mut random = Rng::with_seed(1);
    let words: Vec<String> =
        (0..2000).map(|_| (0..2 + random.u64(..8)).map(|_| random.lowercase()).collect()).collect();
    let mut text = String::with_capacity(bytes + 256);
    while text.len() < bytes {
        for _ in 0..4 + random.u64(..12) {
            // Some words are far more frequent than others.
            let most = 1 + random.usize(..words.len());
            text.push_str(&words[random.usize(..most)]);
            text.push(' ');
        }
        text.push_str(&random.u64(..1_000_000).to_string());
        text.push('\n');
    }
    text
}

/// Generate C functions with loops and branches for an optimizer.
fn big_source(functions: u64) -> String {
    let mut random = Rng::with_seed(2);
    let mut text = String::from("#include <stddef.h>\n");
    for i in 0..functions {
        let mut n = |below| 1 + random.u64(..below);
        text.push_str(&format!(
            "long f{i}(const long *a, size_t n, long x) {{\n    long s = {}, t = x;\n\
             \x20   for (size_t i = 0; i < n; i++) {{\n        switch ((a[i] + t) % {}) {{\n\
             \x20       case 0: s += a[i] * {}; break;\n        case 1: t ^= s >> {}; break;\n\
             \x20       default: s = s > t ? s - {} : t * {} + a[n - i - 1];\n        }}\n    }}\n\
             \x20   return s + (t < {} ? t : x / {});\n}}\n",
            n(9),
            2 + n(5),
            n(99),
            n(30),
            n(999),
            n(9),
            n(9999),
            n(99),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use itertools::Itertools as _;

    #[test]
    fn materials_are_the_same_each_time_and_as_large_as_asked() {
        let text = data(10_000);
        assert!(text.len() >= 10_000 && text.len() < 11_000 && text == data(10_000));
        let source = big_source(3);
        assert_eq!(source.matches("long f").count(), 3);
        assert_eq!(source.matches('{').count(), source.matches('}').count());
    }

    #[test]
    fn names_are_unique() {
        assert!(names().all_unique());
    }
}
