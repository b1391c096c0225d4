//! The ways in which `lissom bench -- CMD` runs CMD under lissom, and where they can help.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::ValueEnum;

use super::harness::Cell;
use os::{cgroup, glibc, process, program};
use runtime::abi;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub enum Way {
    /// `lissom run` without options
    Auto,
    /// Same as `auto`
    User,
    /// With --switch=kernel
    Kernel,
    /// With --switch=off
    Off,
    /// With --visible-cpus=slots. By default only where CMD may use fewer CPUs than its affinity
    /// mask has, by CPU quota or LISSOM_CPUS
    VisibleCpus,
    /// With --omp-team=slots. By default only if CMD loads an OpenMP library. DANGER: a program
    /// that depends on the number of threads that it requested hangs or computes wrong results
    OmpTeam,
}

impl Way {
    pub const ALL: &[Way] =
        &[Way::Auto, Way::User, Way::Kernel, Way::Off, Way::VisibleCpus, Way::OmpTeam];

    /// Name of the column, and of the value of --ways.
    pub fn name(self) -> &'static str {
        match self {
            Way::Auto => "auto",
            Way::User => "user",
            Way::Kernel => "kernel",
            Way::Off => "off",
            Way::VisibleCpus => "visible-cpus",
            Way::OmpTeam => "omp-team",
        }
    }

    pub fn of(name: &str) -> Option<Way> {
        Way::ALL.iter().copied().find(|way| way.name() == name)
    }

    /// The value of --switch.
    pub fn switch(self) -> &'static str {
        match self {
            Way::User => "user",
            Way::Kernel => "kernel",
            Way::Off => "off",
            Way::Auto | Way::VisibleCpus | Way::OmpTeam => "auto",
        }
    }

    /// The variable that selects the way, besides --switch, as NAME=value.
    pub fn variable(self) -> Option<OsString> {
        let name = match self {
            Way::VisibleCpus => abi::ENV_VISIBLE_CPUS,
            Way::OmpTeam => abi::ENV_OMP_TEAM,
            _ => return None,
        };
        Some(format!("{name}=slots").into())
    }

    /// Options of `lissom run` for users. None: the way is no advice.
    pub fn options(self) -> Option<&'static [&'static str]> {
        match self {
            Way::Auto | Way::User => Some(&[]),
            Way::Kernel => Some(&["--switch=kernel"]),
            Way::VisibleCpus => Some(&["--visible-cpus=slots"]),
            Way::OmpTeam => Some(&["--omp-team=slots"]),
            Way::Off => None,
        }
    }

    /// How the way can break a program.
    pub fn danger(self) -> Option<&'static str> {
        (self == Way::OmpTeam).then_some(
            "with --omp-team=slots, a program that depends on the number of threads that it \
             requested, such as llama.cpp, hangs or computes wrong results",
        )
    }
}

/// Return whether programs see more CPUs than they may use at once. `variables`: those of CMD.
pub fn sees_too_many_cpus(variables: &[OsString]) -> bool {
    let value = |name: &str| {
        let text = variables.iter().rev().filter_map(|v| v.to_str());
        text.filter_map(|v| v.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
    };
    // Otherwise `auto` is this way already.
    let is_hidden = value(abi::ENV_VISIBLE_CPUS).is_some_and(|v| v != "machine");
    let limit = value(abi::ENV_CPUS).and_then(|n| n.parse().ok());
    let fewest = limit.into_iter().chain(cgroup::quota_cpus()).min();
    !is_hidden && fewest.is_some_and(|n: usize| n < process::allowed_cpus().len())
}

/// Return whether a file is an OpenMP library.
fn is_openmp(file: &str) -> bool {
    ["libgomp.so", "libgomp-", "libomp.so", "libomp5", "libiomp5"]
        .iter()
        .any(|name| file.starts_with(name))
}

/// Return whether a program loads an OpenMP library at its start. Runs its loader with `--list`.
pub fn needs_openmp(path: &Path) -> bool {
    let program = program::inspect(path);
    let Some(elf) = &program.elf else { return false };
    if elf.needed.iter().any(|name| is_openmp(name)) {
        return true;
    }
    let (Some(file), Some(loader)) = (program.chain.last(), &elf.interpreter) else { return false };
    let Ok(output) = glibc::list(file, Path::new(loader)) else { return false };
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut paths = list.lines().filter_map(glibc::listed_path);
    paths.any(|path| path.file_name().and_then(OsStr::to_str).is_some_and(is_openmp))
}

/// Leave `omp-team` out unless a process of an earlier warm-up used an OpenMP library. The
/// statistics name libraries with system calls, and those in which threads spun.
pub fn leave_out(name: &str, before: &[Cell]) -> bool {
    name == Way::OmpTeam.name() && !before.iter().any(used_openmp)
}

fn used_openmp(cell: &Cell) -> bool {
    let Some(processes) = cell.statistics.as_ref().and_then(|s| s["processes"].as_array()) else {
        return false;
    };
    let lists = processes.iter().flat_map(|p| {
        [(&p["objects"], "name"), (&p["spin_loops"], "file")].map(|(list, field)| {
            list.as_array().into_iter().flatten().filter_map(move |o| o[field].as_str())
        })
    });
    lists.flatten().any(|file| is_openmp(file.rsplit('/').next().unwrap_or(file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names() {
        for way in Way::value_variants() {
            let value = way.to_possible_value().expect("no hidden value");
            assert_eq!((value.get_name(), Way::of(way.name())), (way.name(), Some(*way)));
        }
        assert_eq!(Way::value_variants(), Way::ALL);
    }

    #[test]
    fn openmp_in_the_statistics() {
        let cell = |process| Cell {
            statistics: Some(json!({ "processes": [process] })),
            ..Cell::default()
        };
        let with = cell(json!({ "objects": [{ "name": "libgomp.so.1" }] }));
        let spun = cell(json!({ "spin_loops": [{ "file": "/usr/lib/libomp.so.5" }] }));
        let none = cell(json!({ "objects": [{ "name": "libc.so.6" }] }));
        assert!(!leave_out("omp-team", &[with]) && !leave_out("omp-team", &[spun]));
        assert!(leave_out("omp-team", &[none]) && leave_out("omp-team", &[]));
        assert!(!leave_out("auto", &[]));
    }

    #[test]
    fn visible_cpus() {
        assert!(!sees_too_many_cpus(&["LISSOM_CPUS=4096".into()]) || cgroup::quota().is_some());
        let hidden = ["LISSOM_CPUS=1".into(), "LISSOM_VISIBLE_CPUS=slots".into()];
        assert!(!sees_too_many_cpus(&hidden));
        let all = process::allowed_cpus().len();
        assert_eq!(sees_too_many_cpus(&["LISSOM_CPUS=1".into()]), all > 1);
    }
}
