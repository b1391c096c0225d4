//! Energy of the processor packages, from RAPL's counters if they are readable.

use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/sys/class/powercap";

/// A counter of microjoules that wraps around after `range`.
struct Counter {
    path: PathBuf,
    range: f64,
}

pub struct Energy(Vec<Counter>);

/// The values of all counters at one moment.
pub struct Reading(Vec<f64>);

impl Energy {
    /// Find the counters. The error says why none can be read.
    fn open() -> Result<Energy, String> {
        Energy::open_at(Path::new(FOLDER))
    }

    /// Find the counters. A note says why none can be read.
    pub fn open_or_note(notes: &mut Vec<String>) -> Option<Energy> {
        Energy::open().map_err(|why| notes.push(format!("Energy is not measured: {why}."))).ok()
    }

    fn open_at(folder: &Path) -> Result<Energy, String> {
        let list =
            fs::read_dir(folder).map(|entries| entries.flatten().map(|e| e.path()).collect());
        let mut zones: Vec<PathBuf> = list.unwrap_or_default();
        // Names of parts of a package have two colons.
        let is_package = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.strip_prefix("intel-rapl:").is_some_and(|rest| !rest.contains(':'))
        };
        zones.retain(is_package);
        if zones.is_empty() {
            return Err(format!("no RAPL counters here ({}/intel-rapl:*)", folder.display()));
        }
        let counters = zones.iter().map(|zone| {
            let path = zone.join("energy_uj");
            let range = number(&zone.join("max_energy_range_uj")).unwrap_or(0.0);
            match number(&path) {
                Ok(_) => Ok(Counter { path, range }),
                Err(why) => Err(format!("cannot read {}: {why}; run as root", path.display())),
            }
        });
        counters.collect::<Result<_, _>>().map(Energy)
    }

    pub fn read(&self) -> Option<Reading> {
        self.0.iter().map(|c| number(&c.path).ok()).collect::<Option<_>>().map(Reading)
    }

    /// Return the joules of all packages since `begun`. A counter may wrap around only once.
    pub fn since(&self, begun: &Reading) -> Option<f64> {
        let ended = self.read()?;
        let used = self.0.iter().zip(&begun.0).zip(&ended.0).map(|((counter, begun), ended)| {
            if ended >= begun { ended - begun } else { ended - begun + counter.range }
        });
        Some(used.sum::<f64>() / 1e6)
    }
}

fn number(path: &Path) -> Result<f64, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    text.trim().parse().map_err(|_| "not a number".into())
}

#[cfg(test)]
mod tests {
    use super::super::child::Scratch;
    use super::*;

    #[test]
    fn packages_are_added_up_and_counters_wrap() {
        let scratch = Scratch::create().expect("a folder");
        let write = |zone: &str, value: &str| {
            let folder = scratch.path().join(zone);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("max_energy_range_uj"), "1000000\n").expect("a file");
            fs::write(folder.join("energy_uj"), value).expect("a file");
        };
        assert!(
            Energy::open_at(scratch.path()).is_err_and(|e| e.starts_with("no RAPL counters here"))
        );
        write("intel-rapl:0", "100000\n");
        write("intel-rapl:1", "900000\n");
        write("intel-rapl:0:0", "5\n");
        let energy = Energy::open_at(scratch.path()).expect("two packages");
        let begun = energy.read().expect("numbers");
        write("intel-rapl:0", "600000\n");
        write("intel-rapl:1", "200000\n");
        assert_eq!(energy.since(&begun), Some(0.8));
        write("intel-rapl:1", "nothing\n");
        assert!(Energy::open_at(scratch.path()).is_err_and(|e| e.contains("not a number")));
    }
}
