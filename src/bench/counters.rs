//! What a program has used, as the kernel counts it: by `wait4` in each run, which costs it
//! nothing, and by a performance event where that is the only way. These are counted where time is
//! not: an event that all threads inherit is taken off and put on at each of their context
//! switches.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::FromRawFd as _;

use serde::Serialize;

/// Of all threads, and of the children that were waited for.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Used {
    pub user_seconds: f64,
    pub system_seconds: f64,
    /// Context switches: because a thread blocked, and because another one had its turn.
    pub voluntary: u64,
    pub involuntary: u64,
    /// Page faults for which nothing had to be read.
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

/// Of one run, as JSON has it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Process {
    /// From its start to its end, and so more than what most programs say of themselves.
    pub seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    /// CPU seconds in a second.
    pub cpus_used: f64,
    pub context_switches: u64,
    pub voluntary: u64,
    pub involuntary: u64,
    pub faults: u64,
    /// CPUs that anybody else used meanwhile, of those that this process may use, or the host of a
    /// virtual machine. The kernel counts it in ticks, so of a short run it says little, and it may
    /// be below 0.
    pub others: f64,
}

impl Process {
    /// `busy`: CPU seconds for which the CPUs were busy during the run.
    pub fn new(seconds: f64, used: &Used, busy: f64) -> Process {
        let per_second = |value: f64| if seconds > 0.0 { value / seconds } else { 0.0 };
        Process {
            seconds,
            user_seconds: used.user_seconds,
            system_seconds: used.system_seconds,
            cpus_used: per_second(used.cpu_seconds()),
            context_switches: used.voluntary + used.involuntary,
            voluntary: used.voluntary,
            involuntary: used.involuntary,
            faults: used.faults,
            others: per_second(busy - used.cpu_seconds()),
        }
    }
}

/// Counts how often threads of the next program that this thread starts, and of all that it starts,
/// go to another CPU.
pub struct Migrations(File);

impl Migrations {
    /// The error is the system's, as a rule that `perf_event_paranoid` denies it.
    pub fn open() -> io::Result<Migrations> {
        #[repr(C)]
        #[derive(Default)]
        // The first version of the kernel's structure, with which any kernel is content.
        struct Attributes {
            kind: u32,
            size: u32,
            config: u64,
            sample_period: u64,
            sample_type: u64,
            read_format: u64,
            flags: u64,
            wakeup_events: u32,
            bp_type: u32,
            config1: u64,
        }
        const SOFTWARE: u32 = 1;
        const CPU_MIGRATIONS: u64 = 4;
        const DISABLED: u64 = 1;
        const INHERIT: u64 = 1 << 1;
        const EXCLUDE_KERNEL: u64 = 1 << 5;
        const ENABLE_ON_EXEC: u64 = 1 << 12;
        const CLOSE_ON_EXEC: libc::c_ulong = 8;
        // Never enabled here, but in what is started, by its exec. Migrations happen in the kernel:
        // only who may not see that has to leave it out, and then sees fewer of them.
        let open = |flags: u64| {
            let attributes = Attributes {
                kind: SOFTWARE,
                size: size_of::<Attributes>() as u32,
                config: CPU_MIGRATIONS,
                flags: DISABLED | INHERIT | ENABLE_ON_EXEC | flags,
                ..Attributes::default()
            };
            // SAFETY: the structure is as large as it says, and outlives the call.
            unsafe {
                libc::syscall(libc::SYS_perf_event_open, &attributes, 0, -1, -1, CLOSE_ON_EXEC)
            }
        };
        let fd = match open(0) {
            fd if fd >= 0 => fd,
            _ => open(EXCLUDE_KERNEL),
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just made it, and nobody else has it.
        Ok(Migrations(unsafe { File::from_raw_fd(fd as i32) }))
    }

    /// So far.
    pub fn read(&mut self) -> io::Result<u64> {
        let mut count = [0; 8];
        self.0.read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
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
        let cpus = crate::process::allowed_cpus();
        let Ok(mut migrations) = Migrations::open() else { return };
        if cpus.len() < 2
            || crate::program::find("taskset".as_ref(), std::env::var_os("PATH").as_deref())
                .is_err()
        {
            return;
        }
        // A shell that goes to and fro. Each taskset is a process that does so for its parent.
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
