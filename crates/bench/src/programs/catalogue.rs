//! The programs: how to prepare, start and check each.

use std::ffi::OsString;
use std::rc::Rc;

use anyhow::bail;
use clap::ValueEnum;
use serde::Serialize;

use super::super::harness::{Check, Effort, Metric, SECONDS};
use super::super::mixes::programs::{Name, Program};
use super::super::specificity::data;
use super::super::workload::{self, POOL};
use super::super::{Session, spin, sync, watch};

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

/// A check of a program's output that several groups share. Returns what is wrong, if anything.
pub type SharedCheck = Rc<dyn Fn(&str) -> Option<String>>;

/// A program that is ready to run.
pub struct Ready {
    pub name: String,
    pub kind: Kind,
    /// Build the command for a number of threads.
    pub command: Box<dyn Fn(u32) -> Vec<OsString>>,
    pub metric: Metric,
    /// Check of the output, the same for all runs.
    pub check: Option<SharedCheck>,
    /// Units of the metric per round, for a number of threads, if the program takes `--rounds`.
    /// Such a program may take 10,000 times as long natively as it should.
    pub units: Option<fn(u32) -> f64>,
    pub environment: &'static [&'static str],
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
        let timed = |metric, units, command: Box<dyn Fn(u32) -> Vec<OsString>>| Ready {
            name: name.into(),
            kind,
            command,
            metric,
            check: None,
            units: Some(units),
            environment: &[],
        };
        Ok(match name {
            "barrier" | "cond" => {
                // The work of a round does not depend on the number of threads.
                let first = sync::timed(name, session, 1, per_us)?;
                let command = move |threads: u32| with_threads(&first, threads);
                timed(sync::TIME, |_| 1.0, Box::new(command))
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
                let units: fn(u32) -> f64 = if each { f64::from } else { |_| 1.0 };
                let mut ready = timed(metric, units, Box::new(command));
                if name == "omp-active" {
                    ready.environment = &["OMP_WAIT_POLICY=active"];
                }
                ready
            }
            "pool" => {
                let program = workload::compile(session, POOL)?;
                // --work 256: a graph takes one or two milliseconds on one CPU.
                let command = move |threads: u32| {
                    let mut command: Vec<OsString> = vec![program.clone().into(), "graphs".into()];
                    command.extend(
                        ["--work", "256", "--threads", &threads.to_string()].map(OsString::from),
                    );
                    command
                };
                let metric = Metric { unit: "us a graph", ..sync::TIME };
                let mut ready = timed(metric, |_| 1.0, Box::new(command));
                ready.check = Some(same_field("checksum"));
                ready
            }
            "pigz" | "xz" | "zstd" | "sort" => self.tool(name, kind)?,
            "x264" => self.x264(kind)?,
            _ => {
                let Some(of) = Name::parse(name) else { bail!("unknown program {name}") };
                let program =
                    Rc::new(Program::prepare(of, session, self.scale, self.python.as_ref())?);
                let checked = Rc::clone(&program);
                Ready {
                    name: name.into(),
                    kind,
                    command: Box::new(move |threads| program.command(threads)),
                    metric: SECONDS,
                    check: Some(Rc::new(move |output: &str| checked.check(output))),
                    units: None,
                    environment: &[],
                }
            }
        })
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
        let command = move |threads: u32| -> Vec<OsString> {
            let mut command: Vec<OsString> =
                vec!["env".into(), "LC_ALL=C".into(), "sh".into(), "-c".into()];
            command.extend([line.into(), "sh".into(), threads.to_string().into(), file.clone()]);
            command
        };
        Ok(Ready {
            name: name.into(),
            kind,
            command: Box::new(command),
            metric: SECONDS,
            check: Some(near_number()),
            units: None,
            environment: &[],
        })
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
        let command = move |threads: u32| -> Vec<OsString> {
            let mut command: Vec<OsString> =
                vec!["x264".into(), "--quiet".into(), "--threads".into()];
            command.extend([
                threads.to_string().into(),
                "--input-res".into(),
                format!("{width}x{height}").into(),
            ]);
            command.extend(
                ["--fps", "25", "--preset", "medium", "--muxer", "raw", "-o", "/dev/null"]
                    .map(OsString::from),
            );
            command.push(path.clone().into());
            command
        };
        Ok(Ready {
            name: "x264".into(),
            kind,
            command: Box::new(command),
            metric: SECONDS,
            check: None,
            units: None,
            environment: &[],
        })
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

/// Return a function that reads the answer from an output. It returns the answer and that of the
/// first run, which is the reference.
fn remembered(
    read: impl Fn(&str) -> Option<String> + 'static,
) -> impl Fn(&str) -> Option<(String, String)> {
    let known = std::cell::OnceCell::new();
    move |output| {
        let answer = read(output)?;
        let first: &String = known.get_or_init(|| answer.clone());
        Some((answer, first.clone()))
    }
}

fn same_field(field: &'static str) -> SharedCheck {
    let compare = remembered(move |output| {
        let line: serde_json::Value = serde_json::from_str(output.lines().last()?).ok()?;
        Some(line[field].as_str()?.to_string())
    });
    Rc::new(move |output| match compare(output) {
        None => Some(format!("its output has no {field}")),
        Some((answer, known)) => {
            (answer != known).then(|| format!("its {field} is {answer}, but was {known} before"))
        }
    })
}

/// Check that the output is a size within 5% of the first run's. It may depend on the number of
/// threads.
fn near_number() -> SharedCheck {
    let compare = remembered(|output| Some(output.trim().to_string()));
    Rc::new(move |output| {
        let (answer, known) = compare(output)?;
        let both = (answer.parse::<f64>().ok().filter(|n| *n > 0.0), known.parse::<f64>().ok());
        match both {
            (Some(a), Some(k)) if (a - k).abs() <= 0.05 * k => None,
            (Some(_), Some(_)) => {
                Some(format!("its output has {answer} bytes, but had {known} before"))
            }
            _ => Some("it printed no number".into()),
        }
    })
}

/// Wrap a shared check for a group.
pub fn shared(check: &SharedCheck) -> Check {
    let check = Rc::clone(check);
    Box::new(move |output| check(output))
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
    fn answers_have_to_be_the_same() {
        let check = near_number();
        assert_eq!(check("1000\n"), None);
        assert_eq!(check("1040\n"), None);
        assert!(check("1060\n").is_some() && check("").is_some() && check("0").is_some());
        let check = same_field("checksum");
        assert_eq!(check("{\"checksum\": \"a\"}\n"), None);
        assert!(check("{\"checksum\": \"b\"}\n").is_some() && check("x").is_some());
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
