//! Resources that a program used, as the kernel counts them. In each run, wait4 reports most of
//! them at no cost. Migrations need a performance event, and are not counted in timed runs: the
//! kernel removes and adds an inherited event at every context switch of every thread.

use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Counter};
use serde::Serialize;

/// Resources used by all threads of a program, and by the children that it waited for.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize)]
pub struct Used {
    pub user_seconds: f64,
    pub system_seconds: f64,
    /// Context switches of threads that blocked.
    pub voluntary: u64,
    /// Context switches of preempted threads.
    pub involuntary: u64,
    /// Page faults without I/O.
    pub faults: u64,
}

impl Used {
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }
}

impl From<&libc::rusage> for Used {
    fn from(usage: &libc::rusage) -> Used {
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
        let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
        Used {
            user_seconds: seconds(usage.ru_utime),
            system_seconds: seconds(usage.ru_stime),
            voluntary: count(usage.ru_nvcsw),
            involuntary: count(usage.ru_nivcsw),
            faults: count(usage.ru_minflt),
        }
    }
}

/// Resources used by one run, as in the JSON document.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Process {
    /// Time from the program's start to its end: more than most programs report themselves.
    pub seconds: f64,
    #[serde(flatten)]
    pub used: Used,
    /// CPU seconds per second.
    pub cpus_used: f64,
    pub context_switches: u64,
    /// CPUs, of those that this process may use, that other processes or a virtual machine's host
    /// used meanwhile. The kernel counts in ticks: the value is imprecise for short runs, and may
    /// be negative.
    pub others: f64,
}

impl Process {
    /// `busy`: CPU seconds during which the CPUs were busy in the run.
    pub fn new(seconds: f64, used: &Used, busy: f64) -> Process {
        let per_second = |value: f64| if seconds > 0.0 { value / seconds } else { 0.0 };
        Process {
            seconds,
            used: *used,
            cpus_used: per_second(used.cpu_seconds()),
            context_switches: used.voluntary + used.involuntary,
            others: per_second(busy - used.cpu_seconds()),
        }
    }
}

/// Counts the migrations to another CPU of the next program that this thread starts. Includes all
/// threads and children of the program.
pub struct Migrations(Counter);

impl Migrations {
    /// Open the counter. Fails with the system's error, usually because `perf_event_paranoid`
    /// denies access.
    pub fn open() -> io::Result<Migrations> {
        let mut event = Builder::new(Software::CPU_MIGRATIONS);
        // The program's exec enables the event.
        event.inherit(true).enable_on_exec(true);
        // Exclude the kernel only if the user may not count there: migrations happen in the kernel,
        // so the count is then too low.
        let counter = event.exclude_kernel(false).exclude_hv(false).build();
        counter.or_else(|_| event.exclude_kernel(true).build()).map(Migrations)
    }

    /// Return the number of migrations so far.
    pub fn read(&mut self) -> io::Result<u64> {
        self.0.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_run() {
        let used = Used {
            user_seconds: 1.0,
            system_seconds: 0.5,
            voluntary: 3,
            involuntary: 4,
            faults: 5,
        };
        let process = Process::new(2.0, &used, 2.5);
        assert_eq!((process.cpus_used, process.others, process.context_switches), (0.75, 0.5, 7));
        assert_eq!(Process::new(0.0, &used, 0.0).others, 0.0);
    }

    #[test]
    fn migrations_are_those_of_the_child_and_its_children() {
        let cpus = os::process::allowed_cpus();
        let Ok(mut migrations) = Migrations::open() else { return };
        if cpus.len() < 2
            || os::program::find("taskset".as_ref(), std::env::var_os("PATH").as_deref()).is_err()
        {
            return;
        }
        // A shell that migrates repeatedly: each taskset changes the mask of its parent.
        let script = format!(
            "for i in 1 2 3 4 5; do taskset -pc {} $$ >/dev/null; taskset -pc {} $$ >/dev/null; done",
            cpus[0], cpus[1]
        );
        let status = std::process::Command::new("/bin/sh").args(["-c", &script]).status();
        assert!(status.is_ok_and(|s| s.success()));
        let count = migrations.read().expect("a number");
        assert!((9..1000).contains(&count), "{count}");
    }
}
