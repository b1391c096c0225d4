//! Properties of the machine that affect results, for the JSON document and the table's title.

use std::fs;

use serde::Serialize;

use os::glibc;
use procfs::Current as _;

#[derive(Serialize)]
pub struct Machine {
    /// CPUs that this process may use, by affinity and cgroup quota.
    pub cpus: u32,
    pub cpus_online: Option<u32>,
    pub cpu_model: String,
    pub virtual_machine: bool,
    pub smt: bool,
    pub governor: Option<String>,
    pub memory_kib: u64,
    pub kernel: String,
    pub glibc: String,
    /// Whether the kernel shares the CPUs evenly among sessions, whatever their numbers of threads.
    pub autogroup: bool,
    /// Load average of the minute before the benchmark.
    pub load: f64,
}

impl Machine {
    pub fn look() -> Machine {
        let cpus = procfs::CpuInfo::current().ok();
        let memory = procfs::Meminfo::current();
        let model = cpus.as_ref().and_then(|c| c.model_name(0));
        let flags = cpus.as_ref().and_then(|c| c.flags(0)).unwrap_or_default();
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Machine {
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            cpus_online: u32::try_from(os::process::online_count()).ok(),
            cpu_model: model.unwrap_or("unknown CPU").into(),
            virtual_machine: flags.contains(&"hypervisor"),
            smt: read("/sys/devices/system/cpu/smt/active") == "1",
            governor: Some(governor).filter(|g| !g.is_empty()),
            memory_kib: memory.map_or(0, |m| m.mem_total / 1024),
            kernel: read("/proc/sys/kernel/osrelease"),
            glibc: glibc::version().unwrap_or_else(|_| "none".into()),
            autogroup: read("/proc/sys/kernel/sched_autogroup_enabled") == "1",
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(0.0),
        }
    }

    /// Return the title of a report. `cpus`: CPUs that the benchmark uses.
    pub fn title(&self, benchmark: &str, cpus: u32) -> String {
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "lissom {version} bench {benchmark}: {cpus} CPUs, {}, Linux {}",
            self.cpu_model, self.kernel
        )
    }
}

/// Return the line of a file. Empty: it cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::look();
        assert!(machine.cpus >= 1 && machine.memory_kib > 0);
        assert!(!machine.kernel.is_empty() && !machine.glibc.is_empty());
    }
}
