//! Thin wrappers of system calls that the standard library lacks: execve with an environment,
//! memfds that survive it, affinity, capabilities, clocks.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};
use procfs::process::{MMapPath, MemoryMaps, Process};

/// Environment for `execve`: the caller's, with changes. Lacks entries without `=`, which the
/// standard library skips. Of duplicates, `get` and `set` use the first, as getenv does.
#[derive(Clone)]
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    pub fn inherited() -> Environment {
        Environment(std::env::vars_os().collect())
    }

    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let name = name.as_ref();
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_os_str())
    }

    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.iter().map(|(name, _)| name.as_os_str())
    }

    /// Set a variable. Keeps the order of existing variables, and appends a new one.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        let value = value.into();
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name.into(), value)),
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(n, _)| n != name);
    }

    /// Return NAME=value strings, without those that contain a NUL.
    fn strings(&self) -> Vec<CString> {
        let join = |(name, value): &(OsString, OsString)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        };
        self.0.iter().filter_map(join).collect()
    }
}

/// Replace this process by a program. Returns only on failure, with the error.
pub fn execve(path: &Path, argv: &[OsString], environment: &Environment) -> io::Error {
    let text = |s: &OsStr| CString::new(s.as_bytes());
    let execute = || -> io::Result<Infallible> {
        let argv = argv.iter().map(|a| text(a)).collect::<Result<Vec<_>, _>>()?;
        Ok(nix::unistd::execve(&text(path.as_os_str())?, &argv, &environment.strings())?)
    };
    let Err(error) = execute();
    error
}

/// Create a memfd that survives an exec. Its number is high if possible, because some programs
/// expect that the first descriptor they open is 3.
pub fn inherited_memfd(name: &str) -> io::Result<OwnedFd> {
    const OUT_OF_THE_WAY: libc::c_int = 200;
    let name = CString::new(name)?;
    let low = memfd_create(name.as_c_str(), MFdFlags::MFD_ALLOW_SEALING | MFdFlags::MFD_CLOEXEC)?;
    for minimum in [OUT_OF_THE_WAY, 3] {
        // F_DUPFD clears close-on-exec, so the copy survives an exec. It fails above RLIMIT_NOFILE.
        if let Ok(high) = fcntl(&low, FcntlArg::F_DUPFD(minimum)) {
            // SAFETY: the descriptor was just created, and nothing else owns it.
            return Ok(unsafe { OwnedFd::from_raw_fd(high) });
        }
    }
    Err(io::Error::last_os_error())
}

/// Add seals to a memfd, and forbid further changes of its seals.
pub fn seal(fd: &OwnedFd, seals: SealFlag) -> io::Result<()> {
    fcntl(fd, FcntlArg::F_ADD_SEALS(seals | SealFlag::F_SEAL_SEAL))?;
    Ok(())
}

pub fn euid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

pub fn ruid() -> u32 {
    nix::unistd::getuid().as_raw()
}

/// Return the number of online CPUs, whether this process may use them or not.
pub fn online_count() -> usize {
    let count = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
    count.and_then(|n| usize::try_from(n).ok()).unwrap_or(1).max(1)
}

/// Send a signal to a process or, with a negative number, to a process group. Ignores errors: it
/// may have ended.
pub fn signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Return whether the process exists.
pub fn exists(pid: impl Display) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Return the name of a process, without control characters; "?" if it has ended.
pub fn name(pid: impl Display) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.map_or("?".into(), |name| ui::terminal::plain(name.trim_end()))
}

/// Return whether this process is in the initial PID namespace, whose process IDs BPF programs see.
pub fn in_first_pid_namespace() -> bool {
    // The kernel's PROC_PID_INIT_INO.
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|l| l.as_os_str() == "pid:[4026531836]")
}

/// Return whether this process may load BPF programs that trace the kernel.
pub fn may_trace_by_bpf() -> bool {
    let (perfmon, bpf) = (1 << 38, 1 << 39);
    is_admin() || capabilities() & (perfmon | bpf) == perfmon | bpf
}

/// Return whether this process has CAP_SYS_ADMIN, which includes several other capabilities.
pub fn is_admin() -> bool {
    capabilities() & 1 << 21 != 0
}

/// Return the mask of this process's effective capabilities; 0 if it cannot be read.
fn capabilities() -> u64 {
    Process::myself().and_then(|p| p.status()).map_or(0, |status| status.capeff)
}

/// Return whether lockdown forbids all BPF programs, also root's, to read the kernel's memory.
pub fn is_locked_down() -> bool {
    let mode = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    mode.contains("[confidentiality]")
}

/// Return the time of CLOCK_MONOTONIC, which is also the clock of bpf_ktime_get_ns.
pub fn monotonic() -> Duration {
    // This cannot fail: every kernel has this clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

/// Return the CPUs of this thread's affinity mask.
pub fn allowed_cpus() -> Vec<usize> {
    affinity(0).unwrap_or(vec![0])
}

/// Return the CPUs of a thread's affinity mask, which the kernel limits to its cpuset. 0: this
/// thread. Returns `None` if the thread does not exist.
pub fn affinity(thread: u32) -> Option<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(thread as libc::pid_t)).ok()?;
    Some((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

pub fn cpu_set(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::count()).for_each(|&cpu| {
        let _ = set.set(cpu);
    });
    set
}

/// Set the affinity mask of the calling thread. Threads and processes that it starts inherit it.
pub fn set_affinity(set: &CpuSet) -> io::Result<()> {
    Ok(sched_setaffinity(Pid::from_raw(0), set)?)
}

/// Return the scheduling policy of a thread, with SCHED_RESET_ON_FORK. None: it has ended.
pub fn policy(thread: u32) -> Option<i32> {
    // SAFETY: takes and returns numbers.
    let policy = unsafe { libc::sched_getscheduler(thread as libc::pid_t) };
    (policy >= 0).then_some(policy)
}

/// Set the scheduling policy and the real-time priority of a thread. 0: this thread.
pub fn set_policy(thread: u32, policy: i32, priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel only reads the structure.
    let result = unsafe { libc::sched_setscheduler(thread as libc::pid_t, policy, &parameter) };
    Ok(Errno::result(result).map(drop)?)
}

/// Numbers of the online CPUs. Returns None if the list cannot be read.
pub fn online_cpus() -> Option<Vec<u32>> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    Some(cpu_list(&list).into_iter().map(|cpu| cpu as u32).collect())
}

/// Return whether the runtime is mapped. False if the memory map cannot be read.
pub fn has_runtime(process: &Process) -> bool {
    process.maps().is_ok_and(|maps| have_runtime(&maps))
}

/// Return whether the runtime is mapped, from its file or from memory.
pub fn have_runtime(maps: &MemoryMaps) -> bool {
    maps.iter().any(|map| match &map.pathname {
        MMapPath::Path(path) => {
            path.file_name().is_some_and(|name| name.to_string_lossy().contains("liblissom"))
        }
        MMapPath::Other(name) => name.contains("liblissom"),
        _ => false,
    })
}

/// Parse a list such as `0-3,8`. Skips parts that are no numbers.
pub fn cpu_list(text: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cpus.extend(first..=last.min(first + 100_000));
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cpu_list(""), [] as [usize; 0]);
        assert_eq!(cpu_list("x,1,3-2"), [1]);
    }
}
