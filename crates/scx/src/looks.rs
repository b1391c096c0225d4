//! Scans of running threads: a perf event on each CPU that interrupts it periodically.

use std::os::fd::{AsRawFd as _, IntoRawFd as _, RawFd};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use libbpf_rs::Link;

use super::branches::{Counters, clock};
use super::layout::Detector;
use super::load::Scheduler;
use os::process;
use os::sched_ext::SchedExt;

/// The detector's program in bpf/scx_lissom.bpf.c.
fn program_of(detector: Detector) -> &'static str {
    match detector {
        Detector::Registers => "scan_registers",
        Detector::Branches => "scan_branches",
        Detector::Paper => "scan_paper",
    }
}

/// `_IOW('$', 4, __u64)`
const PERF_EVENT_IOC_PERIOD: libc::c_ulong = 0x4008_2404;

/// Time at the full scan rate after a busy-waiting thread was last detected.
const CALM: Duration = Duration::from_secs(1);

/// Factor of the period after CALM: scans cost working threads time, for no benefit.
const RARER: u64 = 10;

/// The perf event of one CPU.
struct Clock {
    cpu: u32,
    pace: Pace,
    /// The descriptor, which the link owns.
    event: RawFd,
    _link: Link,
}

/// Scan rate of a CPU, which follows from its detections.
struct Pace {
    /// At the requested period; otherwise RARER times as long.
    is_frequent: bool,
    kicks: u64,
    found: Instant,
}

impl Pace {
    fn new(now: Instant) -> Pace {
        Pace { is_frequent: true, kicks: 0, found: now }
    }

    /// Update the rate. kicks: threads preempted on this CPU so far. `may_have_found`: there may be
    /// further detections. Returns whether the rate changed.
    fn keep(&mut self, kicks: u64, may_have_found: bool, now: Instant) -> bool {
        if kicks != self.kicks || may_have_found {
            self.found = now;
        }
        self.kicks = kicks;
        let before = self.is_frequent;
        self.is_frequent = now.duration_since(self.found) < CALM;
        self.is_frequent != before
    }

    fn ns(&self, period_ns: u64) -> u64 {
        if self.is_frequent { period_ns } else { period_ns * RARER }
    }
}

pub struct Looks {
    period_ns: u64,
    /// One for each online CPU.
    clocks: Vec<Clock>,
    detector: Detector,
    /// None: detection by registers only.
    counters: Option<Counters>,
    /// The CPUs that were online at the last `open`.
    cpus: Vec<u32>,
    hotplug_seq: u64,
}

impl Looks {
    /// Start the scans. Fails if perf events cannot be opened, and then leaves none behind.
    pub fn start(
        scheduler: &Scheduler,
        period_ns: u64,
        detector: Detector,
        counters: Option<Counters>,
    ) -> anyhow::Result<Looks> {
        let (clocks, cpus) = (Vec::new(), Vec::new());
        let mut looks = Looks { period_ns, clocks, detector, counters, cpus, hotplug_seq: 0 };
        looks.open(scheduler)?;
        Ok(looks)
    }

    /// Reopen all perf events if CPUs came or went since the last call. The event of a CPU that
    /// goes offline does not work again.
    pub fn follow_cpus(&mut self, scheduler: &Scheduler) -> anyhow::Result<()> {
        let changes = SchedExt::now().map_or(0, |s| s.hotplug_seq);
        if changes == self.hotplug_seq
            && process::online_cpus().is_none_or(|cpus| cpus == self.cpus)
        {
            return Ok(());
        }
        self.open(scheduler)
    }

    /// Adapt the scan rates. kicks: threads preempted so far, indexed by CPU. `may_have_found`:
    /// there may be further detections, on any CPU. The paper's detector keeps one rate.
    pub fn keep_pace(&mut self, kicks: &[u64], may_have_found: bool) {
        if self.detector == Detector::Paper {
            return;
        }
        let now = Instant::now();
        for clock in &mut self.clocks {
            let kicks = kicks.get(clock.cpu as usize).copied().unwrap_or(0);
            if !clock.pace.keep(kicks, may_have_found, now) {
                continue;
            }
            let ns = clock.pace.ns(self.period_ns);
            // SAFETY: the kernel reads a number; the link keeps the descriptor open. On failure the
            // rate does not change.
            unsafe { libc::ioctl(clock.event, PERF_EVENT_IOC_PERIOD, &raw const ns) };
        }
    }

    fn open(&mut self, scheduler: &Scheduler) -> anyhow::Result<()> {
        self.clocks.clear();
        // Read the sequence number before the CPUs: the next call notices a CPU that comes now.
        self.hotplug_seq = SchedExt::now().map_or(0, |s| s.hotplug_seq);
        self.cpus = process::online_cpus().context("cannot read /sys/devices/system/cpu/online")?;
        if let Some(counters) = &mut self.counters {
            // On failure, scan without counters. They could be opened at the start.
            let _ = counters.open(&self.cpus);
        }
        let program = scheduler.program(program_of(self.detector))?;
        for &cpu in &self.cpus {
            let mut clock = clock(self.period_ns, scheduler.vcpus.is_ok());
            let event = match clock.any_pid().one_cpu(cpu as usize).build() {
                Ok(event) => event,
                // The CPU has just gone offline.
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(e) => bail!("cannot open a clock for CPU {cpu}: {e}"),
            };
            // Attaching starts the event, and the link owns its descriptor.
            let link = program
                .attach_perf_event(event.as_raw_fd())
                .context("cannot attach the BPF program")?;
            let pace = Pace::new(Instant::now());
            self.clocks.push(Clock { cpu, pace, event: event.into_raw_fd(), _link: link });
        }
        if self.clocks.is_empty() {
            bail!("no CPU has a clock");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_rarer_where_nobody_was_found_for_a_second() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let (mut here, mut there) = (Pace::new(begin), Pace::new(begin));
        assert!(!here.keep(0, false, at(999)) && here.ns(100) == 100);
        assert!(here.keep(0, false, at(1000)) && here.ns(100) == 1000);
        assert!(!here.keep(0, false, at(1200)));
        assert!(here.keep(1, false, at(1400)) && here.ns(100) == 100);
        assert!(!here.keep(1, false, at(2399)) && here.keep(1, false, at(2400)));
        // Detections on one CPU do not speed up the other; judged candidates speed up both.
        assert!(there.keep(0, false, at(1400)) && there.ns(100) == 1000);
        assert!(there.keep(0, true, at(2500)) && there.ns(100) == 100);
    }
}
