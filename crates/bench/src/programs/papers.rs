//! The programs of workloads/ written from the specifications of NPB, PARSEC, SPLASH-2 and Rodinia.

use anyhow::Context as _;

use super::super::Session;
use super::super::command::{split, words};
use super::super::harness::{Compare, Metric};
use super::super::workload::{self, Program};
use super::catalogue::{Kind, Ready};
use super::check::verified;

const OPENMP: &[&str] = &["-fopenmp", "-lm"];
const THREADS: &[&str] = &["-pthread", "-lm"];

pub struct Paper {
    /// Suite and program, such as "npb-cg".
    pub name: &'static str,
    pub kind: Kind,
    pub program: Program,
    /// Rounds of the small class, together about a second of two CPUs. The first round includes the
    /// start of the runtime, 2 to 6 ms.
    pub rounds: u32,
}

const fn of(
    name: &'static str,
    kind: Kind,
    source: &'static str,
    flags: Flags,
    rounds: u32,
) -> Paper {
    Paper { name, kind, program: Program(source, flags), rounds }
}
type Flags = &'static [&'static str];

pub const PAPERS: &[Paper] = &[
    of("npb-ep", Kind::None, "npb/ep", OPENMP, 5),
    of("npb-is", Kind::Mixed, "npb/is", OPENMP, 300),
    of("npb-cg", Kind::Mixed, "npb/cg", OPENMP, 15),
    of("npb-mg", Kind::Mixed, "npb/mg", OPENMP, 20),
    of("npb-ft", Kind::Mixed, "npb/ft", OPENMP, 30),
    of("npb-lu", Kind::Spinning, "npb/lu", OPENMP, 1),
    of("npb-sp", Kind::Mixed, "npb/sp", OPENMP, 1),
    of("npb-bt", Kind::Mixed, "npb/bt", OPENMP, 2),
    of("npb-ua", Kind::Mixed, "npb/ua", OPENMP, 1),
    of("parsec-streamcluster", Kind::Blocking, "parsec/streamcluster", THREADS, 4),
    of("parsec-fluidanimate", Kind::Blocking, "parsec/fluidanimate", THREADS, 7),
    of("parsec-blackscholes", Kind::None, "parsec/blackscholes", THREADS, 8),
    of("parsec-swaptions", Kind::None, "parsec/swaptions", THREADS, 8),
    of("parsec-dedup", Kind::Blocking, "parsec/dedup", THREADS, 8),
    of("parsec-canneal", Kind::Blocking, "parsec/canneal", THREADS, 20),
    of("parsec-freqmine", Kind::Mixed, "parsec/freqmine", OPENMP, 7),
    of("splash-ocean", Kind::Blocking, "splash/ocean", THREADS, 3),
    of("splash-radix", Kind::Blocking, "splash/radix", THREADS, 10),
    of("splash-lu_cb", Kind::Blocking, "splash/lu_cb", THREADS, 9),
    of("splash-barnes", Kind::Blocking, "splash/barnes", THREADS, 7),
    of("splash-volrend", Kind::Spinning, "splash/volrend", THREADS, 9),
    of("rodinia-srad", Kind::Mixed, "rodinia/srad", OPENMP, 8),
    of("rodinia-heartwall", Kind::Mixed, "rodinia/heartwall", OPENMP, 5),
    of("rodinia-leukocyte", Kind::Mixed, "rodinia/leukocyte", OPENMP, 6),
    of("rodinia-particlefilter", Kind::Mixed, "rodinia/particlefilter", OPENMP, 6),
    of("rodinia-pathfinder", Kind::Mixed, "rodinia/pathfinder", OPENMP, 3),
];

/// Names that select all programs of a suite.
pub const SUITES: [&str; 4] = ["npb", "parsec", "splash", "rodinia"];

/// Time of the parallel part, as the suites themselves measure it.
const SECONDS: Metric = Metric { field: "seconds", unit: "seconds", compare: Compare::Ratio };

impl Paper {
    pub fn is_of(&self, suite: &str) -> bool {
        self.name.strip_prefix(suite).is_some_and(|rest| rest.starts_with('-'))
    }

    /// Return the problem size: S or `test` below a scale of 0.5, W or `small` below 4, A or
    /// `medium` below 16, and else B or `large`.
    pub fn class(&self, scale: f64) -> &'static str {
        let size = [0.5, 4.0, 16.0].iter().filter(|least| scale >= **least).count();
        let classes = if self.is_of("npb") {
            ["S", "W", "A", "B"]
        } else {
            ["test", "small", "medium", "large"]
        };
        classes[size]
    }

    pub fn find(name: &str) -> anyhow::Result<&'static Paper> {
        let paper = PAPERS.iter().find(|p| p.name == name);
        paper.with_context(|| format!("{name} is not a program of a suite"))
    }

    /// Prepare the program, with the problem size for `scale`.
    pub fn make(&self, session: &Session, scale: f64) -> anyhow::Result<Ready> {
        let rounds = if scale < 4.0 { f64::from(self.rounds) } else { 1.0 };
        self.ready(session, self.class(scale), rounds)
    }

    /// Prepare the program, with a class and a number of rounds.
    pub fn ready(&self, session: &Session, class: &str, rounds: f64) -> anyhow::Result<Ready> {
        let program = workload::compile(session, self.program)?;
        let class = class.to_string();
        let command = move |threads| {
            let options = format!("--class {class} --threads {threads} --rounds {rounds}");
            [words![program], split(&options)].concat()
        };
        Ok(Ready {
            metric: SECONDS,
            check: Some(verified()),
            ..Ready::of(self.name, self.kind, command)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_the_scale() {
        let find = |name: &str| PAPERS.iter().find(|p| p.name == name).expect("a program");
        let (cg, ocean) = (find("npb-cg"), find("splash-ocean"));
        assert_eq!([0.1, 1.0, 4.0, 20.0].map(|s| cg.class(s)), ["S", "W", "A", "B"]);
        assert_eq!((ocean.class(0.1), ocean.class(1.0)), ("test", "small"));
        assert!(PAPERS.iter().all(|p| SUITES.iter().filter(|s| p.is_of(s)).count() == 1));
    }
}
