//! The kernel's statistics of a process's threads.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use procfs::process::Process;

/// Sums over all threads of a process. They do not decrease when a thread ends, but what it did
/// since the last scan is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub threads: u32,
    /// Threads that run or wait for a CPU.
    pub runnable: u32,
    /// Time for which threads waited for a CPU.
    pub run_delay: Duration,
    pub migrations: Option<u64>,
}

/// Statistics of a process's threads, from one scan to the next.
#[derive(Default)]
pub struct Threads {
    /// By thread number: run delay and migrations.
    last: HashMap<i32, (Duration, u64)>,
    run_delay: Duration,
    migrations: u64,
}

impl Threads {
    /// Scan the threads of process `pid`: about 20 us for each. None: the process has ended.
    pub fn look(&mut self, pid: u32) -> Option<Totals> {
        let (mut threads, mut runnable, mut told) = (0, 0, true);
        let mut now = HashMap::with_capacity(self.last.len());
        for task in Process::new(pid as i32).ok()?.tasks().ok()?.flatten() {
            // Skip a thread that ends meanwhile.
            let Ok(stat) = task.stat() else { continue };
            threads += 1;
            runnable += u32::from(stat.state == 'R');
            let delay = task.schedstat().map_or(0, |times| times.run_delay);
            // Unknown without CONFIG_SCHED_DEBUG, and for processes of other users.
            let sched = fs::read_to_string(format!("/proc/{pid}/task/{}/sched", task.tid));
            let moves = sched.ok().and_then(|text| migrations(&text));
            told &= moves.is_some();
            now.insert(task.tid, (Duration::from_nanos(delay), moves.unwrap_or(0)));
        }
        if threads == 0 {
            return None;
        }
        self.add(now);
        let migrations = told.then_some(self.migrations);
        Some(Totals { threads, runnable, run_delay: self.run_delay, migrations })
    }

    fn add(&mut self, now: HashMap<i32, (Duration, u64)>) {
        for (tid, &(delay, moves)) in &now {
            // If a value has decreased, the number belongs to a new thread: add the whole value.
            let &(old_delay, old_moves) = self.last.get(tid).unwrap_or(&(Duration::ZERO, 0));
            self.run_delay += delay.checked_sub(old_delay).unwrap_or(delay);
            self.migrations += moves.checked_sub(old_moves).unwrap_or(moves);
        }
        self.last = now;
    }
}

fn migrations(sched: &str) -> Option<u64> {
    let line = sched.lines().find(|l| l.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes() {
        assert_eq!(
            migrations("x (1, #threads: 1)\n---\nse.nr_migrations      :      17\n"),
            Some(17)
        );
        assert_eq!(migrations(""), None);
    }

    #[test]
    fn of_this_process() {
        let totals = Threads::default().look(std::process::id()).expect("it is here");
        assert!(totals.threads >= 1 && totals.runnable >= 1, "{totals:?}");
        assert_eq!(Threads::default().look(u32::MAX >> 1), None);
    }

    #[test]
    fn a_thread_that_ends_takes_nothing_back() {
        let mut threads = Threads::default();
        let mut sums = |now: &[(i32, u64, u64)]| {
            let of =
                |&(tid, ms, moves): &(i32, u64, u64)| (tid, (Duration::from_millis(ms), moves));
            threads.add(now.iter().map(of).collect());
            (threads.run_delay.as_millis(), threads.migrations)
        };
        assert_eq!(sums(&[(1, 10, 1), (2, 500, 40)]), (510, 41));
        assert_eq!(sums(&[(1, 15, 2)]), (515, 42));
        assert_eq!(sums(&[(1, 15, 2), (2, 5, 3)]), (520, 45));
        // Another thread has the same number.
        assert_eq!(sums(&[(1, 15, 2), (2, 1, 1)]), (521, 46));
    }
}
