//! The programs of the mixes: how to prepare, start and check each.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::super::command::{split, words};
use super::super::programs::papers;
use super::super::programs::{Kind, Ready, check};
use super::super::python::python_with;
use super::super::workload::{self, BLACKSCHOLES, FFT3D, PATHFINDER, STENCIL};
use super::super::{Session, ml, watch};

/// How to start a program. Its work takes one or two seconds of two CPUs at --scale 1.
#[derive(Clone, Copy)]
pub enum Start {
    /// A program of workloads/, and its rounds.
    Rounds(workload::Program, f64),
    /// A program of the papers' suites.
    Paper(&'static str),
    /// A program of BLAST+: the kind of its database, and its queries.
    Blast(&'static str, f64),
    /// A library of workloads/ml.py: its module, and its trees.
    Ml(&'static str, f64),
}

use Start::*;

/// Programs with a fixed number of threads, which leave CPUs idle at times.
pub const RIGID: [(&str, Start); 5] = [
    ("blackscholes", Rounds(BLACKSCHOLES, 20.0)),
    ("blastn", Blast("nucl", 4000.0)),
    ("fft3d", Rounds(FFT3D, 30.0)),
    ("pathfinder", Rounds(PATHFINDER, 20.0)),
    ("blastp", Blast("prot", 20.0)),
];

/// Malleable programs, which some scenarios run under lissom.
pub const MALLEABLE: [(&str, Start); 11] = [
    ("particlefilter", Paper("rodinia-particlefilter")),
    ("srad", Paper("rodinia-srad")),
    ("leukocyte", Paper("rodinia-leukocyte")),
    ("ep", Paper("npb-ep")),
    ("heartwall", Paper("rodinia-heartwall")),
    ("cg", Paper("npb-cg")),
    ("freqmine", Paper("parsec-freqmine")),
    ("streamcluster", Paper("parsec-streamcluster")),
    ("stencil", Rounds(STENCIL, 50.0)),
    ("lightgbm", Ml("lightgbm", 200.0)),
    ("histgb", Ml("sklearn.ensemble", 100.0)),
];

/// Return a program's name, as a static one, and how to start it.
fn find(name: &str) -> Option<(&'static str, Start)> {
    RIGID.into_iter().chain(MALLEABLE).find(|p| p.0 == name)
}

pub fn is_malleable(name: &str) -> bool {
    MALLEABLE.iter().any(|p| p.0 == name)
}

/// Return the name by which `lissom manager` knows the program's processes.
pub fn process(program: &Ready) -> String {
    let command = (program.command)(1);
    let name = Path::new(&command[0]).file_name().unwrap_or_default();
    // The kernel keeps 15 bytes of a name.
    name.to_string_lossy().chars().take(15).collect()
}

/// Prepare the program `name`, which waits as `kind` says. The error says what is missing.
pub fn prepare(
    name: &str,
    kind: Kind,
    session: &Session,
    scale: f64,
    python: Option<&PathBuf>,
) -> anyhow::Result<Ready> {
    let (name, start) = find(name).with_context(|| format!("unknown program {name}"))?;
    Ok(match start {
        Rounds(source, rounds) => {
            let program = match workload::compile(session, source) {
                Err(error) if source == FFT3D => {
                    bail!("needs FFTW (on Debian: apt-get install libfftw3-dev): {error:#}")
                }
                program => program?,
            };
            let rounds = (rounds * scale).ceil().to_string();
            let command = move |threads: u32| {
                words![program, "--threads", threads.to_string(), "--rounds", rounds]
            };
            let check = Some(check::same(check::field("checksum"), 0.0));
            Ready { check, ..Ready::of(name, kind, command) }
        }
        Paper(of) => {
            let paper = papers::Paper::find(of)?;
            let rounds = (1.5 * f64::from(paper.rounds) * scale).ceil();
            let ready = paper.ready(session, paper.class(1.0), rounds)?;
            Ready { name: name.into(), kind, ..ready }
        }
        Blast(database, queries) => blast(session, name, kind, database, queries * scale)?,
        Ml(module, trees) => {
            let lacks = format!("has no {module} (`make bench` installs it)");
            let python = python_with(session, python, &format!("numpy, {module}"), &lacks)?;
            let program = session.scratch.write("ml.py", ml::PROGRAM)?;
            let trees = (trees * scale).ceil();
            let command = move |threads: u32| {
                let options =
                    format!("--library {name} --threads {threads} --rows 50000 --trees {trees}");
                [words![python, program], split(&options)].concat()
            };
            // Sums depend on the order of the threads.
            let check = Some(check::same(check::field("error"), 0.05));
            Ready { check, ..Ready::of(name, kind, command) }
        }
    })
}

/// Prepare a BLAST program with random sequences. The queries are pieces of them, with changes.
fn blast(
    session: &Session,
    name: &'static str,
    kind: Kind,
    of: &str,
    queries: f64,
) -> anyhow::Result<Ready> {
    for needed in [name, "makeblastdb"] {
        if watch::is_missing(needed.as_ref()).is_some() {
            bail!("needs {needed} (on Debian: apt-get install ncbi-blast+)");
        }
    }
    let mut random = fastrand::Rng::with_seed(1);
    // Alphabet, sequences, letters per sequence and per query, percentage of letters changed.
    let (alphabet, sequences, length, query, changed) = match of {
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
    let path = session.scratch.write(&format!("{name}.fasta"), &fasta(&database))?;
    let queries = session.scratch.write(&format!("{name}.queries"), &fasta(&pieces))?;
    let database = session.scratch.path().join(format!("{name}.database"));
    session.output(&words!["makeblastdb", "-dbtype", of, "-in", path, "-out", database])?;
    let command = move |threads: u32| {
        let options = split(&format!("-num_threads {threads} -outfmt 6"));
        [words![name, "-db", database, "-query", queries], options].concat()
    };
    Ok(Ready { check: Some(check::same(check::whole, 0.0)), ..Ready::of(name, kind, command) })
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

    #[test]
    fn programs() {
        assert!(!is_malleable("blastp") && is_malleable("histgb"));
        for (_, start) in MALLEABLE {
            assert!(!matches!(start, Paper(name) if papers::Paper::find(name).is_err()));
        }
        let ep = Ready::of("ep", Kind::None, |_| words!["/tmp/ep"]);
        assert_eq!(process(&ep), "ep");
    }
}
