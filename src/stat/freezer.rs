//! Whether a process's group is frozen: by a container's pause, a batch system's suspend, or
//! systemd.

use std::fs;

use crate::doctor::cgroup;

/// By its own group, or by one above it. False where that cannot be read.
pub fn is_frozen(pid: u32) -> bool {
    let Some(hierarchy) = cgroup::hierarchy_of(&pid.to_string(), "freezer") else { return false };
    let Some(folder) = hierarchy.folders.first() else { return false };
    let file = folder.join(if hierarchy.v2 { "cgroup.events" } else { "freezer.state" });
    fs::read_to_string(file).is_ok_and(|text| says_so(&text))
}

/// Both files tell what is in force, whichever group's freezing it is. Version 1 says FREEZING
/// while some thread is not there yet, and of a group whose threads wait in the kernel it may go on
/// saying so.
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
