//! The programs: how to prepare, start and check each.

use std::ffi::OsString;

use anyhow::bail;
use clap::ValueEnum;
use serde::Serialize;

use super::super::background::Bad;
use super::super::child::Ended;
use super::super::command::{split, words};
use super::super::harness::{Check, Effort, Group, Metric, SECONDS};
use super::super::mixes::programs as mixes;
use super::super::specificity::data;
use super::super::workload::{self, POOL};
use super::super::{Session, spin, sync, watch};
use super::check;

/// How the threads of a program usually wait for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Threads hardly wait for each other
    None,
    /// Threads wait in futexes
    Blocking,
    /// Threads busy-wait
    Spinning,
    /// Threads busy-wait for a while, then block in futexes
    Mixed,
}

/// A program that is ready to run.
pub struct Ready {
    pub name: String,
    pub kind: Kind,
    /// Build the command for a number of threads.
    pub command: Box<dyn Fn(u32) -> Vec<OsString>>,
    pub metric: Metric,
    /// Check of the output, the same for all runs.
    pub check: Option<Check>,
    /// Units of the metric per round, for a number of threads, if the program takes `--rounds`.
    /// Such a program may take 10,000 times as long natively as it should.
    pub units: Option<fn(u32) -> f64>,
    pub environment: &'static [&'static str],
}

impl Ready {
    /// Return a program whose time is measured from start to end, without a check.
    pub fn of(
        name: impl Into<String>,
        kind: Kind,
        command: impl Fn(u32) -> Vec<OsString> + 'static,
    ) -> Ready {
        Ready {
            name: name.into(),
            kind,
            command: Box::new(command),
            metric: SECONDS,
            check: None,
            units: None,
            environment: &[],
        }
    }

    /// Return a group of the program without scenarios.
    pub fn group(&self, threads: u32) -> Group {
        Group {
            workload: self.name.clone(),
            threads,
            check: self.check.clone(),
            environment: self.environment,
            ..Group::of(self.metric)
        }
    }

    /// Return why a run does not count, if its exit or its output is wrong.
    pub fn check(&self, ended: Ended) -> Result<(), Bad> {
        let output = ended.output()?;
        let wrong = self.check.as_ref().and_then(|check| check(&output));
        wrong.map_or(Ok(()), |why| Err(Bad::Failed(why)))
    }
}

pub const ALL: &[(&str, Kind)] = &[
    ("ep", Kind::None),
    ("blackscholes", Kind::None),
    ("blastn", Kind::None),
    ("pigz", Kind::None),
    ("xz", Kind::None),
    ("zstd", Kind::None),
    ("sort", Kind::None),
    ("histgb", Kind::Blocking),
    ("lightgbm", Kind::Blocking),
    ("x264", Kind::Blocking),
    ("fft3d", Kind::Blocking),
    ("barrier", Kind::Blocking),
    ("cond", Kind::Blocking),
    ("cg", Kind::Mixed),
    ("particlefilter", Kind::Mixed),
    ("stencil", Kind::Mixed),
    ("pathfinder", Kind::Mixed),
    ("pool", Kind::Mixed),
    ("pipeline", Kind::Spinning),
    ("spin-barrier", Kind::Spinning),
    ("omp-flags", Kind::Spinning),
    ("omp-active", Kind::Spinning),
];

/// Programs of --quick: some of each kind.
pub const QUICK: &[&str] =
    &["ep", "pigz", "histgb", "x264", "barrier", "cg", "pool", "omp-flags", "spin-barrier"];

/// Prepares programs.
pub struct Maker<'a> {
    pub session: &'a Session,
    pub scale: f64,
    pub per_us: f64,
    pub python: Option<std::path::PathBuf>,
}

/// Seconds that a run with `--rounds` aims to take at --scale 1.
const AIM: f64 = 1.0;

impl Maker<'_> {
    pub fn effort(&self, units: f64, limit: f64) -> Effort {
        Effort { rounds: u64::MAX, units, limit, aim: AIM * self.scale.clamp(0.05, 1.0) }
    }

    /// Prepare the program `name`. The error says what is missing.
    pub fn make(&self, name: &str, kind: Kind) -> anyhow::Result<Ready> {
        let (session, per_us) = (self.session, self.per_us);
        let one_unit: fn(u32) -> f64 = |_| 1.0;
        match name {
            "barrier" | "cond" => {
                // The work of a round does not depend on the number of threads.
                let first = sync::timed(name, session, 1, per_us)?;
                let ready = Ready::of(name, kind, move |threads| with_threads(&first, threads));
                Ok(Ready { metric: sync::TIME, units: Some(one_unit), ..ready })
            }
            "pipeline" | "spin-barrier" | "omp-flags" | "omp-active" => {
                let of = if name == "spin-barrier" { "barrier" } else { name };
                let (first, metric, units_of_one) = spin::timed(of, session, 1, per_us)?;
                let each = name == "pipeline";
                let command = move |threads: u32| {
                    let mut command = with_threads(&first, threads);
                    if each {
                        // Keep the work per stage independent of the number of stages.
                        multiply(&mut command, "--work", threads);
                    }
                    command
                };
                debug_assert!(units_of_one == 1.0);
                Ok(Ready {
                    metric,
                    units: Some(if each { f64::from } else { one_unit }),
                    environment: if name == "omp-active" {
                        &["OMP_WAIT_POLICY=active"]
                    } else {
                        &[]
                    },
                    ..Ready::of(name, kind, command)
                })
            }
            "pool" => {
                let program = workload::compile(session, POOL)?;
                // --work 256: a graph takes one or two milliseconds on one CPU.
                let command = move |threads: u32| {
                    words![program, "graphs", "--work", "256", "--threads", threads.to_string()]
                };
                Ok(Ready {
                    metric: Metric { unit: "us a graph", ..sync::TIME },
                    units: Some(one_unit),
                    check: Some(check::same(check::field("checksum"), 0.0)),
                    ..Ready::of(name, kind, command)
                })
            }
            "pigz" | "xz" | "zstd" | "sort" => self.tool(name, kind),
            "x264" => self.x264(kind),
            _ => mixes::prepare(name, kind, session, self.scale, self.python.as_ref()),
        }
    }

    fn missing(program: &str, package: &str) -> anyhow::Result<()> {
        match watch::is_missing(program.as_ref()) {
            Some(_) => bail!("needs {program} (on Debian: apt-get install {package})"),
            None => Ok(()),
        }
    }

    fn folder(&self) -> &std::path::Path {
        self.session.scratch.path()
    }

    /// Write compressible text of `megabytes` x scale to a file, if missing. Returns the path.
    fn text(&self, megabytes: f64) -> anyhow::Result<OsString> {
        let bytes = (megabytes * self.scale * 1e6) as usize;
        let name = format!("text-{bytes}");
        let path = self.folder().join(&name);
        if !path.exists() {
            self.session.scratch.write(&name, &data(bytes.max(100_000)))?;
        }
        Ok(path.into())
    }

    /// Prepare a tool that reads a file and writes to standard output. Check the output's size.
    fn tool(&self, name: &str, kind: Kind) -> anyhow::Result<Ready> {
        let (package, megabytes, line) = match name {
            "pigz" => ("pigz", 64.0, "pigz -6 -c -p \"$1\" -- \"$2\" | wc -c"),
            "xz" => ("xz-utils", 12.0, "xz -2 --block-size=1MiB -T \"$1\" -c -- \"$2\" | wc -c"),
            "zstd" => ("zstd", 48.0, "zstd -q -9 -B1M -T\"$1\" -c -- \"$2\" | wc -c"),
            _ => ("coreutils", 48.0, "sort --parallel=\"$1\" -S 512M -- \"$2\" | wc -c"),
        };
        Maker::missing(name, package)?;
        let file = self.text(megabytes)?;
        let command = move |threads: u32| {
            words!["env", "LC_ALL=C", "sh", "-c", line, "sh", threads.to_string(), file]
        };
        // The size may depend on the number of threads.
        let check = Some(check::same(check::number, 0.05));
        Ok(Ready { check, ..Ready::of(name, kind, command) })
    }

    /// Prepare x264 with a generated film of moving gradients and noise.
    fn x264(&self, kind: Kind) -> anyhow::Result<Ready> {
        Maker::missing("x264", "x264")?;
        let (width, height) = (640_usize, 360_usize);
        let frames = ((150.0 * self.scale).ceil() as usize).max(10);
        let path = self.folder().join("film.yuv");
        if !path.exists() {
            let mut random = fastrand::Rng::with_seed(1);
            let mut film = Vec::with_capacity(frames * width * height * 3 / 2);
            for frame in 0..frames {
                let luma = |i: usize| (i % width + 2 * (i / width) + 5 * frame) as u8;
                film.extend((0..width * height).map(|i| luma(i).wrapping_add(random.u8(..16))));
                film.extend((0..width * height / 2).map(|i| (i / 40 + 3 * frame) as u8));
            }
            std::fs::write(&path, film)?;
        }
        let command = move |threads: u32| {
            let options = format!(
                "--quiet --threads {threads} --input-res {width}x{height} --fps 25 \
                 --preset medium --muxer raw -o /dev/null"
            );
            [words!["x264"], split(&options), words![path]].concat()
        };
        Ok(Ready::of("x264", kind, command))
    }
}

fn with_threads(command: &[OsString], threads: u32) -> Vec<OsString> {
    let mut command = command.to_vec();
    if let Some(at) =
        command.iter().position(|w| w == "--threads").filter(|at| at + 1 < command.len())
    {
        command[at + 1] = threads.to_string().into();
    }
    command
}

fn multiply(command: &mut [OsString], option: &str, factor: u32) {
    let Some(at) = command.iter().position(|w| w == option).filter(|at| at + 1 < command.len())
    else {
        return;
    };
    if let Some(value) = command[at + 1].to_str().and_then(|t| t.parse::<f64>().ok()) {
        command[at + 1] = (value * f64::from(factor)).to_string().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_changed_where_they_should() {
        let command: Vec<OsString> =
            ["p", "--threads", "1", "--work", "100"].map(OsString::from).to_vec();
        let mut many = with_threads(&command, 8);
        multiply(&mut many, "--work", 8);
        assert_eq!(many, ["p", "--threads", "8", "--work", "800"]);
        assert_eq!(with_threads(&command[..2], 8), ["p", "--threads"]);
    }

    #[test]
    fn names_are_unique_and_the_quick_ones_among_them() {
        let mut names: Vec<&str> = ALL.iter().map(|p| p.0).collect();
        assert!(QUICK.iter().all(|q| names.contains(q)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
