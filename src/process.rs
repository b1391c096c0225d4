//! Thin wrappers of what the standard library cannot say: execve with an environment of ours,
//! memfd, fork, affinity.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Environment of the program to be: the caller's, with changes. Keeps duplicates and entries
/// without `=` out, as the standard library does.
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    pub fn inherited() -> Environment {
        Environment(std::env::vars_os().collect())
    }

    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_os_str())
    }

    /// Replaces in place, so that the order of the others is kept.
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

    fn strings(&self) -> Vec<CString> {
        let join = |(name, value): &(OsString, OsString)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        };
        self.0.iter().filter_map(join).collect()
    }
}

/// Becomes the program. Returns only if that failed.
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

/// A memfd that an exec keeps, out of the way of the low numbers: a program may count on the first
/// descriptor it opens being 3.
pub fn inherited_memfd(name: &str) -> io::Result<OwnedFd> {
    const OUT_OF_THE_WAY: libc::c_int = 200;
    let name = CString::new(name)?;
    // SAFETY: `name` is a C string; the result is checked.
    let fd =
        unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let low = unsafe { OwnedFd::from_raw_fd(fd) };
    for minimum in [OUT_OF_THE_WAY, 3] {
        // Without F_DUPFD_CLOEXEC, so the copy survives an exec. Fails above RLIMIT_NOFILE.
        // SAFETY: plain fcntl on a descriptor we own.
        let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD, minimum) };
        if high >= 0 {
            // SAFETY: as above.
            return Ok(unsafe { OwnedFd::from_raw_fd(high) });
        }
    }
    Err(io::Error::last_os_error())
}

/// Forbids changes for good.
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

/// Whether process numbers here are those of the machine, which BPF programs see.
pub fn in_first_pid_namespace() -> bool {
    // PROC_PID_INIT_INO of the kernel.
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|l| l.as_os_str() == "pid:[4026531836]")
}

/// Whether this process may load BPF programs that look at the kernel.
pub fn may_trace_by_bpf() -> bool {
    let (perfmon, bpf) = (1 << 38, 1 << 39);
    is_admin() || capabilities() & (perfmon | bpf) == perfmon | bpf
}

/// CAP_SYS_ADMIN, which stands for several others.
pub fn is_admin() -> bool {
    capabilities() & 1 << 21 != 0
}

/// The effective ones of this process.
fn capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether BPF programs are kept from the kernel's memory, root's too.
pub fn is_locked_down() -> bool {
    let mode = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    mode.contains("[confidentiality]")
}

/// CLOCK_MONOTONIC, which is also the clock of bpf_ktime_get_ns.
pub fn monotonic() -> Duration {
    // It cannot fail: the kernel always has this clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

/// Those of this thread's affinity mask.
pub fn allowed_cpus() -> Vec<usize> {
    affinity(0).unwrap_or(vec![0])
}

/// The CPUs of a thread's affinity mask, which its cpuset bounds; 0: this one's. None: it is gone.
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

/// Of the calling thread and what it starts.
pub fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: a set that the kernel reads.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
