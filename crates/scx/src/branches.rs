//! Last-branch records and cache-miss counts (bpf/scx_branches.bpf.h): which of them this machine's
//! CPUs support, a test that they work, and the perf events that provide them.

use std::os::fd::{AsRawFd as _, IntoRawFd as _};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware as Cpu, Software};
use perf_event::{Builder, Counter, SampleBranchFlag, SampleFlag};
use serde::Serialize;

use super::layout::Trial;
use super::load::{self, Scheduler};

/// BPF programs that only branch records need. TRY scans the loader's own loop.
pub const PROGRAMS: &[&str] = &["scan_branches", "scan_paper", TRY];
const TRY: &str = "try_branches";

/// `COUNTERS` in bpf/scx_branches.bpf.h.
const COUNTERS: usize = 3;

/// Longest time of the trial, which scans the loader's own loop every TRIAL_PERIOD_NS. One scan has
/// to detect the loop.
const TRIAL: Duration = Duration::from_millis(100);
const TRIAL_PERIOD_NS: u64 = 100_000;

/// The events that the CPUs can record and count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hardware {
    /// Last-branch records.
    pub branches: bool,
    pub l1d_misses: bool,
    pub dtlb_misses: bool,
}

impl Hardware {
    /// Try to open each event for this thread, and close it again.
    pub fn probe() -> Hardware {
        let [branches, l1d, dtlb] = Source::Hardware.events().map(|event| event.build().is_ok());
        Hardware { branches, l1d_misses: l1d, dtlb_misses: dtlb }
    }

    pub fn names(&self, there: bool) -> Vec<&'static str> {
        let all = [
            (self.branches, "last-branch records"),
            (self.l1d_misses, "L1D misses"),
            (self.dtlb_misses, "dTLB misses"),
        ];
        all.iter().filter(|(is, _)| *is == there).map(|(_, name)| *name).collect()
    }
}

/// Source of records and counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Hardware,
    /// For tests on machines without the hardware: counts that stay 0, and no records.
    Software,
}

impl Source {
    /// The events in the order of bpf/scx_branches.bpf.h. They count user code only.
    fn events(self) -> [Builder<'static>; COUNTERS] {
        if self == Source::Software {
            return [Software::DUMMY, Software::EMULATION_FAULTS, Software::ALIGNMENT_FAULTS]
                .map(Builder::new);
        }
        let (operation, result) = (CacheOp::READ, CacheResult::MISS);
        let misses = |which| Builder::new(Cache { which, operation, result });
        // The period is so long that the event seldom takes a sample, which nobody reads. The event
        // makes the CPU record branches while it counts.
        let mut branches = Builder::new(Cpu::CPU_CYCLES);
        branches
            .sample_period(1 << 40)
            .sample(SampleFlag::BRANCH_STACK)
            .branch_sample_type(SampleBranchFlag::USER | SampleBranchFlag::ANY);
        [branches, misses(CacheId::L1D), misses(CacheId::DTLB)]
    }
}

/// An event that interrupts user code every `period_ns`. of_guests: interrupt the kernel, too,
/// since interrupts of a guest are handled there.
pub fn clock(period_ns: u64, of_guests: bool) -> Builder<'static> {
    let mut clock = Builder::new(Software::CPU_CLOCK);
    clock.sample_period(period_ns).exclude_kernel(!of_guests).exclude_idle(true);
    clock
}

/// Why branch records are not used.
pub struct Refusal {
    pub why: String,
    /// The hardware exists, but branch records cannot be used as expected.
    pub is_odd: bool,
}

/// The perf events of each CPU, for the kernel side. Dropping this closes the events.
pub struct Counters {
    source: Source,
    map: MapHandle,
    events: Vec<Counter>,
    cpus: Vec<u32>,
}

impl Counters {
    pub fn new(scheduler: &Scheduler, source: Source) -> anyhow::Result<Counters> {
        let map = scheduler.handle(load::COUNTERS)?;
        Ok(Counters { source, map, events: Vec::new(), cpus: Vec::new() })
    }

    /// Open the events on `cpus`, after closing those of earlier calls. A CPU that cannot count all
    /// of them at once gets none, and is scanned by registers. Fails if no CPU can.
    pub fn open(&mut self, cpus: &[u32]) -> anyhow::Result<()> {
        let keys =
            |cpu: u32| (0..COUNTERS as u32).map(move |i| (cpu * COUNTERS as u32 + i).to_ne_bytes());
        // The map holds references to the events: delete them, too.
        for key in self.cpus.drain(..).flat_map(keys) {
            let _ = self.map.delete(&key);
        }
        self.events.clear();
        let mut last = None;
        for &cpu in cpus {
            let group = match self.group(cpu) {
                Ok(group) => group,
                Err(error) => {
                    last = Some(error);
                    continue;
                }
            };
            self.cpus.push(cpu);
            for (key, event) in keys(cpu).zip(&group) {
                let value = event.as_raw_fd().to_ne_bytes();
                self.map
                    .update(&key, &value, MapFlags::ANY)
                    .context("cannot pass an event to the BPF program")?;
            }
            self.events.extend(group);
        }
        match last {
            Some(error) if self.events.is_empty() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Open the events of one CPU as one group. The kernel counts all of a group or none, so misses
    /// are counted whenever branches are recorded.
    fn group(&self, cpu: u32) -> std::io::Result<Vec<Counter>> {
        let mut group: Vec<Counter> = Vec::new();
        for mut event in self.source.events() {
            event.enabled(true).any_pid().one_cpu(cpu as usize);
            let counter = match group.first_mut() {
                Some(leader) => event.build_with_group(leader),
                None => event.build(),
            };
            group.push(counter?);
        }
        Ok(group)
    }
}

/// Open the counters, and test whether they detect a loop that this thread runs.
pub fn find(scheduler: &Scheduler, cpus: &[u32], source: Source) -> Result<Counters, Refusal> {
    let hardware = Hardware::probe();
    let missing = hardware.names(false);
    if source == Source::Hardware && !missing.is_empty() {
        let why = format!("this CPU, or virtual machine, has no {}", missing.join(", "));
        return Err(Refusal { why, is_odd: false });
    }
    let odd = |why: String| Refusal { why, is_odd: true };
    scheduler.branches.clone().map_err(odd)?;
    let mut counters = Counters::new(scheduler, source).map_err(|e| odd(format!("{e:#}")))?;
    counters.open(cpus).map_err(|e| odd(format!("cannot count them at the same time: {e:#}")))?;
    let trial = try_out(scheduler).map_err(|e| odd(format!("{e:#}")))?;
    if std::env::var_os("LISSOM_VERBOSE").is_some() {
        let values = Trial::NAMES.iter().zip(trial.values());
        let text: Vec<String> =
            values.map(|(name, value)| format!("{name} {}", value as i64)).collect();
        ui::message!("lissom: branch records of a test loop: {}", text.join(", "));
    }
    match trial.failure() {
        None => Ok(counters),
        Some(why) => Err(odd(why)),
    }
}

fn try_out(scheduler: &Scheduler) -> anyhow::Result<Trial> {
    let event = clock(TRIAL_PERIOD_NS, false).build();
    let event = event.context("cannot open a clock for this thread")?;
    let link = scheduler.program(TRY)?.attach_perf_event(event.as_raw_fd());
    let link = link.context("cannot attach the BPF program")?;
    // The link owns the descriptor now.
    let _ = event.into_raw_fd();
    let end = Instant::now() + TRIAL;
    loop {
        go_round();
        let trial = scheduler.trial()?;
        if trial.loops > 0 || Instant::now() > end {
            drop(link);
            return Ok(trial);
        }
    }
}

/// Run a loop of one branch, without loads, for about a millisecond.
fn go_round() {
    // SAFETY: the code only counts down a register of its own.
    unsafe {
        std::arch::asm!("2:", "dec {0}", "jnz 2b", inout(reg) 3_000_000_u64 => _, options(nomem, nostack));
    }
}

impl Trial {
    /// Returns None if a scan detected the loop.
    fn failure(&self) -> Option<String> {
        Some(match self {
            Trial { loops: 1.., .. } => return None,
            Trial { looks: 0, .. } => "the test loop was not scanned".into(),
            Trial { full: 0, error: 0, .. } => "fewer than 16 records".into(),
            Trial { full: 0, error, .. } => {
                format!("cannot read the records (error {})", *error as i64)
            }
            Trial { counted: 0, .. } => "cannot count the misses".into(),
            Trial { quiet: 0, .. } => "misses in a test loop without loads".into(),
            _ => "the records do not show a test loop".into(),
        })
    }
}

#[cfg(test)]
#[path = "branches_test.rs"]
mod tests;
