//! Limits on the CPUs and threads of programs.

use std::fs;

use nix::sys::resource::{Resource, getrlimit};

use super::Finding;
use os::cgroup;
use os::process;
use ui::text::plural;

/// Limits of fewer threads than this are reported.
const MANY: u64 = 4096;

pub fn findings() -> Vec<Finding> {
    vec![cpus(), quota(), threads(), stacks()]
}

fn cpus() -> Finding {
    let online = process::online_count();
    let allowed = process::allowed_cpus().len();
    let set = cgroup::cpuset();
    let listed = set.as_ref().map(|s| format!(" (cpuset {})", s.value)).unwrap_or_default();
    let why = format!("{allowed} of {online} are available{listed}");
    if allowed >= online {
        return Finding::ok("CPUs", why);
    }
    let file = set.map(|s| format!(", or write to {}", s.file.display())).unwrap_or_default();
    Finding::limited(
        "CPUs",
        why,
        format!("taskset -pc 0-{} $${file}", online - 1).replace("$$", "\"$$\""),
    )
}

fn quota() -> Finding {
    let Some(limit) = cgroup::quota() else {
        return Finding::ok("CPU quota", "none in the visible cgroups");
    };
    let slots = cgroup::quota_cpus().unwrap_or(1);
    let why = format!("{:.2} CPUs by {}", limit.value, limit.file.display());
    if slots >= process::allowed_cpus().len() {
        return Finding::ok("CPU quota", why);
    }
    let setting = if limit.file.ends_with("cpu.max") { "max" } else { "-1" };
    Finding::limited(
        "CPU quota",
        format!(
            "{why}: at most {} at once, but programs see more CPUs",
            plural(slots as u64, "thread")
        ),
        format!(
            "lissom run --visible-cpus=slots, if the program starts a thread for each CPU; or \
             raise the quota: echo {setting} > {}",
            limit.file.display()
        ),
    )
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn soft_limit(resource: Resource) -> Option<u64> {
    let (soft, _) = getrlimit(resource).ok()?;
    (soft != libc::RLIM_INFINITY).then_some(soft)
}

/// Report the least of all limits on the number of threads, and how to raise it.
fn threads() -> Finding {
    let mut limits: Vec<(u64, String, String)> = Vec::new();
    let mut add = |value: Option<u64>, name: &str, fix: String| {
        limits.extend(value.map(|v| (v, name.to_string(), fix)));
    };
    if let Some(pids) = cgroup::pids() {
        let file = pids.file.display();
        add(Some(pids.value), &file.to_string(), format!("echo max > {file}"));
    }
    // This limit does not apply to root.
    if process::euid() != 0 {
        add(soft_limit(Resource::RLIMIT_NPROC), "RLIMIT_NPROC", "ulimit -u unlimited".into());
    }
    for (name, fix) in [("threads-max", "kernel.threads-max"), ("pid_max", "kernel.pid_max")] {
        add(number(&format!("/proc/sys/kernel/{name}")), name, format!("sysctl {fix}=200000"));
    }
    // A stack and its guard page are two mappings.
    let maps = number("/proc/sys/vm/max_map_count").map(|n| n / 2);
    add(maps, "vm.max_map_count, two for each thread", "sysctl vm.max_map_count=1000000".into());

    let Some((least, name, fix)) = limits.into_iter().min_by_key(|l| l.0) else {
        return Finding::ok("thread count", "no limit found");
    };
    let why = format!("at most {least} threads ({name})");
    if least >= MANY {
        Finding::ok("thread count", why)
    } else {
        Finding::limited("thread count", why, fix)
    }
}

/// Report the stack size of threads. glibc gives a thread RLIMIT_STACK bytes; they are address
/// space until the thread uses them.
fn stacks() -> Finding {
    const MIB: u64 = 1024 * 1024;
    let stack = soft_limit(Resource::RLIMIT_STACK);
    let each = stack.unwrap_or(2 * MIB).max(16 * 1024);
    let shown = match stack {
        Some(bytes) => format!("{} KiB of stack for each thread (RLIMIT_STACK)", bytes / 1024),
        None => "2 MiB of stack for each thread (RLIMIT_STACK is unlimited)".to_string(),
    };
    if let Some(space) = soft_limit(Resource::RLIMIT_AS)
        && space / each < MANY
    {
        let why =
            format!("{shown}; the address space (RLIMIT_AS) has room for {} of them", space / each);
        return Finding::limited("thread stacks", why, "ulimit -v unlimited, or ulimit -s 1024");
    }
    // Without overcommit, a mapped stack is charged at once.
    if number("/proc/sys/vm/overcommit_memory") == Some(2) && each > 2 * MIB {
        let why = format!("{shown}, charged at once because vm.overcommit_memory is 2");
        return Finding::limited("thread stacks", why, "ulimit -s 1024");
    }
    Finding::ok("thread stacks", shown)
}
