//! Options about shares: weights, caps, packing.

use std::path::Path;

use clap::{Args, ValueEnum};

use super::allocation::{Application, Kind};
use super::packing::Packing;
use super::server::Report;
use super::topology::Topology;
use watch::activity::sample::Seen;

#[derive(Args)]
pub struct Limits {
    /// Weight of programs of this name when CPUs are divided; others have 1. May be repeated.
    /// Applies to programs under `lissom run`
    #[arg(long, value_name = "NAME=W", value_parser = named)]
    pub weight: Vec<(String, u32)>,

    /// Maximum number of CPUs for each program of this name. May be repeated
    #[arg(long, value_name = "NAME=N", value_parser = named)]
    pub cap: Vec<(String, u32)>,

    /// Percentage by which the growth of one program may slow another [default: no limit]. A
    /// program that slows another more gives back one CPU, and retries later. Applies to programs
    /// under `lissom run` whose threads wait for each other, and takes several steady periods
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub slowdown: Option<u8>,

    /// How to choose the CPUs of programs under `lissom run`
    #[arg(long, value_enum, value_name = "HOW", default_value = "number")]
    pub pack: Pack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pack {
    /// CPUs with the highest numbers, one program after the other
    Number,
    /// CPUs that share cores, caches and NUMA nodes with each other, but not with other programs
    Topology,
}

impl Limits {
    pub fn packing(&self) -> Packing {
        match self.pack {
            Pack::Number => Packing::Number,
            Pack::Topology => Packing::Topology(Topology::read(Path::new("/sys/devices/system"))),
        }
    }

    /// Return the allocator's input for a program. `found` is a cap by feedback.
    ///
    /// A rigid program may use the affinity mask of its first thread. A program under lissom binds
    /// its threads itself: its report has the mask, not its threads.
    pub fn application(
        &self,
        seen: &Seen,
        kind: Kind,
        report: Option<&Report>,
        found: Option<u32>,
    ) -> Application {
        let ran = matches!(kind, Kind::Rigid { typical_thread_count: 1.. });
        let may_use = match report {
            // None: its CPUs have higher numbers than a report can contain.
            Some(report) => Some(report.cpus.clone()).filter(|cpus| !cpus.is_empty()),
            None if ran && !seen.malleable => os::process::affinity(seen.id),
            None => None,
        };
        let weight = given(&self.weight, &seen.name).unwrap_or(1);
        let cap = given(&self.cap, &seen.name)
            .into_iter()
            .chain(report.map(|r| r.limit))
            .chain(found)
            .min();
        Application { may_use, weight, cap, ..Application::new(seen.id, kind) }
    }
}

/// Return the last number given for the program `name`.
fn given(list: &[(String, u32)], name: &str) -> Option<u32> {
    // The kernel keeps the first 15 bytes of a name.
    let is_it = |given: &str| given == name || (name.len() == 15 && given.starts_with(name));
    list.iter().rev().find(|(given, _)| is_it(given)).map(|&(_, number)| number)
}

/// Parse `NAME=NUMBER`. The number is 1 to 10,000.
fn named(text: &str) -> Result<(String, u32), String> {
    let (name, number) = text.rsplit_once('=').ok_or("expected NAME=NUMBER")?;
    let number: u32 =
        number.parse().map_err(|_| format!("expected a number in place of {number:?}"))?;
    if name.is_empty() || !(1..=10_000).contains(&number) {
        return Err("expected a name and a number from 1 to 10000".into());
    }
    Ok((name.into(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(named("a=b=3"), Ok(("a=b".into(), 3)));
        for nonsense in ["a", "=1", "a=", "a=0", "a=-1", "a=10001"] {
            assert!(named(nonsense).is_err(), "{nonsense}");
        }
        let list = vec![("x".into(), 2), ("a-name-that-is-long".into(), 3), ("x".into(), 4)];
        assert_eq!(given(&list, "x"), Some(4));
        assert_eq!(given(&list, "a-name-that-is-"), Some(3));
        assert_eq!(given(&list, "y"), None);
    }
}
