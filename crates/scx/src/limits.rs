//! Find cgroups with a CPU limit (cpu.max). The kernel enforces it only in its own scheduler:
//! sched_ext threads would run without a limit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use procfs::process::Process;

/// Mount points of cgroups with the CPU controller. The flag is true for cgroup v2.
pub fn mounts() -> Vec<(PathBuf, bool)> {
    let mounts = Process::myself().and_then(|p| p.mountinfo());
    let Ok(mounts) = mounts else { return Vec::new() };
    // A hierarchy may be mounted several times: its device identifies it.
    let mut found: BTreeMap<String, (PathBuf, bool)> = BTreeMap::new();
    for mount in mounts {
        let v2 = mount.fs_type == "cgroup2";
        if v2 || (mount.fs_type == "cgroup" && mount.super_options.contains_key("cpu")) {
            found.entry(mount.majmin).or_insert((mount.mount_point, v2));
        }
    }
    found.into_values().collect()
}

/// Files that set a limit, in any cgroup of `mounts`.
pub fn everywhere(mounts: &[(PathBuf, bool)]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    mounts.iter().for_each(|(mount, _)| below(mount, &mut found));
    found
}

/// Files that set a limit for processes in `group` or below it.
pub fn of_group(group: &Path, mounts: &[(PathBuf, bool)]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    below(group, &mut found);
    let inside = |folder: &&Path| mounts.iter().any(|(mount, _)| folder.starts_with(mount));
    found.extend(group.ancestors().skip(1).take_while(inside).filter_map(limit));
    found
}

/// Files that set a limit for a process.
pub fn of_process(pid: u32, mounts: &[(PathBuf, bool)]) -> Vec<PathBuf> {
    let groups = Process::new(pid as i32).and_then(|p| p.cgroups());
    let Ok(groups) = groups else { return Vec::new() };
    let mut found = Vec::new();
    for group in groups {
        let v2 = group.controllers.is_empty();
        if !v2 && !group.controllers.iter().any(|c| c == "cpu") {
            continue;
        }
        let Some((mount, _)) = mounts.iter().find(|(_, of_v2)| *of_v2 == v2) else { continue };
        let folder = mount.join(group.pathname.trim_start_matches('/'));
        let inside = |folder: &&Path| folder.starts_with(mount);
        found.extend(folder.ancestors().take_while(inside).filter_map(limit));
    }
    found
}

/// Add the files that set a limit in `folder` or below it. Ignores folders that disappear
/// meanwhile.
fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    found.extend(limit(folder));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), found);
        }
    }
}

/// The file that sets a limit in this very cgroup, if any.
fn limit(folder: &Path) -> Option<PathBuf> {
    let v2 = folder.join("cpu.max");
    if let Ok(text) = fs::read_to_string(&v2) {
        return text.split_whitespace().next().is_some_and(|quota| quota != "max").then_some(v2);
    }
    let v1 = folder.join("cpu.cfs_quota_us");
    let quota: i64 = fs::read_to_string(&v1).ok()?.trim().parse().ok()?;
    (quota > 0).then_some(v1)
}

#[cfg(test)]
mod tests {
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
            ("e", "cpu.cfs_quota_us", "-1\n"),
        ];
        for (folder, file, text) in groups {
            fs::create_dir_all(root.join(folder)).expect("a folder");
            fs::write(root.join(folder).join(file), text).expect("a file");
        }
        let mounts = [(root.clone(), true)];
        let mut all = everywhere(&mounts);
        all.sort();
        assert_eq!(all, ["a/b/cpu.max", "d/cpu.cfs_quota_us"].map(|f| root.join(f)));
        // A limit in a parent, in a child, and in neither.
        let limited = [root.join("a/b/cpu.max")];
        assert_eq!(of_group(&root.join("a/b/c"), &mounts), limited);
        assert_eq!(of_group(&root.join("a"), &mounts), limited);
        assert!(of_group(&root.join("e"), &mounts).is_empty());
        fs::remove_dir_all(&root).expect("ours");
    }
}
