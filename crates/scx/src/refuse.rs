//! Checks before the start, which change nothing. Each failure is one line with the cause and the
//! remedy.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;

use super::kernel::Types;
use super::scope::Only;
use super::{find, limits, load};
use os::sched_ext::SchedExt;

/// Check that the kernel has sched_ext. Returns its state.
pub fn kernel() -> anyhow::Result<SchedExt> {
    match SchedExt::now() {
        Some(now) => Ok(now),
        None => bail!(
            "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT): Linux 6.12 or newer may have it, Debian's from 6.18 on"
        ),
    }
}

/// Make all checks that do not depend on options. Returns the kernel's types.
pub fn machine() -> anyhow::Result<Types> {
    let now = kernel()?;
    if !os::process::may_trace_by_bpf() {
        bail!("cannot load BPF programs: run as root, or with CAP_BPF and CAP_PERFMON");
    }
    if !os::process::in_first_pid_namespace() {
        bail!(
            "this is a PID namespace of its own, and the scheduler uses the machine's process IDs: start it outside"
        );
    }
    if os::process::is_locked_down() {
        bail!("the kernel is locked down (lockdown=confidentiality): BPF may not read its memory");
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        bail!("this kernel has no type information (CONFIG_DEBUG_INFO_BTF)");
    }
    if !now.is_off() {
        match find::running() {
            Ok(Some(running)) => {
                bail!(
                    "lissom's scheduler is already running, as process {}: end it by lissom sched stop",
                    running.state.pid
                )
            }
            _ => bail!(
                "another sched_ext scheduler is {}: {}; end it first",
                now.state,
                now.scheduler.as_deref().unwrap_or("its name is unknown")
            ),
        }
    }
    let isolated = fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    if !isolated.trim().is_empty() {
        bail!(
            "CPUs {} are isolated (isolcpus=), so the kernel takes no scheduler: boot without isolcpus=",
            isolated.trim()
        );
    }
    let types = Types::read()?;
    if let Some(name) = load::missing_operation(&types)? {
        bail!("this kernel's sched_ext has no {name}: Linux 6.18 or newer is needed");
    }
    Ok(types)
}

/// Check that threads of `--only` can run at all: without a deadline server, a thread of another
/// class that never sleeps starves them.
pub fn partial(types: &Types, force: bool) -> anyhow::Result<()> {
    if !force && !types.has_server() {
        bail!(
            "before Linux 7.0, the threads of --only do not run beside others that never sleep: drop --only, or pass --force"
        );
    }
    Ok(())
}

/// Check that no cgroup has a CPU limit: the kernel enforces limits only in its own scheduler.
pub fn limited(only: Option<&Only>, roots: &[PathBuf]) -> anyhow::Result<()> {
    let found = match only {
        Some(only) => only.limits(roots),
        None => limits::everywhere(roots),
    };
    match limit_message(&found) {
        Some(message) => bail!(message),
        None => Ok(()),
    }
}

fn limit_message(files: &[PathBuf]) -> Option<String> {
    const SHOWN: usize = 3;
    let names: Vec<String> = files.iter().take(SHOWN).map(|f| f.display().to_string()).collect();
    let more = match files.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    (!files.is_empty()).then(|| {
        format!(
            "{}{more} set CPU limits, which the kernel enforces only in its own scheduler: remove them, or pass --ignore-cpu-max",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_by_name() {
        assert_eq!(limit_message(&[]), None);
        let files: Vec<PathBuf> = ["/a", "/b", "/c", "/d", "/e"].map(PathBuf::from).to_vec();
        let one = limit_message(&files[..1]).expect("one");
        assert!(one.starts_with("/a set") && one.contains("--ignore-cpu-max"), "{one}");
        let five = limit_message(&files).expect("five");
        assert!(five.starts_with("/a, /b, /c and 2 more set"), "{five}");
    }
}
