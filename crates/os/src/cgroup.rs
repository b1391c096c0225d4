//! Limits by cgroups of version 1 and 2, including those of ancestors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use procfs::ProcessCGroups;
use procfs::process::{MountInfo, MountInfos, Process};

/// Folders of one controller, from the process's own cgroup up to the visible root.
pub struct Hierarchy {
    pub v2: bool,
    pub folders: Vec<PathBuf>,
}

/// Find this process's cgroups of `controller` (cpu, cpuset, pids). Prefers version 1 if it has the
/// controller, because a controller belongs to one version only. None: not mounted.
fn hierarchy(controller: &str) -> Option<Hierarchy> {
    find(&visible()?, &Process::myself().ok()?.cgroups().ok()?, controller)
}

/// Find the cgroups of another process. Groups above our own cgroup namespace are invisible.
pub fn hierarchy_of(pid: u32, controller: &str) -> Option<Hierarchy> {
    find(&visible()?, &Process::new(pid as i32).ok()?.cgroups().ok()?, controller)
}

fn visible() -> Option<MountInfos> {
    Process::myself().ok()?.mountinfo().ok()
}

fn find(mounts: &MountInfos, groups: &ProcessCGroups, controller: &str) -> Option<Hierarchy> {
    let of = |v2: bool| {
        let group = groups.0.iter().find(|group| match v2 {
            true => group.controllers.is_empty(),
            false => group.controllers.iter().any(|c| c == controller),
        })?;
        let mount = mounts.iter().find(|m| version_of(m, controller) == Some(v2))?;
        // In a cgroup namespace, the path of a group above the visible root begins with /.. .
        let is_visible = !group.pathname.contains("/..");
        let below = Path::new(&group.pathname).strip_prefix(&mount.root).ok();
        let below = below.filter(|_| is_visible).unwrap_or(Path::new(""));
        let folders = below.ancestors().map(|part| mount.mount_point.join(part)).collect();
        Some(Hierarchy { v2, folders })
    };
    of(false).or_else(|| of(true))
}

/// Return whether the mount is of cgroup version 2. None: it cannot have the controller.
fn version_of(mount: &MountInfo, controller: &str) -> Option<bool> {
    match mount.fs_type.as_str() {
        "cgroup2" => Some(true),
        "cgroup" => mount.super_options.contains_key(controller).then_some(false),
        _ => None,
    }
}

/// Return the roots of the hierarchies that may have the controller.
pub fn roots(controller: &str) -> Vec<PathBuf> {
    // A hierarchy may be mounted several times: its device identifies it.
    let mut found = BTreeMap::new();
    for mount in visible().into_iter().flatten() {
        if version_of(&mount, controller).is_some() {
            found.entry(mount.majmin).or_insert(mount.mount_point);
        }
    }
    found.into_values().collect()
}

/// Return a cgroup's folder, and those of the groups below it. Ignores folders that disappear
/// meanwhile.
pub fn subtree(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_path_buf()];
    let mut next = 0;
    while let Some(folder) = found.get(next) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<PathBuf> = folders.map(|e| e.path()).collect();
        found.extend(below);
        next += 1;
    }
    found
}

fn number(path: PathBuf) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

pub struct Limit<T> {
    pub value: T,
    pub file: PathBuf,
}

/// Return the least CPU quota of the cgroup and its ancestors, in CPUs.
pub fn quota() -> Option<Limit<f64>> {
    let quotas = hierarchy("cpu")?.folders.into_iter().filter_map(|folder| quota_in(&folder));
    quotas.min_by(|a, b| a.value.total_cmp(&b.value))
}

/// Return the number of threads that may run at once by the CPU quota: the quota, rounded up.
/// None: there is no quota.
pub fn quota_cpus() -> Option<usize> {
    quota().map(|limit| limit.value.ceil().max(1.0) as usize)
}

/// Return the CPU quota of this very cgroup, in CPUs.
pub fn quota_in(folder: &Path) -> Option<Limit<f64>> {
    let file = folder.join("cpu.max");
    if let Ok(text) = fs::read_to_string(&file) {
        return parse_cpu_max(&text).map(|value| Limit { value, file });
    }
    let file = folder.join("cpu.cfs_quota_us");
    let quota = number(file.clone())?;
    let period = number(folder.join("cpu.cfs_period_us"))?;
    (quota > 0 && period > 0).then(|| Limit { value: quota as f64 / period as f64, file })
}

/// Parse `max 100000` or `150000 100000`. Returns the quota in CPUs.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace();
    let quota: f64 = fields.next()?.parse().ok()?;
    let period: f64 = fields.next()?.parse().ok()?;
    (period > 0.0).then_some(quota / period)
}

/// Return the CPUs of this process's own cgroup, as the kernel lists them, and the file that
/// restricts them.
pub fn cpuset() -> Option<Limit<String>> {
    let hierarchy = hierarchy("cpuset")?;
    let names: &[&str] = if hierarchy.v2 {
        &["cpuset.cpus.effective"]
    } else {
        &["cpuset.effective_cpus", "cpuset.cpus"]
    };
    let own = hierarchy.folders.first()?;
    let file = names.iter().map(|n| own.join(n)).find(|f| f.exists())?;
    let value = fs::read_to_string(&file).ok()?.trim().to_string();
    Some(Limit { value, file: own.join("cpuset.cpus") })
}

/// Return the least pids.max of the cgroup and its ancestors.
pub fn pids() -> Option<Limit<u64>> {
    let of = |folder: &PathBuf| {
        let file = folder.join("pids.max");
        number(file.clone()).map(|value| Limit { value: value as u64, file })
    };
    hierarchy("pids")?.folders.iter().filter_map(of).min_by_key(|l| l.value)
}

#[cfg(test)]
mod tests {
    use procfs::FromBufRead as _;

    use super::*;

    fn find(mounts: &str, groups: &str, controller: &str) -> Hierarchy {
        let mounts = MountInfos::from_buf_read(mounts.as_bytes()).expect("mounts");
        let groups = ProcessCGroups::from_buf_read(groups.as_bytes()).expect("cgroups");
        super::find(&mounts, &groups, controller).expect("mounted")
    }

    #[test]
    fn cpu_max() {
        assert_eq!(parse_cpu_max("max 100000\n"), None);
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_cpu_max(""), None);
    }

    #[test]
    fn version_1() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup \
                      rw,cpu,cpuacct\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let groups = "3:cpu,cpuacct:/a/b\n0::/\n";
        let found = find(mounts, groups, "cpu");
        assert!(!found.v2);
        let folders = ["/sys/fs/cgroup/cpu/a/b", "/sys/fs/cgroup/cpu/a", "/sys/fs/cgroup/cpu/"];
        assert_eq!(found.folders, folders.map(PathBuf::from));
    }

    #[test]
    fn version_2_in_a_container() {
        let mounts = "31 25 0:27 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let found = find(mounts, "0::/docker/1/x\n", "cpu");
        assert!(found.v2);
        assert_eq!(found.folders, ["/sys/fs/cgroup/x", "/sys/fs/cgroup/"].map(PathBuf::from));
        let found = find(mounts, "0::/../other\n", "cpu");
        assert_eq!(found.folders, [PathBuf::from("/sys/fs/cgroup/")]);
    }
}
