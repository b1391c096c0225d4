//! Check whether this machine meets a case's requirements.

use std::collections::HashMap;
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::run;

/// prctl option of Linux 6.3.
const PR_GET_MDWE: i32 = 66;

/// Requirements without a value; `VALUED` lists those with a value after a colon.
const PLAIN: [&str; 12] = [
    "root",
    "not-root",
    "pids-cgroup",
    "cpu-cgroup",
    "cpuset-cgroup",
    "thread-ids",
    "mdwe",
    "libomp",
    "x86_64",
    "active",
    "bpf",
    "perf-samples",
];
const VALUED: [&str; 9] =
    ["cpus", "threads", "lib", "py", "syspy", "file", "glibc", "cmd", "cpuflag"];

/// Return an error for a requirement that `missing` does not know.
pub fn check(requirement: &str) -> Result<(), String> {
    let known = match requirement.split_once(':') {
        None => PLAIN.contains(&requirement),
        Some((name, value)) => VALUED.contains(&name) && !value.is_empty(),
    };
    known.then_some(()).ok_or_else(|| {
        format!(
            "unknown requirement '{requirement}'; for a command in PATH write cmd:{requirement}"
        )
    })
}

/// Return the first unmet requirement. Each requirement is tried once per run of the tests.
pub fn missing(requirements: &[String]) -> Option<&str> {
    static KNOWN: OnceLock<Mutex<HashMap<String, bool>>> = OnceLock::new();
    let mut known =
        KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    requirements
        .iter()
        .find(|r| !*known.entry(r.to_string()).or_insert_with(|| present(r)))
        .map(String::as_str)
}

fn present(requirement: &str) -> bool {
    let at_least = |text: &str, have: u64| text.parse().is_ok_and(|n: u64| have >= n);
    match requirement.split_once(':').unwrap_or((requirement, "")) {
        // SAFETY: cannot fail.
        ("root", "") => unsafe { libc::geteuid() == 0 },
        // SAFETY: cannot fail.
        ("not-root", "") => unsafe { libc::geteuid() != 0 },
        ("pids-cgroup", "") => cgroup(&["pids"], &["pids.max"]),
        ("cpu-cgroup", "") => cgroup(&["cpu", "cpu,cpuacct"], &["cpu.cfs_quota_us", "cpu.max"]),
        ("cpuset-cgroup", "") => cgroup(&["cpuset"], &["cpuset.cpus"]),
        ("thread-ids", "") => {
            fs::OpenOptions::new().write(true).open("/proc/sys/kernel/ns_last_pid").is_ok()
        }
        // SAFETY: changes nothing; failure is reported by the result.
        ("mdwe", "") => unsafe { libc::prctl(PR_GET_MDWE, 0_u64, 0_u64, 0_u64, 0_u64) >= 0 },
        ("cpus", n) => at_least(n, run::cpus() as u64),
        ("threads", n) => at_least(n, threads_allowed()),
        ("lib", name) => library(name),
        ("libomp", "") => library("libomp.so.5"),
        ("py", module) => succeeds("python3", &["-c", &format!("import {module}")]),
        // Debian's own Python: another one may come first in PATH.
        ("syspy", module) => succeeds("/usr/bin/python3", &["-c", &format!("import {module}")]),
        ("file", path) => Path::new(path).exists(),
        ("glibc", version) => glibc_version() >= parse_version(version),
        ("x86_64", "") => cfg!(target_arch = "x86_64"),
        ("active", "") => {
            cfg!(target_arch = "x86_64") && glibc_version() >= (2, 31) && code_can_be_written()
        }
        ("bpf", "") => {
            Path::new("/sys/kernel/btf/vmlinux").exists()
                && libbpf_rs::ProgramType::RawTracepoint.is_supported().unwrap_or(false)
        }
        ("perf-samples", "") => can_sample(),
        ("cmd", command) => in_path(command),
        ("cpuflag", flag) => fs::read_to_string("/proc/cpuinfo")
            .is_ok_and(|text| text.split_whitespace().any(|word| word == flag)),
        _ => false,
    }
}

/// Whether a cgroup with one of the files can be created; for cgroup v1, below one of the mounts.
fn cgroup(mounts: &[&str], files: &[&str]) -> bool {
    mounts.iter().chain(&[""]).any(|mount| {
        let folder = Path::new("/sys/fs/cgroup")
            .join(mount)
            .join(format!("lissom-probe-{}", std::process::id()));
        let limited =
            fs::create_dir(&folder).is_ok() && files.iter().any(|f| folder.join(f).exists());
        let _ = fs::remove_dir(&folder);
        limited
    })
}

fn succeeds(command: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(command);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}

/// Whether this process may change its own code, through /proc/self/mem or mprotect.
fn code_can_be_written() -> bool {
    let access = libc::PROT_READ | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: maps a new page; no thread executes it.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return false;
    }
    let by_file = || {
        let mut memory = fs::OpenOptions::new().write(true).open("/proc/self/mem").ok()?;
        memory.seek(SeekFrom::Start(page as u64)).ok()?;
        memory.write_all(&[0xc3]).ok()
    };
    // SAFETY: the page created above.
    let by_mprotect =
        || unsafe { libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE) == 0 };
    let possible = by_file().is_some() || by_mprotect();
    // SAFETY: unmaps the page created above.
    unsafe { libc::munmap(page, 4096) };
    possible
}

/// Whether perf_event may sample another process's instruction pointer by clock.
fn can_sample() -> bool {
    let clock = perf_event::events::Software::CPU_CLOCK;
    let mut child = match Command::new("sleep").arg("10").spawn() {
        Ok(child) => child,
        Err(_) => return false,
    };
    let mut builder = perf_event::Builder::new(clock);
    builder
        .observe_pid(child.id() as i32)
        .sample_period(1_000_000)
        .sample(perf_event::SampleFlag::IP);
    let possible = builder.build().is_ok();
    let _ = child.kill();
    let _ = child.wait();
    possible
}

fn in_path(command: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|f| f.join(command).is_file())
}

fn library(name: &str) -> bool {
    let cache = |command: &str| Command::new(command).arg("-p").output().ok();
    cache("ldconfig").or_else(|| cache("/sbin/ldconfig")).is_some_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().any(|l| l.split_whitespace().next() == Some(name))
    })
}

fn parse_version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|p| p.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn glibc_version() -> (u32, u32) {
    // SAFETY: glibc returns a constant string.
    let text = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    parse_version(&text.to_string_lossy())
}

/// Return the smallest limit set by the user, the machine and the cgroups.
fn threads_allowed() -> u64 {
    let number =
        |path: &Path| -> Option<u64> { fs::read_to_string(path).ok()?.trim().parse().ok() };
    let mut limit = number(Path::new("/proc/sys/kernel/threads-max")).unwrap_or(u64::MAX);
    limit = limit.min(number(Path::new("/proc/sys/kernel/pid_max")).unwrap_or(u64::MAX));
    // SAFETY: rlimit is plain data, which getrlimit fills in.
    unsafe {
        let mut nproc: libc::rlimit = std::mem::zeroed();
        if libc::geteuid() != 0 && libc::getrlimit(libc::RLIMIT_NPROC, &mut nproc) == 0 {
            limit = limit.min(nproc.rlim_cur);
        }
    }
    for line in fs::read_to_string("/proc/self/cgroup").unwrap_or_default().lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mount = match controllers {
            "" => "/sys/fs/cgroup",
            "pids" => "/sys/fs/cgroup/pids",
            _ => continue,
        };
        for part in Path::new(path.trim_start_matches('/')).ancestors() {
            limit = limit
                .min(number(&Path::new(mount).join(part).join("pids.max")).unwrap_or(u64::MAX));
        }
    }
    limit
}
