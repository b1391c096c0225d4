//! The looks at running threads: a clock on each CPU that interrupts it now and then.

use std::os::fd::{AsRawFd as _, IntoRawFd as _, RawFd};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use libbpf_rs::Link;

use super::branches::Counters;
use super::events::{clock, open};
use super::kernel::{self, SchedExt};
use super::load::Scheduler;

/// The programs of bpf/scx_lissom.bpf.c, without branch records and with them.
const PROGRAM: &str = "look";
const WITH_BRANCHES: &str = "look_branches";

/// `_IOW('$', 4, __u64)`
const PERF_EVENT_IOC_PERIOD: libc::c_ulong = 0x4008_2404;

/// For so long after somebody was found waiting, looks are as frequent as they may be.
const CALM: Duration = Duration::from_secs(1);

/// After that a look costs work that has no use of it, so they are so much rarer.
const RARER: u64 = 10;

pub struct Looks {
    period_ns: u64,
    /// The same now.
    pace_ns: u64,
    found: Instant,
    /// Of the CPUs that are there, and their descriptors, which belong to the links.
    clocks: Vec<(Link, RawFd)>,
    /// None: registers have to do.
    counters: Option<Counters>,
    /// When they were opened: the machine's CPUs.
    cpus: Vec<u32>,
    hotplug_seq: u64,
}

impl Looks {
    /// Fails where such clocks may not be had; then nothing is left behind.
    pub fn start(scheduler: &Scheduler, period_ns: u64, counters: Option<Counters>) -> anyhow::Result<Looks> {
        let (clocks, cpus, found) = (Vec::new(), Vec::new(), Instant::now());
        let mut looks =
            Looks { period_ns, pace_ns: period_ns, found, clocks, counters, cpus, hotplug_seq: 0 };
        looks.open(scheduler)?;
        Ok(looks)
    }

    /// CPUs may have come since the last call; the clock of one that goes is lost for good.
    pub fn follow_cpus(&mut self, scheduler: &Scheduler) -> anyhow::Result<()> {
        let changes = SchedExt::now().map_or(0, |s| s.hotplug_seq);
        if changes == self.hotplug_seq && kernel::online_cpus().is_none_or(|cpus| cpus == self.cpus) {
            return Ok(());
        }
        self.open(scheduler)
    }

    /// `has_found`: somebody has been found waiting since the last call, or may have been.
    pub fn keep_pace(&mut self, has_found: bool) {
        if has_found {
            self.found = Instant::now();
        }
        let pace = if self.found.elapsed() < CALM { self.period_ns } else { self.period_ns * RARER };
        if pace == self.pace_ns {
            return;
        }
        self.pace_ns = pace;
        for (_, event) in &self.clocks {
            // SAFETY: the kernel reads a number; the descriptor is the link's, which is here. If it fails, the pace stays.
            unsafe { libc::ioctl(*event, PERF_EVENT_IOC_PERIOD, &raw const pace) };
        }
    }

    fn open(&mut self, scheduler: &Scheduler) -> anyhow::Result<()> {
        self.clocks.clear();
        // Before the CPUs are looked at: one that comes meanwhile is noticed the next time.
        self.hotplug_seq = SchedExt::now().map_or(0, |s| s.hotplug_seq);
        self.cpus = kernel::online_cpus().context("/sys/devices/system/cpu/online cannot be read")?;
        if let Some(counters) = &mut self.counters {
            // Where that fails now, though it did not at the start, looks go on without.
            let _ = counters.open(&self.cpus);
        }
        let program = scheduler.program(if self.counters.is_some() { WITH_BRANCHES } else { PROGRAM })?;
        for &cpu in &self.cpus {
            let event = match open(&mut clock(self.pace_ns, scheduler.vcpus.is_ok()), -1, cpu as i32, None) {
                Ok(event) => event,
                // It has just gone.
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(e) => bail!("no clock for CPU {cpu}: {e}"),
            };
            // What is attached belongs to the link, and starts there.
            let link =
                program.attach_perf_event(event.as_raw_fd()).context("the program cannot be attached")?;
            self.clocks.push((link, event.into_raw_fd()));
        }
        if self.clocks.is_empty() {
            bail!("no CPU has a clock");
        }
        Ok(())
    }
}
