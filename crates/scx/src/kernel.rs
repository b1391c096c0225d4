//! Check that the kernel has what the scheduler needs.

use std::fs;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;

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
