//! Whether a process's cgroup is frozen: by a container's pause, a batch system's suspend, or
//! systemd.

use std::fs;

use os::cgroup;

/// Return whether the process's cgroup or one above it is frozen. False if that cannot be read.
pub fn is_frozen(pid: u32) -> bool {
    let Some(hierarchy) = cgroup::hierarchy_of(pid, "freezer") else { return false };
    let Some(folder) = hierarchy.folders.first() else { return false };
    let file = folder.join(if hierarchy.v2 { "cgroup.events" } else { "freezer.state" });
    fs::read_to_string(file).is_ok_and(|text| says_so(&text))
}

/// Parse cgroup.events (version 2) or freezer.state (version 1). Both include the state of groups
/// above. Version 1 says FREEZING until all threads are frozen, which may never happen if they wait
/// in the kernel.
fn says_so(text: &str) -> bool {
    text.lines().any(|line| matches!(line, "frozen 1" | "FROZEN" | "FREEZING"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        assert!(says_so("populated 1\nfrozen 1\n"));
        assert!(!says_so("populated 1\nfrozen 0\n"));
        assert!(says_so("FROZEN\n") && says_so("FREEZING\n") && !says_so("THAWED\n"));
        assert!(!is_frozen(std::process::id()));
    }
}
