//! Properties of this host: CPU vendor, KVM's parameters, and the unit of a pause-loop window.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

/// How PAUSE exits on this host.
#[derive(Clone, Debug, Serialize)]
pub struct Pauses {
    /// `KVM_INTEL` or `KVM_AMD` in bpf/kvm.h.
    #[serde(skip)]
    pub vendor: u64,
    pub module: &'static str,
    /// Unit of the window.
    pub unit: &'static str,
    /// The module's parameter: initial window of a vCPU.
    pub window: u64,
    pub ns_per_unit: f64,
}

/// Err: why PAUSE does not exit on this host. modules: /sys/module.
pub fn pauses(modules: &Path) -> Result<Pauses, String> {
    let parameter = |module: &str, name: &str| -> Option<u64> {
        fs::read_to_string(modules.join(module).join("parameters").join(name))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    if modules.join("kvm_intel").is_dir() {
        if parameter("kvm_intel", "ple_gap") == Some(0) {
            return Err(
                "pause-loop exiting is off (kvm_intel.ple_gap=0, or the CPU lacks it)".into()
            );
        }
        let window = parameter("kvm_intel", "ple_window").unwrap_or(4096);
        return Ok(Pauses {
            vendor: 1,
            module: "kvm_intel",
            unit: "cycles",
            window,
            ns_per_unit: tsc_ns(),
        });
    }
    if modules.join("kvm_amd").is_dir() {
        let window = parameter("kvm_amd", "pause_filter_count").unwrap_or(3000);
        if window == 0 {
            return Err(
                "the PAUSE filter is off (kvm_amd.pause_filter_count=0, or the CPU lacks it)"
                    .into(),
            );
        }
        return Ok(Pauses {
            vendor: 2,
            module: "kvm_amd",
            unit: "PAUSEs",
            window,
            ns_per_unit: pause_ns(),
        });
    }
    Err("neither kvm_intel nor kvm_amd is loaded, so PAUSE does not exit".into())
}

/// ns per TSC cycle.
fn tsc_ns() -> f64 {
    // SAFETY: every x86-64 CPU has the instruction, and it has no side effects.
    let tsc = || unsafe { std::arch::x86_64::_rdtsc() };
    let (begin, cycles) = (Instant::now(), tsc());
    std::thread::sleep(Duration::from_millis(20));
    let (time, cycles) = (begin.elapsed(), tsc().wrapping_sub(cycles));
    time.as_nanos() as f64 / (cycles.max(1) as f64)
}

/// ns per PAUSE, the shortest of several batches: a guest's loop takes at least this long.
fn pause_ns() -> f64 {
    const TURNS: u32 = 256;
    let batch = || {
        let begin = Instant::now();
        (0..TURNS).for_each(|_| std::hint::spin_loop());
        begin.elapsed().as_nanos() as f64 / f64::from(TURNS)
    };
    (0..32).map(|_| batch()).fold(f64::MAX, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> std::path::PathBuf {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("lissom-modules-{}-{number}", std::process::id()));
        for (name, value) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(path, value).expect("writable");
        }
        folder
    }

    #[test]
    fn whose_pauses() {
        let intel = modules(&[
            ("kvm_intel/parameters/ple_gap", "128\n"),
            ("kvm_intel/parameters/ple_window", "512\n"),
        ]);
        let pauses_of = |folder: &Path| pauses(folder).map(|p| (p.module, p.window));
        assert_eq!(pauses_of(&intel), Ok(("kvm_intel", 512)));
        let off = modules(&[("kvm_intel/parameters/ple_gap", "0\n")]);
        assert!(pauses_of(&off).is_err_and(|e| e.contains("ple_gap=0")));
        let amd = modules(&[("kvm_amd/parameters/pause_filter_count", "3000\n")]);
        assert_eq!(pauses_of(&amd), Ok(("kvm_amd", 3000)));
        let none = modules(&[("kvm/parameters/halt_poll_ns", "0\n")]);
        assert!(pauses_of(&none).is_err());
        for folder in [intel, off, amd, none] {
            fs::remove_dir_all(folder).expect("made above");
        }
    }
}
