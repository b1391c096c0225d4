//! Find cgroups with a CPU limit (cpu.max). The kernel enforces it only in its own scheduler:
//! sched_ext threads would run without a limit.

use std::path::{Path, PathBuf};

use os::cgroup;

/// Files that set a limit, in any cgroup below `roots`.
pub fn everywhere(roots: &[PathBuf]) -> Vec<PathBuf> {
    roots.iter().flat_map(|root| below(root)).collect()
}

/// Files that set a limit for processes in `group` or below it.
pub fn of_group(group: &Path, roots: &[PathBuf]) -> Vec<PathBuf> {
    let inside = |folder: &&Path| roots.iter().any(|root| folder.starts_with(root));
    let above = group.ancestors().skip(1).take_while(inside).filter_map(limit);
    below(group).into_iter().chain(above).collect()
}

/// Files that set a limit for a process.
pub fn of_process(pid: u32) -> Vec<PathBuf> {
    let folders = cgroup::hierarchy_of(pid, "cpu").map_or(Vec::new(), |h| h.folders);
    folders.iter().filter_map(|folder| limit(folder)).collect()
}

fn below(folder: &Path) -> Vec<PathBuf> {
    cgroup::subtree(folder).iter().filter_map(|folder| limit(folder)).collect()
}

/// The file that sets a limit in this very cgroup, if any.
fn limit(folder: &Path) -> Option<PathBuf> {
    cgroup::quota_in(folder).map(|limit| limit.file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn of_folders() {
        let root = std::env::temp_dir().join(format!("lissom-limits-{}", std::process::id()));
        let groups = [
            ("", "cpu.pressure", ""),
            ("a", "cpu.max", "max 100000\n"),
            ("a/b", "cpu.max", "150000 100000\n"),
            ("a/b/c", "cpu.max", "max 100000\n"),
            ("d", "cpu.cfs_quota_us", "50000\n"),
            ("d", "cpu.cfs_period_us", "100000\n"),
            ("e", "cpu.cfs_quota_us", "-1\n"),
            ("e", "cpu.cfs_period_us", "100000\n"),
        ];
        for (folder, file, text) in groups {
            fs::create_dir_all(root.join(folder)).expect("a folder");
            fs::write(root.join(folder).join(file), text).expect("a file");
        }
        let roots = [root.clone()];
        let mut all = everywhere(&roots);
        all.sort();
        assert_eq!(all, ["a/b/cpu.max", "d/cpu.cfs_quota_us"].map(|f| root.join(f)));
        // A limit in a parent, in a child, and in neither.
        let limited = [root.join("a/b/cpu.max")];
        assert_eq!(of_group(&root.join("a/b/c"), &roots), limited);
        assert_eq!(of_group(&root.join("a"), &roots), limited);
        assert!(of_group(&root.join("e"), &roots).is_empty());
        fs::remove_dir_all(&root).expect("ours");
    }
}
