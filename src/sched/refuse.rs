//! Why the scheduler cannot be started, said before anything is changed, each in one line with what
//! helps.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;

use super::kernel::{SchedExt, Types};
use super::scope::Only;
use super::{find, limits, load};

/// That sched_ext is there.
pub fn kernel() -> anyhow::Result<SchedExt> {
    match SchedExt::now() {
        Some(now) => Ok(now),
        None => bail!(
            "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT): Linux 6.12 or newer may have it, Debian's from 6.18 on"
        ),
    }
}

/// All but what depends on the options.
pub fn machine() -> anyhow::Result<Types> {
    let now = kernel()?;
    if !crate::process::may_trace_by_bpf() {
        bail!(
            "a scheduler for the kernel takes BPF programs: run it as root, or with CAP_BPF and CAP_PERFMON"
        );
    }
    if !crate::process::in_first_pid_namespace() {
        bail!(
            "the kernel counts processes by the numbers of the machine, and this is a PID namespace of its own: start it outside"
        );
    }
    if crate::process::is_locked_down() {
        bail!(
            "the kernel is locked down (lockdown=confidentiality), and then BPF may not read its memory"
        );
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        bail!("this kernel does not say what its types are (CONFIG_DEBUG_INFO_BTF)");
    }
    if !now.is_off() {
        match find::running() {
            Ok(Some(running)) => {
                bail!(
                    "it runs already, as process {}: end that by lissom sched stop",
                    running.state.pid
                )
            }
            _ => bail!(
                "another scheduler of sched_ext is {}: {}; end that one first",
                now.state,
                now.scheduler.as_deref().unwrap_or("it does not say its name")
            ),
        }
    }
    let isolated = fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    if !isolated.trim().is_empty() {
        bail!(
            "CPUs {} are kept from scheduling (isolcpus=), and then the kernel takes no scheduler: start it without isolcpus=",
            isolated.trim()
        );
    }
    let types = Types::read()?;
    if let Some(name) = load::missing_operation(&types)? {
        bail!("this kernel's sched_ext has no {name}: Linux 6.18 or newer is needed");
    }
    Ok(types)
}

/// A thread of sched_ext does not run at all beside one of another class that never sleeps.
pub fn partial(types: &Types, force: bool) -> anyhow::Result<()> {
    if !force && !types.has_server() {
        bail!(
            "on this kernel the threads of --only would not run beside others that never sleep: Linux 7.0 or newer lets them, or leave --only away, or --force"
        );
    }
    Ok(())
}

/// The kernel enforces CPU limits in its own scheduler only.
pub fn limited(only: Option<&Only>, mounts: &[(PathBuf, bool)]) -> anyhow::Result<()> {
    let found = match only {
        Some(only) => only.limits(mounts),
        None => limits::everywhere(mounts),
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
            "{}{more} set CPU limits, which would not hold: the kernel enforces them in its own scheduler only; take them off, or --ignore-cpu-max",
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
