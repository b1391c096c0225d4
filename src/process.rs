//! Thin wrappers of system calls that the standard library lacks: execve with an environment,
//! memfds that survive it, affinity, capabilities, clocks.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Environment for `execve`: the caller's, with changes. Lacks entries without `=`, which the
/// standard library skips. Of duplicates, `get` and `set` use the first, as getenv does.
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    pub fn inherited() -> Environment {
        Environment(std::env::vars_os().collect())
    }

    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_os_str())
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
    let text = |s: &OsStr| CString::new(s.as_bytes()).map_err(io::Error::from);
    let path = match text(path.as_os_str()) {
        Ok(path) => path,
        Err(e) => return e,
    };
    let argv: Vec<CString> = match argv.iter().map(|a| text(a)).collect() {
        Ok(argv) => argv,
        Err(e) => return e,
    };
    let envp = environment.strings();
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv_pointers, envp_pointers) = (pointers(&argv), pointers(&envp));
    // SAFETY: both lists end in NULL and point to strings that live until the call returns.
    unsafe { libc::execve(path.as_ptr(), argv_pointers.as_ptr(), envp_pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Create a memfd that survives an exec. Its number is high if possible, because some programs
/// expect that the first descriptor they open is 3.
pub fn inherited_memfd(name: &str) -> io::Result<OwnedFd> {
    const OUT_OF_THE_WAY: libc::c_int = 200;
    let name = CString::new(name)?;
    // SAFETY: `name` is a C string; the result is checked.
    let fd =
        unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just created, and nothing else owns it.
    let low = unsafe { OwnedFd::from_raw_fd(fd) };
    for minimum in [OUT_OF_THE_WAY, 3] {
        // F_DUPFD clears close-on-exec, so the copy survives an exec. It fails above RLIMIT_NOFILE.
        // SAFETY: plain fcntl on a descriptor we own.
        let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD, minimum) };
        if high >= 0 {
            // SAFETY: as above.
            return Ok(unsafe { OwnedFd::from_raw_fd(high) });
        }
    }
    Err(io::Error::last_os_error())
}

/// Add seals to a memfd, and forbid further changes of its seals.
pub fn seal(fd: &OwnedFd, seals: libc::c_int) -> io::Result<()> {
    // SAFETY: plain fcntl on a descriptor we own.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals | libc::F_SEAL_SEAL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

pub fn euid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() }
}

pub fn ruid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::getuid() }
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
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
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
    // SAFETY: a set on the stack that sched_getaffinity fills in; CPU_ISSET stays inside it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(thread as libc::pid_t, size_of::<libc::cpu_set_t>(), &mut set)
            != 0
        {
            return None;
        }
        Some((0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect())
    }
}

pub fn cpu_set(cpus: &[usize]) -> libc::cpu_set_t {
    // SAFETY: all zeros is the empty set; CPU_SET stays inside it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter()
            .filter(|cpu| **cpu < libc::CPU_SETSIZE as usize)
            .for_each(|&cpu| libc::CPU_SET(cpu, &mut set));
        set
    }
}

/// Set the affinity mask of the calling thread. Threads and processes that it starts inherit it.
pub fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: a set that the kernel reads.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
