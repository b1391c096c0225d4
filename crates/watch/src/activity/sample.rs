//! Activity sampled from /proc. The user's own processes need no privileges. Each period samples
//! the states of the threads several times. It misses bursts between two samples, and processes
//! that start and end within a period.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use procfs::process::{Process, Stat, StatFlags};

use super::Id;
use super::vector::ActivityVector;
use os::process::has_runtime;

/// Samples in a period.
const LOOKS: u32 = 20;

/// One process, in one period.
pub struct Seen {
    pub id: Id,
    pub name: String,
    /// Threads of the application, without lissom's own.
    pub threads: u32,
    /// It runs under lissom, which can change how many CPUs it uses.
    pub malleable: bool,
    pub activity: ActivityVector,
}

impl Seen {
    /// Create an entry. `threads` includes lissom's monitor, which is subtracted.
    pub fn new(
        id: Id,
        name: String,
        threads: u32,
        malleable: bool,
        activity: ActivityVector,
    ) -> Seen {
        Seen {
            id,
            name,
            threads: threads - u32::from(malleable && threads > 1),
            malleable,
            activity,
        }
    }
}

/// Sampler of thread states. Skips processes that used no CPU time since the last period.
#[derive(Default)]
pub struct Sampler {
    known: HashMap<Id, Known>,
}

struct Known {
    /// In clock ticks since boot. Distinguishes processes with the same number.
    start_time: u64,
    cpu_time: u64,
    malleable: bool,
}

/// A process during one period.
struct Watched {
    process: Process,
    stat: Stat,
    malleable: bool,
    active: bool,
    /// `[i]`: time with i runnable threads.
    time: Vec<Duration>,
}

impl Sampler {
    /// Sample for `period`, calling `wait` in between. Returns the activity of each process.
    pub fn period(
        &mut self,
        period: Duration,
        wait: &mut dyn FnMut(Duration),
    ) -> anyhow::Result<Vec<Seen>> {
        let mut watched = self.find()?;
        let step = period / LOOKS;
        let mut last = Instant::now();
        for _ in 0..LOOKS {
            wait(step);
            let now = Instant::now();
            for process in watched.iter_mut().filter(|w| w.active) {
                process.look(now - last);
            }
            last = now;
        }
        Ok(watched.into_iter().map(Watched::seen).collect())
    }

    /// List this user's processes, or all of them for root, except this one and kernel threads.
    fn find(&mut self) -> anyhow::Result<Vec<Watched>> {
        let (user, own) = (os::process::euid(), std::process::id());
        let mut found = Vec::new();
        let mut known = HashMap::new();
        for process in procfs::process::all_processes().context("cannot read /proc")?.flatten() {
            // Skip a process that ends meanwhile.
            let (Ok(stat), Ok(owner)) = (process.stat(), process.uid()) else { continue };
            let is_kernels = stat.flags & StatFlags::PF_KTHREAD.bits() != 0;
            let id = stat.pid as Id;
            if is_kernels || id == own || (user != 0 && owner != user) {
                continue;
            }
            let cpu_time = stat.utime + stat.stime;
            let before = self.known.get(&id).filter(|k| k.start_time == stat.starttime);
            // An active process may have executed another program, with or without lissom: check
            // again.
            let active = stat.state == 'R' || before.is_none_or(|k| k.cpu_time != cpu_time);
            let malleable = match before {
                Some(before) if !active => before.malleable,
                _ => has_runtime(&process),
            };
            known.insert(id, Known { start_time: stat.starttime, cpu_time, malleable });
            found.push(Watched { process, stat, malleable, active, time: Vec::new() });
        }
        self.known = known;
        Ok(found)
    }
}

impl Watched {
    fn look(&mut self, since: Duration) {
        let tasks = self.process.tasks().into_iter().flatten().flatten();
        let runnable = tasks.filter(|t| t.stat().is_ok_and(|s| s.state == 'R')).count();
        if self.time.len() <= runnable {
            self.time.resize(runnable + 1, Duration::ZERO);
        }
        self.time[runnable] += since;
    }

    fn seen(self) -> Seen {
        let threads = u32::try_from(self.stat.num_threads).unwrap_or(1);
        let activity = ActivityVector::new(self.time);
        Seen::new(self.stat.pid as Id, self.stat.comm, threads, self.malleable, activity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Busy(Child);

    impl Drop for Busy {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn shell(script: &str) -> Busy {
        Busy(Command::new("sh").args(["-c", script]).spawn().expect("sh"))
    }

    #[test]
    fn busy_and_idle_processes() {
        let (busy, idle) = (shell("while :; do :; done"), shell("exec sleep 100"));
        let mut sampler = Sampler::default();
        let mut count = |of: &Busy| {
            let seen =
                sampler.period(Duration::from_millis(200), &mut std::thread::sleep).expect("/proc");
            let seen = seen.iter().find(|s| s.id == of.0.id()).expect("it runs");
            assert!(!seen.malleable && seen.threads == 1);
            seen.activity.typical_thread_count(Duration::from_millis(2))
        };
        assert_eq!(count(&busy), 1);
        assert_eq!(count(&idle), 0);
        // A thread that waits for a CPU counts like a running one.
        assert_eq!(count(&busy), 1);
    }
}
