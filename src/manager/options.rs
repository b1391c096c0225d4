//! What the user says about the shares: weights, caps, packing.

use std::path::Path;

use clap::{Args, ValueEnum};

use super::allocation::{Application, Kind};
use super::packing::Packing;
use super::sample::Seen;
use super::server::Report;
use super::topology::Topology;

#[derive(Args)]
pub struct Limits {
    /// Programs of this name get CPUs in this proportion to others, which have 1. May be
    /// repeated. Counts for programs under `lissom run`
    #[arg(long, value_name = "NAME=W", value_parser = named)]
    pub weight: Vec<(String, u32)>,

    /// Programs of this name get N CPUs each at most. May be repeated
    #[arg(long, value_name = "NAME=N", value_parser = named)]
    pub cap: Vec<(String, u32)>,

    /// Percent by which one program's growth may slow another [default: any]. One that slows
    /// another more goes back by one CPU, and tries again later. Counts between programs under
    /// `lissom run` whose threads wait for each other, and takes steady periods to judge
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub slowdown: Option<u8>,

    /// Which CPUs programs under `lissom run` get
    #[arg(long, value_enum, value_name = "HOW", default_value = "number")]
    pub pack: Pack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pack {
    /// Those with the highest numbers, one program after the other
    Number,
    /// Those that share cores, caches and NUMA nodes with each other, and not with others
    Topology,
}

impl Limits {
    pub fn packing(&self) -> Packing {
        match self.pack {
            Pack::Number => Packing::Number,
            Pack::Topology => Packing::Topology(Topology::read(Path::new("/sys/devices/system"))),
        }
    }

    /// A program that was not made to change keeps to the CPUs of its first thread's mask. One
    /// under lissom binds its threads itself, so their masks do not say what it may use: its report
    /// does. found: a cap by feedback.
    pub fn application(
        &self,
        seen: &Seen,
        kind: Kind,
        report: Option<&Report>,
        found: Option<u32>,
    ) -> Application {
        let ran = matches!(kind, Kind::Rigid { typical_thread_count: 1.. });
        let may_use = match report {
            // None: they have higher numbers than a report can tell of.
            Some(report) => Some(report.cpus.clone()).filter(|cpus| !cpus.is_empty()),
            None if ran && !seen.malleable => crate::process::affinity(seen.id),
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

/// The last one counts.
fn given(list: &[(String, u32)], name: &str) -> Option<u32> {
    // The kernel knows the first 15 bytes of a name.
    let is_it = |given: &str| given == name || (name.len() == 15 && given.starts_with(name));
    list.iter().rev().find(|(given, _)| is_it(given)).map(|&(_, number)| number)
}

/// `NAME=NUMBER`
fn named(text: &str) -> Result<(String, u32), String> {
    let (name, number) = text.rsplit_once('=').ok_or("NAME=NUMBER is needed")?;
    let number: u32 = number.parse().map_err(|_| format!("not a number: {number}"))?;
    if name.is_empty() || !(1..=10_000).contains(&number) {
        return Err("a name, and a number of 1 to 10000, are needed".into());
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
