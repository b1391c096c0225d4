//! The looks at running threads: a clock on each CPU that interrupts it now and then, and what this machine's CPUs could tell beside.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use libbpf_rs::Link;
use libbpf_sys as bpf;
use serde::Serialize;

use super::kernel::{self, SchedExt};
use super::load::Scheduler;

/// The program of bpf/scx_lissom.bpf.c.
const PROGRAM: &str = "look";

/// `PERF_FLAG_FD_CLOEXEC`
const CLOSE_ON_EXEC: libc::c_ulong = 8;

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
    /// When they were opened: the machine's CPUs.
    cpus: Vec<u32>,
    hotplug_seq: u64,
}

impl Looks {
    /// Fails where such clocks may not be had; then nothing is left behind.
    pub fn start(scheduler: &Scheduler, period_ns: u64) -> anyhow::Result<Looks> {
        let (clocks, cpus, found) = (Vec::new(), Vec::new(), Instant::now());
        let mut looks = Looks { period_ns, pace_ns: period_ns, found, clocks, cpus, hotplug_seq: 0 };
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
        let program = scheduler.program(PROGRAM)?;
        for &cpu in &self.cpus {
            let event = match open(&mut clock(self.pace_ns, scheduler.vcpus.is_ok()), -1, cpu as i32) {
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

/// What the CPUs' counters can tell here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hardware {
    /// Last-branch records.
    pub branches: bool,
    pub l1d_misses: bool,
    pub dtlb_misses: bool,
}

impl Hardware {
    /// By opening each, for a moment, for this thread.
    pub fn probe() -> Hardware {
        let can = |mut attributes: bpf::perf_event_attr| open(&mut attributes, 0, -1).is_ok();
        let miss = |cache: bpf::perf_hw_cache_id| {
            let read = u64::from(bpf::PERF_COUNT_HW_CACHE_OP_READ) << 8;
            let missed = u64::from(bpf::PERF_COUNT_HW_CACHE_RESULT_MISS) << 16;
            attributes(bpf::PERF_TYPE_HW_CACHE, u64::from(cache) | read | missed)
        };
        let mut branches = attributes(bpf::PERF_TYPE_HARDWARE, u64::from(bpf::PERF_COUNT_HW_CPU_CYCLES));
        branches.__bindgen_anon_1.sample_period = 1 << 40;
        branches.sample_type = u64::from(bpf::PERF_SAMPLE_BRANCH_STACK);
        branches.branch_sample_type = u64::from(bpf::PERF_SAMPLE_BRANCH_USER | bpf::PERF_SAMPLE_BRANCH_ANY);
        Hardware {
            branches: can(branches),
            l1d_misses: can(miss(bpf::PERF_COUNT_HW_CACHE_L1D)),
            dtlb_misses: can(miss(bpf::PERF_COUNT_HW_CACHE_DTLB)),
        }
    }
}

/// One that interrupts user code of any thread every so many ns; and the kernel, where guests are to be looked at: what interrupts one is taken there.
fn clock(period_ns: u64, of_guests: bool) -> bpf::perf_event_attr {
    let mut clock = attributes(bpf::PERF_TYPE_SOFTWARE, u64::from(bpf::PERF_COUNT_SW_CPU_CLOCK));
    clock.__bindgen_anon_1.sample_period = period_ns;
    clock.set_exclude_idle(1);
    clock.set_exclude_kernel(u64::from(!of_guests));
    clock
}

/// Of the user's code only, and not counting yet.
fn attributes(kind: bpf::perf_type_id, config: u64) -> bpf::perf_event_attr {
    let mut new = bpf::perf_event_attr { type_: kind, config, ..Default::default() };
    new.size = size_of_val(&new) as u32;
    new.set_disabled(1);
    new.set_exclude_kernel(1);
    new.set_exclude_hv(1);
    new
}

/// thread: -1 any, 0 the calling one. cpu: -1 any.
fn open(attributes: &mut bpf::perf_event_attr, thread: i32, cpu: i32) -> io::Result<OwnedFd> {
    let none = -1;
    // SAFETY: the kernel reads a structure that says its own size, and writes that size at most; the result is checked.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_mut(attributes),
            thread,
            cpu,
            none,
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
