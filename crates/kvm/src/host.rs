//! Properties of this host: CPU vendor, KVM's parameters, and the unit of a pause-loop window.

use std::fs;
use std::hint::spin_loop;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

/// How PAUSE exits on CPUs of a vendor.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Vendor {
    /// `KVM_INTEL` or `KVM_AMD` in bpf/kvm.h.
    #[serde(skip)]
    pub code: u64,
    pub module: &'static str,
    /// Unit of the window.
    pub unit: &'static str,
    /// The module's parameter that is 0 if PAUSE does not exit.
    #[serde(skip)]
    switch: &'static str,
    /// The module's parameter with the initial window of a vCPU, and its default.
    #[serde(skip)]
    window: (&'static str, u64),
}

pub const INTEL: &Vendor = &Vendor {
    code: 1,
    module: "kvm_intel",
    unit: "cycles",
    switch: "ple_gap",
    window: ("ple_window", 4096),
};

pub const AMD: &Vendor = &Vendor {
    code: 2,
    module: "kvm_amd",
    unit: "PAUSEs",
    switch: "pause_filter_count",
    window: ("pause_filter_count", 3000),
};

/// How PAUSE exits on this host.
#[derive(Clone, Debug, Serialize)]
pub struct Pauses {
    #[serde(flatten)]
    pub vendor: &'static Vendor,
    /// Initial window of a vCPU.
    pub window: u64,
    pub ns_per_unit: f64,
}

/// Err: why PAUSE does not exit on this host. modules: /sys/module.
pub fn pauses(modules: &Path) -> Result<Pauses, String> {
    if let Some(reason) = why_off(modules) {
        return Err(reason);
    }
    let vendor = [INTEL, AMD].into_iter().find(|vendor| modules.join(vendor.module).is_dir());
    let vendor = vendor.ok_or("neither kvm_intel nor kvm_amd is loaded, so PAUSE does not exit")?;
    let window = parameter(modules, vendor, vendor.window.0).unwrap_or(vendor.window.1);
    let ns_per_unit = if vendor == INTEL { tsc_ns() } else { pause_ns() };
    Ok(Pauses { vendor, window, ns_per_unit })
}

/// Return the reason why PAUSE does not exit although the vendor's module is loaded.
pub fn why_off(modules: &Path) -> Option<String> {
    let is_off = |vendor: &&&Vendor| parameter(modules, vendor, vendor.switch) == Some(0);
    let Vendor { module, switch, .. } = [INTEL, AMD].iter().find(is_off)?;
    Some(format!("pause-loop exiting is off ({module}.{switch}=0, or the CPU lacks it)"))
}

fn parameter(modules: &Path, vendor: &Vendor, name: &str) -> Option<u64> {
    let path = modules.join(vendor.module).join("parameters").join(name);
    fs::read_to_string(path).ok()?.trim().parse().ok()
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

/// ns per PAUSE, which differs between processors by an order of magnitude. The least of several
/// batches, because interrupts only add time.
pub fn pause_ns() -> f64 {
    const TURNS: u32 = 256;
    let batch = || {
        let begin = Instant::now();
        (0..TURNS).for_each(|_| spin_loop());
        begin.elapsed().as_nanos() as f64 / f64::from(TURNS)
    };
    (0..32).map(|_| batch()).fold(f64::MAX, f64::min)
}

#[cfg(test)]
pub mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Make a folder with these files.
    pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("writable");
        for (name, value) in files {
            let path: PathBuf = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(path, value).expect("writable");
        }
        folder
    }

    #[test]
    fn whose_pauses() {
        let pauses_of = |files: &[(&str, &str)]| {
            pauses(folder(files).path()).map(|p| (p.vendor.module, p.window))
        };
        let intel = [
            ("kvm_intel/parameters/ple_gap", "128\n"),
            ("kvm_intel/parameters/ple_window", "512\n"),
        ];
        assert_eq!(pauses_of(&intel), Ok(("kvm_intel", 512)));
        let off = pauses_of(&[("kvm_intel/parameters/ple_gap", "0\n")]);
        assert!(off.is_err_and(|e| e.contains("ple_gap=0")));
        let amd = [("kvm_amd/parameters/pause_filter_count", "3000\n")];
        assert_eq!(pauses_of(&amd), Ok(("kvm_amd", 3000)));
        assert!(pauses_of(&[("kvm/parameters/halt_poll_ns", "0\n")]).is_err());
    }

    #[test]
    fn a_pause_takes_time() {
        assert!(pause_ns() > 0.0);
    }
}
