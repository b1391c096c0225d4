//! Whether this machine has what a case needs.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::run;

/// Of Linux 6.3.
const PR_GET_MDWE: i32 = 66;

/// The reason why the case cannot run here; each requirement is tried once.
pub fn missing(requirements: &[String]) -> Option<String> {
    static KNOWN: OnceLock<Mutex<HashMap<String, bool>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    requirements
        .iter()
        .find(|r| !*known.entry(r.to_string()).or_insert_with(|| present(r)))
        .map(|r| format!("needs {r}"))
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
        ("thread-ids", "") => fs::OpenOptions::new().write(true).open("/proc/sys/kernel/ns_last_pid").is_ok(),
        // SAFETY: cannot fail but by saying so.
        ("mdwe", "") => unsafe { libc::prctl(PR_GET_MDWE, 0_u64, 0_u64, 0_u64, 0_u64) >= 0 },
        ("cpus", n) => at_least(n, run::cpus() as u64),
        ("threads", n) => at_least(n, threads_allowed()),
        ("lib", name) => library(name),
        ("libomp", "") => library("libomp.so.5"),
        ("py", module) => succeeds("python3", &["-c", &format!("import {module}")]),
        // Of the distribution's own Python, which another one may hide.
        ("syspy", module) => succeeds("/usr/bin/python3", &["-c", &format!("import {module}")]),
        ("venv-ml", "") => run::target_dir().join("venv/bin/python3").exists(),
        ("file", path) => Path::new(path).exists(),
        ("glibc", version) => glibc_version() >= parse_version(version),
        ("x86_64", "") => cfg!(target_arch = "x86_64"),
        ("active", "") => succeeds(&run::lissom().to_string_lossy(), &["doctor"]),
        ("bpf", "") => {
            let look = ["manager", "--dry-run", "--once", "--period=20", "--activity=bpf"];
            succeeds(&run::lissom().to_string_lossy(), &look)
        }
        ("perf-samples", "") => {
            let look = ["stat", "1", "--interval=0.1", "--json"];
            output(&run::lissom().to_string_lossy(), &look).contains("\"spinning_not_sampled\": null")
        }
        (command, "") => in_path(command),
        _ => false,
    }
}

/// Whether a cgroup can be made that has one of the files, in version 1 below one of the mounts.
fn cgroup(mounts: &[&str], files: &[&str]) -> bool {
    mounts.iter().chain(&[""]).any(|mount| {
        let folder =
            Path::new("/sys/fs/cgroup").join(mount).join(format!("lissom-probe-{}", std::process::id()));
        let limited = fs::create_dir(&folder).is_ok() && files.iter().any(|f| folder.join(f).exists());
        let _ = fs::remove_dir(&folder);
        limited
    })
}

fn succeeds(command: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(command);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}

/// What it prints; nothing if it cannot be started.
fn output(command: &str, arguments: &[&str]) -> String {
    let out = Command::new(command).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    out.map_or(String::new(), |o| String::from_utf8_lossy(&o.stdout).into_owned())
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

/// The least of what the user, the machine and the cgroups allow.
fn threads_allowed() -> u64 {
    let number = |path: &Path| -> Option<u64> { fs::read_to_string(path).ok()?.trim().parse().ok() };
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
            limit = limit.min(number(&Path::new(mount).join(part).join("pids.max")).unwrap_or(u64::MAX));
        }
    }
    limit
}
