//! Properties of the machine that affect results, for the JSON document and the table's title.

use std::fs;

use serde::Serialize;

use os::glibc;

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
        let cpu_info = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = cpu_info.lines().find(|l| l.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let memory = read("/proc/meminfo");
        let total = memory.lines().find_map(|l| l.strip_prefix("MemTotal:"));
        Machine {
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            cpus_online: u32::try_from(os::process::online_count()).ok(),
            cpu_model: field("model name").unwrap_or_else(|| "unknown CPU".into()),
            virtual_machine: field("flags")
                .is_some_and(|f| f.split(' ').any(|f| f == "hypervisor")),
            smt: read("/sys/devices/system/cpu/smt/active").trim() == "1",
            governor: Some(
                read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim().to_string(),
            )
            .filter(|g| !g.is_empty()),
            memory_kib: first_number(total.unwrap_or_default()).unwrap_or(0.0) as u64,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_string(),
            glibc: glibc::version().unwrap_or_else(|_| "none".into()),
            autogroup: read("/proc/sys/kernel/sched_autogroup_enabled").trim() == "1",
            load: first_number(&read("/proc/loadavg")).unwrap_or(0.0),
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

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
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
