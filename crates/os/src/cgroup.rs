//! Limits by cgroups of version 1 and 2, including those of ancestors.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of one controller, from the process's own cgroup up to the visible root.
pub struct Hierarchy {
    pub v2: bool,
    pub folders: Vec<PathBuf>,
}

/// Find this process's cgroups of `controller` (cpu, cpuset, pids). Prefers version 1 if it has the
/// controller, because a controller belongs to one version only. None: not mounted.
pub fn hierarchy(controller: &str) -> Option<Hierarchy> {
    hierarchy_of("self", controller)
}

/// Find the cgroups of another process. Groups above our own cgroup namespace are invisible.
pub fn hierarchy_of(process: &str, controller: &str) -> Option<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    find(&mounts, &groups, controller)
}

fn find(mounts: &str, groups: &str, controller: &str) -> Option<Hierarchy> {
    let group = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then_some(path)
        })
    };
    let v1 = group(&|controllers| controllers.split(',').any(|c| c == controller));
    let v2 = group(&|controllers| controllers.is_empty());
    for (v2, path) in [(false, v1), (true, v2)] {
        let Some(path) = path else { continue };
        for (root, mount, kind, options) in mounts.lines().filter_map(mount_fields) {
            let right = if v2 {
                kind == "cgroup2"
            } else {
                kind == "cgroup" && options.split(',').any(|o| o == controller)
            };
            if right {
                // In a cgroup namespace, the path of a group above the visible root begins with /..
                // .
                let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
                let below = if path.contains("/..") { Path::new("") } else { below };
                let folders = below.ancestors().map(|part| Path::new(mount).join(part)).collect();
                return Some(Hierarchy { v2, folders });
            }
        }
    }
    None
}

/// Return root, mount point, type and super block options.
fn mount_fields(line: &str) -> Option<(&str, &str, &str, &str)> {
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(3);
    let mut back = back.split(' ');
    Some((front.next()?, front.next()?, back.next()?, back.nth(1)?))
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
    let hierarchy = hierarchy("cpu")?;
    let of = |folder: &PathBuf| {
        if hierarchy.v2 {
            let file = folder.join("cpu.max");
            let value = parse_cpu_max(&fs::read_to_string(&file).ok()?)?;
            return Some(Limit { value, file });
        }
        let file = folder.join("cpu.cfs_quota_us");
        let quota = number(file.clone())?;
        let period = number(folder.join("cpu.cfs_period_us"))?;
        (quota > 0 && period > 0).then(|| Limit { value: quota as f64 / period as f64, file })
    };
    hierarchy.folders.iter().filter_map(of).min_by(|a, b| a.value.total_cmp(&b.value))
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
    use super::*;

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
        let found = find(mounts, groups, "cpu").expect("mounted");
        assert!(!found.v2);
        let folders = ["/sys/fs/cgroup/cpu/a/b", "/sys/fs/cgroup/cpu/a", "/sys/fs/cgroup/cpu/"];
        assert_eq!(found.folders, folders.map(PathBuf::from));
    }

    #[test]
    fn version_2_in_a_container() {
        let mounts = "31 25 0:27 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let found = find(mounts, "0::/docker/1/x\n", "cpu").expect("mounted");
        assert!(found.v2);
        assert_eq!(found.folders, ["/sys/fs/cgroup/x", "/sys/fs/cgroup/"].map(PathBuf::from));
        let found = find(mounts, "0::/../other\n", "cpu").expect("mounted");
        assert_eq!(found.folders, [PathBuf::from("/sys/fs/cgroup/")]);
    }
}
