//! How busy the CPUs are with other programs, and the power of the processors, during a run.

use std::time::Instant;

use super::energy::{Energy, Reading};
use os::process;

/// Measures from its creation on.
pub struct Meter<'a> {
    begun: Instant,
    busy: f64,
    energy: Option<(&'a Energy, Reading)>,
}

impl<'a> Meter<'a> {
    pub fn start(energy: Option<&'a Energy>) -> Meter<'a> {
        let energy = energy.and_then(|energy| Some((energy, energy.read()?)));
        Meter { begun: Instant::now(), busy: busy_seconds(), energy }
    }

    /// Return the fraction of the CPUs that other processes used, or the host of a virtual machine.
    /// `used`: CPU seconds of the benchmark's own programs.
    pub fn others(&self, used: f64) -> f64 {
        let there = self.begun.elapsed().as_secs_f64() * process::allowed_cpus().len() as f64;
        ((busy_seconds() - self.busy - used) / there).clamp(0.0, 1.0)
    }

    /// Return the power of the processors, if RAPL is readable.
    pub fn watts(&self) -> Option<f64> {
        let (energy, begun) = self.energy.as_ref()?;
        Some(energy.since(begun)? / self.begun.elapsed().as_secs_f64())
    }
}

/// Return for how many seconds the CPUs that this process may use were busy since the boot. Time
/// that the host of a virtual machine took (steal) counts as busy.
pub fn busy_seconds() -> f64 {
    let (cpus, text) =
        (process::allowed_cpus(), std::fs::read_to_string("/proc/stat").unwrap_or_default());
    let ticks: f64 = text.lines().filter_map(|line| busy_ticks(line, &cpus)).sum();
    ticks / procfs::ticks_per_second().max(1) as f64
}

/// Return the busy ticks of a line `cpu3 user nice system idle iowait irq softirq steal ...` of
/// /proc/stat, if it is one of `cpus`.
fn busy_ticks(line: &str, cpus: &[usize]) -> Option<f64> {
    let (cpu, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
    if !cpus.contains(&cpu.parse().ok()?) {
        return None;
    }
    let ticks = fields.split_whitespace().take(8).enumerate().filter(|(i, _)| ![3, 4].contains(i));
    ticks.map(|(_, t)| t.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_cpus() {
        assert_eq!(busy_ticks("cpu1 10 20 30 1000 500 1 2 3 0 0", &[1, 2]), Some(66.0));
        assert_eq!(busy_ticks("cpu11 10 20 30 1000 500 1 2 3 0 0", &[1, 2]), None);
        assert_eq!(busy_ticks("cpu  10 20 30 1000 500 1 2 3 0 0", &[1, 2]), None);
        assert!(busy_seconds() > 0.0);
    }
}
