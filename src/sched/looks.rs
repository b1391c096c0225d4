//! The looks at running threads: a clock on each CPU that interrupts it now and then.

use std::os::fd::{AsRawFd as _, IntoRawFd as _, RawFd};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use libbpf_rs::Link;

use super::branches::Counters;
use super::events::{clock, open};
use super::kernel::{self, SchedExt};
use super::layout::Detector;
use super::load::Scheduler;

/// The program of bpf/scx_lissom.bpf.c.
fn program_of(detector: Detector) -> &'static str {
    match detector {
        Detector::Registers => "look",
        Detector::Branches => "look_branches",
        Detector::Paper => "look_paper",
    }
}

/// `_IOW('$', 4, __u64)`
const PERF_EVENT_IOC_PERIOD: libc::c_ulong = 0x4008_2404;

/// For so long after somebody was found waiting, looks are as frequent as they may be.
const CALM: Duration = Duration::from_secs(1);

/// After that a look costs work that has no use of it, so they are so much rarer.
const RARER: u64 = 10;

/// Of a CPU.
struct Clock {
    cpu: u32,
    pace: Pace,
    /// Its descriptor, which belongs to the link.
    event: RawFd,
    _link: Link,
}

/// How often is looked at a CPU, from what was found there.
struct Pace {
    /// Frequent: as asked for; else RARER.
    is_frequent: bool,
    kicks: u64,
    found: Instant,
}

impl Pace {
    fn new(now: Instant) -> Pace {
        Pace { is_frequent: true, kicks: 0, found: now }
    }

    /// kicks: threads that have been found waiting on this CPU so far. True: it has changed.
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
    /// Of the CPUs that are there.
    clocks: Vec<Clock>,
    detector: Detector,
    /// None: registers have to do.
    counters: Option<Counters>,
    /// When they were opened: the machine's CPUs.
    cpus: Vec<u32>,
    hotplug_seq: u64,
}

impl Looks {
    /// Fails where such clocks may not be had; then nothing is left behind.
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

    /// CPUs may have come since the last call; the clock of one that goes is lost for good.
    pub fn follow_cpus(&mut self, scheduler: &Scheduler) -> anyhow::Result<()> {
        let changes = SchedExt::now().map_or(0, |s| s.hotplug_seq);
        if changes == self.hotplug_seq && kernel::online_cpus().is_none_or(|cpus| cpus == self.cpus)
        {
            return Ok(());
        }
        self.open(scheduler)
    }

    /// kicks: of each CPU by its number, threads found waiting there so far. `may_have_found`:
    /// perhaps more, anywhere. The paper's timer has one pace.
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
            // SAFETY: the kernel reads a number; the descriptor is the link's, which is here. If it
            // fails, the pace stays.
            unsafe { libc::ioctl(clock.event, PERF_EVENT_IOC_PERIOD, &raw const ns) };
        }
    }

    fn open(&mut self, scheduler: &Scheduler) -> anyhow::Result<()> {
        self.clocks.clear();
        // Before the CPUs are looked at: one that comes meanwhile is noticed the next time.
        self.hotplug_seq = SchedExt::now().map_or(0, |s| s.hotplug_seq);
        self.cpus =
            kernel::online_cpus().context("/sys/devices/system/cpu/online cannot be read")?;
        if let Some(counters) = &mut self.counters {
            // Where that fails now, though it did not at the start, looks go on without.
            let _ = counters.open(&self.cpus);
        }
        let program = scheduler.program(program_of(self.detector))?;
        for &cpu in &self.cpus {
            let event = match open(
                &mut clock(self.period_ns, scheduler.vcpus.is_ok()),
                -1,
                cpu as i32,
                None,
            ) {
                Ok(event) => event,
                // It has just gone.
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(e) => bail!("no clock for CPU {cpu}: {e}"),
            };
            // What is attached belongs to the link, and starts there.
            let link = program
                .attach_perf_event(event.as_raw_fd())
                .context("the program cannot be attached")?;
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
        // What was found on one CPU is no reason to look at another one, what was judged is.
        assert!(there.keep(0, false, at(1400)) && there.ns(100) == 1000);
        assert!(there.keep(0, true, at(2500)) && there.ns(100) == 100);
    }
}
