//! Read the state of sched_ext, and check that the kernel has what the scheduler needs.

use std::fs;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use serde::Serialize;

/// Folder of sched_ext in sysfs.
pub const FOLDER: &str = "/sys/kernel/sched_ext";

/// The contents of the files in FOLDER.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchedExt {
    /// `enabled`, `disabled`, or a state in between.
    pub state: String,
    /// Name of the running scheduler.
    pub scheduler: Option<String>,
    /// True: all threads of the fair class belong to it; false: only those of SCHED_EXT.
    pub switch_all: bool,
    /// Threads that the scheduler rejected.
    pub nr_rejected: u64,
    /// CPUs that came or went since boot.
    pub hotplug_seq: u64,
    /// Schedulers that were started since boot.
    pub enable_seq: u64,
}

impl SchedExt {
    /// Returns None if the kernel has no sched_ext.
    pub fn read(folder: &Path) -> Option<SchedExt> {
        let text =
            |name: &str| Some(fs::read_to_string(folder.join(name)).ok()?.trim().to_string());
        let number = |name: &str| text(name).and_then(|n| n.parse().ok()).unwrap_or(0);
        Some(SchedExt {
            state: text("state")?,
            scheduler: text("root/ops").filter(|name| !name.is_empty()),
            switch_all: number("switch_all") != 0,
            nr_rejected: number("nr_rejected"),
            hotplug_seq: number("hotplug_seq"),
            enable_seq: number("enable_seq"),
        })
    }

    pub fn now() -> Option<SchedExt> {
        SchedExt::read(Path::new(FOLDER))
    }

    /// The state now; `gone` if the kernel has no sched_ext.
    pub fn state_now() -> String {
        SchedExt::now().map_or("gone".into(), |s| s.state)
    }

    pub fn is_off(&self) -> bool {
        self.state == "disabled"
    }
}

/// The kernel's version: "Linux 6.18.15+deb13-amd64".
pub fn name() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// The kernel's types. Reading them takes tens of milliseconds.
pub struct Types(Btf<'static>);

impl Types {
    pub fn read() -> anyhow::Result<Types> {
        Btf::from_vmlinux().map(Types).map_err(|e| {
            anyhow::anyhow!("cannot read the kernel's types (/sys/kernel/btf/vmlinux): {e}")
        })
    }

    pub fn has_member(&self, of: &str, member: &str) -> bool {
        let found: Option<Struct> = self.0.type_by_name(of);
        found.is_some_and(|s| s.iter().any(|m| m.name.is_some_and(|n| n == member)))
    }

    /// Returns whether sched_ext has a deadline server (since Linux 7.0). It runs sched_ext threads
    /// a part of the time on a CPU that other classes never leave idle.
    pub fn has_server(&self) -> bool {
        self.has_member("rq", "ext_server")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysfs() {
        let folder = std::env::temp_dir().join(format!("lissom-sched-{}", std::process::id()));
        assert_eq!(SchedExt::read(&folder), None);
        fs::create_dir_all(folder.join("root")).expect("a folder");
        for (name, text) in [("state", "enabled\n"), ("switch_all", "1\n"), ("hotplug_seq", "4\n")]
        {
            fs::write(folder.join(name), text).expect("a file");
        }
        let mut wanted = SchedExt {
            state: "enabled".into(),
            scheduler: None,
            switch_all: true,
            nr_rejected: 0,
            hotplug_seq: 4,
            enable_seq: 0,
        };
        assert_eq!(SchedExt::read(&folder).as_ref(), Some(&wanted));
        fs::write(folder.join("root/ops"), "simple\n").expect("a file");
        wanted.scheduler = Some("simple".into());
        assert_eq!(SchedExt::read(&folder), Some(wanted));
        fs::remove_dir_all(&folder).expect("ours");
    }
}
