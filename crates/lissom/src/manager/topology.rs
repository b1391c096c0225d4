//! CPU topology: SMT siblings share a core, cores a last-level cache, caches a NUMA node. Plain
//! data, read from /sys once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use os::process::cpu_list;

/// Position of a CPU. Numbers are only compared: equal ones name the same unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub node: usize,
    pub cache: usize,
    pub core: usize,
}

/// Topology of the machine. A CPU that is missing here shares no core with others.
#[derive(Clone, Debug, Default)]
pub struct Topology(BTreeMap<usize, Place>);

impl Topology {
    /// Read the topology from `root`, /sys/devices/system. A cache or node that cannot be read
    /// counts as shared by all CPUs, a core as shared by none.
    pub fn read(root: &Path) -> Topology {
        let cpus = fs::read_to_string(root.join("cpu/possible"))
            .map(|text| cpu_list(&text))
            .unwrap_or_default();
        let nodes = nodes(&root.join("node"));
        let place = |cpu: usize| {
            let folder = root.join(format!("cpu/cpu{cpu}"));
            // Name a shared unit by the lowest CPU that shares it.
            let first = |list: &Path| {
                fs::read_to_string(list).ok().and_then(|text| cpu_list(&text).first().copied())
            };
            let core = first(&folder.join("topology/core_cpus_list"))
                .or_else(|| first(&folder.join("topology/thread_siblings_list")))
                .unwrap_or(cpu);
            let cache = last_level_cache(&folder.join("cache")).unwrap_or(0);
            Place { node: nodes.get(&cpu).copied().unwrap_or(0), cache, core }
        };
        Topology(cpus.into_iter().map(|cpu| (cpu, place(cpu))).collect())
    }

    #[cfg(test)]
    pub fn new(places: impl IntoIterator<Item = (usize, Place)>) -> Topology {
        Topology(places.into_iter().collect())
    }

    pub fn place(&self, cpu: usize) -> Place {
        self.0.get(&cpu).copied().unwrap_or(Place {
            node: usize::MAX,
            cache: usize::MAX,
            core: cpu,
        })
    }
}

/// Map each CPU to its node.
fn nodes(folder: &Path) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(node) = name.strip_prefix("node").and_then(|n| n.parse().ok()) else { continue };
        let cpus = fs::read_to_string(entry.path().join("cpulist")).unwrap_or_default();
        found.extend(cpu_list(&cpus).into_iter().map(|cpu| (cpu, node)));
    }
    found
}

/// Return the lowest CPU that shares the last-level cache, the one of the highest level.
fn last_level_cache(folder: &Path) -> Option<usize> {
    let caches = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| {
        let level: u32 =
            fs::read_to_string(entry.path().join("level")).ok()?.trim().parse().ok()?;
        let shared = fs::read_to_string(entry.path().join("shared_cpu_list")).ok()?;
        Some((level, *cpu_list(&shared).first()?))
    });
    caches.max_by_key(|&(level, _)| level).map(|(_, first)| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_files() {
        let root = std::env::temp_dir().join(format!("lissom-topology-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(path, text).expect("writable");
        };
        write("cpu/possible", "0-3\n");
        write("node/node0/cpulist", "0-1\n");
        write("node/node1/cpulist", "2-3\n");
        for cpu in 0..4 {
            // Siblings are n and n + 2 here, as on many machines.
            write(
                &format!("cpu/cpu{cpu}/topology/core_cpus_list"),
                if cpu % 2 == 0 { "0,2" } else { "1,3" },
            );
            write(&format!("cpu/cpu{cpu}/cache/index0/level"), "1");
            write(&format!("cpu/cpu{cpu}/cache/index0/shared_cpu_list"), &cpu.to_string());
            write(&format!("cpu/cpu{cpu}/cache/index3/level"), "3");
            write(&format!("cpu/cpu{cpu}/cache/index3/shared_cpu_list"), "0-3");
        }
        let topology = Topology::read(&root);
        assert_eq!(topology.place(3), Place { node: 1, cache: 0, core: 1 });
        assert_eq!(topology.place(0), Place { node: 0, cache: 0, core: 0 });
        let _ = fs::remove_dir_all(&root);
        // Without files, all CPUs share everything but their cores.
        let topology = Topology::read(&root);
        assert_eq!(
            (topology.place(1).node, topology.place(1).cache),
            (topology.place(2).node, topology.place(2).cache)
        );
        assert_ne!(topology.place(1).core, topology.place(2).core);
    }
}
