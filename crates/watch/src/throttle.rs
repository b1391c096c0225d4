//! Time for which CPU quotas have stopped a process.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os::cgroup;

/// Files with throttled times. Each process's cgroups are found once: it may move, but rarely does.
#[derive(Default)]
pub struct Throttling {
    /// By process number and start time.
    files: HashMap<(u32, u64), Vec<PathBuf>>,
}

impl Throttling {
    /// Return for how long the process's cgroups have been stopped since they were created. Of
    /// nested groups this is the longest time: each of them stops the process. None: no group
    /// counts it.
    pub fn of(&mut self, pid: u32, start_time: u64) -> Option<Duration> {
        let files = self.files.entry((pid, start_time)).or_insert_with(|| files(pid));
        files.iter().filter_map(|file| throttled(file)).max()
    }

    /// Keep the entries of processes for which `is_there(pid, start_time)` is true.
    pub fn keep(&mut self, is_there: impl Fn(u32, u64) -> bool) {
        self.files.retain(|&(pid, start_time), _| is_there(pid, start_time));
    }
}

fn files(pid: u32) -> Vec<PathBuf> {
    let folders = cgroup::hierarchy_of(pid, "cpu").map_or(Vec::new(), |h| h.folders);
    folders.into_iter().map(|folder| folder.join("cpu.stat")).filter(|file| file.exists()).collect()
}

fn throttled(file: &Path) -> Option<Duration> {
    parse(&fs::read_to_string(file).ok()?)
}

/// Parse cpu.stat: version 2 counts microseconds, version 1 nanoseconds.
fn parse(text: &str) -> Option<Duration> {
    let value = |name: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    value("throttled_usec")
        .map(Duration::from_micros)
        .or_else(|| value("throttled_time").map(Duration::from_nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let second = "usage_usec 5\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1500\n";
        assert_eq!(parse(second), Some(Duration::from_micros(1500)));
        assert_eq!(
            parse("nr_periods 3\nnr_throttled 2\nthrottled_time 1500\n"),
            Some(Duration::from_nanos(1500))
        );
        assert_eq!(parse("usage_usec 5\n"), None);
    }
}
