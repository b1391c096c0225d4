//! `--only`: give selected threads to the scheduler, by the policy SCHED_EXT. Threads that they
//! start inherit the policy.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use procfs::process::{Process, all_processes};

use super::limits;
use os::{cgroup, process};

/// Policy of sched_setscheduler(2).
const SCHED_EXT: i32 = 7;

/// The argument of `--only`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    Process(u32),
    Group(PathBuf),
}

impl std::str::FromStr for Only {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Only, Self::Err> {
        if text.is_empty() {
            return Err("expected a process ID or a cgroup");
        }
        match text.parse() {
            Ok(0) => Err("there is no process 0"),
            Ok(pid) => Ok(Only::Process(pid)),
            Err(_) => Ok(Only::Group(text.into())),
        }
    }
}

impl Only {
    /// Check that the process or cgroup exists, and return it with a canonical path. A cgroup may
    /// be named by its folder, or as in /proc/PID/cgroup.
    pub fn resolve(&self, roots: &[PathBuf]) -> anyhow::Result<Only> {
        match self {
            Only::Process(pid) if Path::new("/proc").join(pid.to_string()).exists() => {
                Ok(self.clone())
            }
            Only::Process(pid) => bail!("there is no process {pid}"),
            Only::Group(path) => {
                let below = path.strip_prefix("/").unwrap_or(path);
                let candidates =
                    [path.clone()].into_iter().chain(roots.iter().map(|root| root.join(below)));
                match candidates.into_iter().find(|folder| folder.join("cgroup.procs").exists()) {
                    Some(folder) => Ok(Only::Group(folder.canonicalize()?)),
                    None => bail!(
                        "{} is not a cgroup: pass its folder, or a process ID",
                        path.display()
                    ),
                }
            }
        }
    }

    /// The files that set CPU limits for these threads.
    pub fn limits(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        match self {
            Only::Process(pid) => limits::of_process(*pid),
            Only::Group(folder) => limits::of_group(folder, roots),
        }
    }

    fn threads(&self) -> HashSet<u32> {
        match self {
            Only::Process(pid) => descendants(*pid).into_iter().flat_map(threads_of).collect(),
            Only::Group(folder) => {
                cgroup::subtree(folder).iter().flat_map(|group| threads_in(group)).collect()
            }
        }
    }
}

impl std::fmt::Display for Only {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Only::Process(pid) => write!(f, "process {pid} and its descendants"),
            Only::Group(folder) => write!(f, "{}", folder.display()),
        }
    }
}

/// The process and its descendants that still run.
fn descendants(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in all_processes().into_iter().flatten().flatten() {
        if let Ok(stat) = process.stat() {
            children.entry(stat.ppid as u32).or_default().push(stat.pid as u32);
        }
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(children.remove(&parent).unwrap_or_default());
        next += 1;
    }
    found
}

fn threads_of(pid: u32) -> Vec<u32> {
    let tasks = Process::new(pid as i32).and_then(|p| p.tasks());
    tasks.into_iter().flatten().flatten().map(|t| t.tid as u32).collect()
}

/// The threads of this very cgroup, listed in cgroup.threads (v2) or tasks (v1).
fn threads_in(folder: &Path) -> Vec<u32> {
    let read = |name: &&str| fs::read_to_string(folder.join(name)).ok();
    let list = ["cgroup.threads", "tasks"].iter().find_map(read).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The threads that were given to the scheduler, and those to give back unchanged.
pub struct Scope {
    pub only: Only,
    given: HashSet<u32>,
    /// Threads that had chosen SCHED_EXT themselves: they keep it.
    own: HashSet<u32>,
}

impl Scope {
    pub fn new(only: Only) -> Scope {
        let is_own = |&thread: &u32| {
            let policy = process::policy(thread);
            policy.is_some_and(|p| p & !libc::SCHED_RESET_ON_FORK == SCHED_EXT)
        };
        let own = only.threads().into_iter().filter(is_own).collect();
        Scope { only, given: HashSet::new(), own }
    }

    /// Give new threads to the scheduler. Real-time, batch and idle threads keep their policy.
    /// Returns the number of threads that match `--only`.
    pub fn follow(&mut self) -> usize {
        let mut count = 0;
        // A thread that is not yet given may start another one meanwhile. So repeat; threads that
        // appear faster than this are given at the next call.
        for _ in 0..8 {
            let threads = self.only.threads();
            count = threads.len();
            let changed: Vec<u32> =
                threads.into_iter().filter(|&t| change(t, libc::SCHED_OTHER, SCHED_EXT)).collect();
            if changed.is_empty() {
                break;
            }
            self.given.extend(changed);
        }
        self.given.retain(|t| Path::new("/proc").join(t.to_string()).exists());
        count
    }

    /// Return all threads to the kernel's own scheduler, including those that they started.
    pub fn give_back(&mut self) {
        self.given.extend(self.only.threads());
        for thread in self.given.drain().filter(|t| !self.own.contains(t)) {
            change(thread, SCHED_EXT, libc::SCHED_OTHER);
        }
    }
}

/// Change the thread's policy, if it is `from`, and keep its reset-on-fork flag. Returns false if
/// nothing changed: the policy differs, the change is not permitted, or the thread has ended.
fn change(thread: u32, from: i32, to: i32) -> bool {
    let Some(policy) = process::policy(thread) else { return false };
    let flag = policy & libc::SCHED_RESET_ON_FORK;
    policy == from | flag && process::set_policy(thread, to | flag, 0).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!("17".parse(), Ok(Only::Process(17)));
        assert_eq!("/sys/fs/cgroup/a".parse(), Ok(Only::Group("/sys/fs/cgroup/a".into())));
        assert!("0".parse::<Only>().is_err() && "".parse::<Only>().is_err());
        assert!(Only::Process(u32::MAX >> 1).resolve(&[]).is_err());
        assert!(Only::Group("/proc".into()).resolve(&[]).is_err());
        let own = Only::Process(std::process::id());
        assert_eq!(own.resolve(&[]).expect("it runs"), own);
        assert!(own.threads().contains(&std::process::id()));
    }

    #[test]
    fn cgroups() {
        let root = std::env::temp_dir().join(format!("lissom-scope-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).expect("a folder");
        fs::write(root.join("a/cgroup.procs"), "5\n").expect("a file");
        fs::write(root.join("a/cgroup.threads"), "5\n6\n").expect("a file");
        fs::write(root.join("a/b/tasks"), "7\n").expect("a file");
        let folder = root.join("a").canonicalize().expect("it is there");
        let found =
            Only::Group("/a".into()).resolve(std::slice::from_ref(&root)).expect("it is there");
        assert_eq!(found, Only::Group(folder));
        assert_eq!(found.threads(), HashSet::from([5, 6, 7]));
        fs::remove_dir_all(&root).expect("ours");
    }
}
