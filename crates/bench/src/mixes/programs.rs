//! The programs of the mixes: how to prepare, start and check each.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::super::programs::papers::PAPERS;
use super::super::workload::{self, BLACKSCHOLES, FFT3D, PATHFINDER, STENCIL};
use super::super::{Session, ml, watch};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    Blackscholes,
    Blastn,
    Fft3d,
    Pathfinder,
    Blastp,
    Particlefilter,
    Srad,
    Leukocyte,
    Ep,
    Heartwall,
    Cg,
    Freqmine,
    Streamcluster,
    Stencil,
    Lightgbm,
    Histgb,
}

use Name::*;

/// Programs with a fixed number of threads, which leave CPUs idle at times.
pub const RIGID: [Name; 5] = [Blackscholes, Blastn, Fft3d, Pathfinder, Blastp];
/// Malleable programs, which some scenarios run under lissom.
pub const MALLEABLE: [Name; 11] = [
    Particlefilter,
    Srad,
    Leukocyte,
    Ep,
    Heartwall,
    Cg,
    Freqmine,
    Streamcluster,
    Stencil,
    Lightgbm,
    Histgb,
];

impl Name {
    pub fn text(self) -> &'static str {
        match self {
            Blackscholes => "blackscholes",
            Blastn => "blastn",
            Fft3d => "fft3d",
            Pathfinder => "pathfinder",
            Blastp => "blastp",
            Particlefilter => "particlefilter",
            Srad => "srad",
            Leukocyte => "leukocyte",
            Ep => "ep",
            Heartwall => "heartwall",
            Cg => "cg",
            Freqmine => "freqmine",
            Streamcluster => "streamcluster",
            Stencil => "stencil",
            Lightgbm => "lightgbm",
            Histgb => "histgb",
        }
    }

    pub fn is_malleable(self) -> bool {
        MALLEABLE.contains(&self)
    }

    fn all() -> impl Iterator<Item = Name> {
        RIGID.into_iter().chain(MALLEABLE)
    }

    pub fn parse(text: &str) -> Option<Name> {
        Name::all().find(|n| n.text() == text)
    }
}

/// The result that all complete runs of a program must share. Neither other programs nor the number
/// of threads may change it.
enum Answer {
    /// `checksum` in the JSON of the last line.
    Checksum,
    /// `verified` in the JSON of the last line, which must be true.
    Verified,
    /// `error` in the JSON of the last line, within this fraction: sums depend on the order of the
    /// threads.
    Error(f64),
    /// The whole standard output.
    Output,
}

/// How to start a program, and its work: one or two seconds of two CPUs at --scale 1.
enum Start {
    Workload { program: PathBuf, class: Option<&'static str>, rounds: f64 },
    Blast { program: &'static str, database: PathBuf, queries: PathBuf },
    Ml { python: PathBuf, program: PathBuf, library: &'static str, trees: f64 },
}

pub struct Program {
    pub name: Name,
    start: Start,
    answer: Answer,
    /// Answer of the first run.
    known: OnceCell<String>,
}

impl Program {
    /// Prepare the program `name`. The error says what is missing.
    pub fn prepare(
        name: Name,
        session: &Session,
        scale: f64,
        python: Option<&PathBuf>,
    ) -> anyhow::Result<Program> {
        let start = |program, class, rounds: f64| -> anyhow::Result<Start> {
            let program = workload::compile(session, program)?;
            Ok(Start::Workload { program, class, rounds: (rounds * scale).ceil() })
        };
        let workload = |program, rounds| {
            Ok::<_, anyhow::Error>((start(program, None, rounds)?, Answer::Checksum))
        };
        let suite = |name: &str| -> anyhow::Result<(Start, Answer)> {
            let paper = PAPERS.iter().find(|p| p.name == name).expect("a program of a suite");
            let rounds = 1.5 * f64::from(paper.rounds);
            Ok((start(paper.program, Some(paper.class(1.0)), rounds)?, Answer::Verified))
        };
        let (start, answer) = match name {
            Blackscholes => workload(BLACKSCHOLES, 20.0)?,
            Pathfinder => workload(PATHFINDER, 20.0)?,
            Fft3d => workload(FFT3D, 30.0)
                .context("needs FFTW (on Debian: apt-get install libfftw3-dev)")?,
            Particlefilter => suite("rodinia-particlefilter")?,
            Srad => suite("rodinia-srad")?,
            Leukocyte => suite("rodinia-leukocyte")?,
            Ep => suite("npb-ep")?,
            Heartwall => suite("rodinia-heartwall")?,
            Cg => suite("npb-cg")?,
            Freqmine => suite("parsec-freqmine")?,
            Streamcluster => suite("parsec-streamcluster")?,
            Stencil => workload(STENCIL, 50.0)?,
            Blastn => (blast(session, "blastn", "nucl", 4000.0 * scale)?, Answer::Output),
            Blastp => (blast(session, "blastp", "prot", 20.0 * scale)?, Answer::Output),
            Lightgbm => {
                (ml(session, python, "lightgbm", "lightgbm", 200.0 * scale)?, Answer::Error(0.05))
            }
            Histgb => (
                ml(session, python, "histgb", "sklearn.ensemble", 100.0 * scale)?,
                Answer::Error(0.05),
            ),
        };
        Ok(Program { name, start, answer, known: OnceCell::new() })
    }

    pub fn command(&self, threads: u32) -> Vec<OsString> {
        let mut command: Vec<OsString> = Vec::new();
        let threads = threads.to_string();
        match &self.start {
            Start::Workload { program, class, rounds } => {
                command.push(program.into());
                command.extend(class.iter().flat_map(|c| ["--class".into(), OsString::from(c)]));
                command.extend(
                    ["--threads", &threads, "--rounds", &rounds.to_string()].map(OsString::from),
                );
            }
            Start::Blast { program, database, queries } => {
                command.extend([
                    program.into(),
                    "-db".into(),
                    database.into(),
                    "-query".into(),
                    queries.into(),
                ]);
                command.extend(["-num_threads", &threads, "-outfmt", "6"].map(OsString::from));
            }
            Start::Ml { python, program, library, trees } => {
                command.extend([python.into(), program.into()]);
                command.extend(["--library", library, "--threads", &threads].map(OsString::from));
                command
                    .extend(["--rows", "50000", "--trees", &trees.to_string()].map(OsString::from));
            }
        }
        command
    }

    /// Return the name by which `lissom manager` knows the program's processes.
    pub fn process(&self) -> String {
        let command = self.command(1);
        let name = Path::new(&command[0]).file_name().unwrap_or_default();
        // The kernel keeps 15 bytes of a name.
        name.to_string_lossy().chars().take(15).collect()
    }

    /// Check the output of a run against that of the first run. Returns what is wrong, if anything.
    pub fn check(&self, output: &str) -> Option<String> {
        let answer = match &self.answer {
            Answer::Output => Ok(output.to_string()),
            Answer::Checksum => field_of(output, "checksum"),
            Answer::Verified => field_of(output, "verified"),
            Answer::Error(_) => field_of(output, "error"),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return Some(why),
        };
        if answer.trim().is_empty() {
            return Some("it printed no result".into());
        }
        let known = self.known.get_or_init(|| answer.clone());
        let same = match self.answer {
            Answer::Verified => answer == "true",
            Answer::Error(part) => match (answer.parse::<f64>(), known.parse::<f64>()) {
                (Ok(answer), Ok(known)) => (answer - known).abs() <= part * known.abs(),
                _ => false,
            },
            _ => answer == *known,
        };
        let shown = |text: &str| text.chars().take(40).collect::<String>();
        (!same)
            .then(|| format!("the result is {}, but was {} before", shown(&answer), shown(known)))
    }
}

fn field_of(output: &str, field: &str) -> Result<String, String> {
    let line = output.lines().last().unwrap_or_default();
    match serde_json::from_str::<Value>(line).map(|v| v[field].clone()) {
        Ok(Value::String(text)) => Ok(text),
        Ok(Value::Number(number)) => Ok(number.to_string()),
        Ok(Value::Bool(value)) => Ok(value.to_string()),
        _ => Err(format!("its output has no {field}: {line}")),
    }
}

fn ml(
    session: &Session,
    python: Option<&PathBuf>,
    library: &'static str,
    module: &str,
    trees: f64,
) -> anyhow::Result<Start> {
    let python = python.cloned().unwrap_or_else(ml::default_python);
    session
        .output(&[python.clone().into(), "-c".into(), format!("import numpy, {module}").into()])
        .with_context(|| {
            format!("{} has no {module} (`make bench` installs it)", python.display())
        })?;
    let program = session.scratch.write("ml.py", ml::PROGRAM)?;
    Ok(Start::Ml { python, program, library, trees: trees.ceil() })
}

/// Prepare a BLAST program with random sequences. The queries are pieces of them, with changes.
fn blast(
    session: &Session,
    program: &'static str,
    kind: &str,
    queries: f64,
) -> anyhow::Result<Start> {
    for needed in [program, "makeblastdb"] {
        if watch::is_missing(needed.as_ref()).is_some() {
            bail!("needs {needed} (on Debian: apt-get install ncbi-blast+)");
        }
    }
    let mut random = fastrand::Rng::with_seed(1);
    // Alphabet, sequences, letters per sequence and per query, percentage of letters changed.
    let (alphabet, sequences, length, query, changed) = match kind {
        "nucl" => ("ACGT", 400, 20_000, 1000, 10),
        _ => ("ACDEFGHIKLMNPQRSTVWY", 8000, 350, 300, 40),
    };
    let letter = |random: &mut fastrand::Rng| alphabet.as_bytes()[random.usize(..alphabet.len())];
    let database: Vec<Vec<u8>> =
        (0..sequences).map(|_| (0..length).map(|_| letter(&mut random)).collect()).collect();
    let pieces: Vec<Vec<u8>> = (0..queries.ceil() as usize)
        .map(|_| {
            let from = &database[random.usize(..sequences)];
            let at = random.usize(..=length - query);
            let piece = from[at..at + query].iter();
            piece
                .map(|&l| if random.u32(..100) < changed { letter(&mut random) } else { l })
                .collect()
        })
        .collect();
    let path = session.scratch.write(&format!("{program}.fasta"), &fasta(&database))?;
    let queries = session.scratch.write(&format!("{program}.queries"), &fasta(&pieces))?;
    let database = session.scratch.path().join(format!("{program}.database"));
    let mut make: Vec<OsString> =
        ["makeblastdb", "-dbtype", kind, "-in"].map(OsString::from).to_vec();
    make.extend([path.into(), "-out".into(), database.clone().into()]);
    session.output(&make)?;
    Ok(Start::Blast { program, database, queries })
}

fn fasta(sequences: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for (i, sequence) in sequences.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, ">s{i}\n{}", String::from_utf8_lossy(sequence));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(answer: Answer) -> Program {
        let start = Start::Workload { program: "/tmp/ep".into(), class: None, rounds: 1.0 };
        Program { name: Ep, start, answer, known: OnceCell::new() }
    }

    #[test]
    fn results_must_be_the_same() {
        let exact = program(Answer::Checksum);
        assert_eq!(exact.check("a warning\n{\"checksum\": \"ab\"}\n"), None);
        assert_eq!(exact.check("{\"checksum\": \"ab\", \"seconds\": 2}"), None);
        assert_eq!(
            exact.check("{\"checksum\": \"cd\"}"),
            Some("the result is cd, but was ab before".into())
        );
        assert!(exact.check("{}").is_some() && exact.check("").is_some());
        assert_eq!(exact.process(), "ep");
        let verified = program(Answer::Verified);
        assert_eq!(verified.check("{\"verified\": true}"), None);
        assert!(verified.check("{\"verified\": false}").is_some());
        let near = program(Answer::Error(0.05));
        assert_eq!(near.check("{\"error\": 0.5}"), None);
        assert_eq!(near.check("{\"error\": 0.51}"), None);
        assert!(near.check("{\"error\": 0.6}").is_some());
        let whole = program(Answer::Output);
        assert!(whole.check("\n").is_some());
    }

    #[test]
    fn names() {
        assert!(Name::all().all(|n| Name::parse(n.text()) == Some(n)));
        assert!(!Blastp.is_malleable() && Histgb.is_malleable());
    }
}
