//! The state of sched_ext, by which BPF programs schedule.

use std::fs;
use std::path::Path;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysfs() {
        let folder = std::env::temp_dir().join(format!("sched-ext-{}", std::process::id()));
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
