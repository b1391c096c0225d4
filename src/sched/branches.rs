//! Last-branch records and counts of misses (bpf/scx_branches.bpf.h): whether this machine's CPUs
//! have them, whether they tell what they should, and the events by which they are had.

use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use libbpf_sys as bpf;
use serde::Serialize;

use super::events::{attributes, clock, open};
use super::layout::Trial;
use super::load::{self, Scheduler};

/// Those that there are only for this, and the one that looks at the loader's own loop.
pub const PROGRAMS: &[&str] = &["look_branches", "look_paper", TRY];
const TRY: &str = "try_branches";

/// `COUNTERS`
const COUNTERS: usize = 3;

/// How long the loader's loop is looked at, and how often. Some hundred looks, of which one has to
/// see it.
const TRIAL: Duration = Duration::from_millis(100);
const TRIAL_PERIOD_NS: u64 = 100_000;

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
        let [branches, l1d, dtlb] =
            Source::Hardware.events().map(|mut event| open(&mut event, 0, -1, None).is_ok());
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

/// Where records and counts come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Hardware,
    /// For tests on machines without: counts that stay 0, and no records.
    Software,
}

impl Source {
    /// In the order of the kernel side.
    fn events(self) -> [bpf::perf_event_attr; COUNTERS] {
        let miss = |cache: bpf::perf_hw_cache_id| {
            let read = u64::from(bpf::PERF_COUNT_HW_CACHE_OP_READ) << 8;
            let missed = u64::from(bpf::PERF_COUNT_HW_CACHE_RESULT_MISS) << 16;
            attributes(bpf::PERF_TYPE_HW_CACHE, u64::from(cache) | read | missed)
        };
        let software =
            |event: bpf::perf_sw_ids| attributes(bpf::PERF_TYPE_SOFTWARE, u64::from(event));
        if self == Source::Software {
            return [
                software(bpf::PERF_COUNT_SW_DUMMY),
                software(bpf::PERF_COUNT_SW_EMULATION_FAULTS),
                software(bpf::PERF_COUNT_SW_ALIGNMENT_FAULTS),
            ];
        }
        // It takes a sample every some minutes, which nobody reads; what counts is that the CPU
        // records branches while it counts.
        let mut branches =
            attributes(bpf::PERF_TYPE_HARDWARE, u64::from(bpf::PERF_COUNT_HW_CPU_CYCLES));
        branches.__bindgen_anon_1.sample_period = 1 << 40;
        branches.sample_type = u64::from(bpf::PERF_SAMPLE_BRANCH_STACK);
        branches.branch_sample_type =
            u64::from(bpf::PERF_SAMPLE_BRANCH_USER | bpf::PERF_SAMPLE_BRANCH_ANY);
        [branches, miss(bpf::PERF_COUNT_HW_CACHE_L1D), miss(bpf::PERF_COUNT_HW_CACHE_DTLB)]
    }
}

/// Why they are not used.
pub struct Refusal {
    pub why: String,
    /// The hardware is there, and should have done.
    pub is_odd: bool,
}

/// The events of each CPU, which the kernel side reads, as long as this lives.
pub struct Counters {
    source: Source,
    map: MapHandle,
    events: Vec<OwnedFd>,
    cpus: Vec<u32>,
}

impl Counters {
    pub fn new(scheduler: &Scheduler, source: Source) -> anyhow::Result<Counters> {
        let map = scheduler.handle(load::COUNTERS)?;
        Ok(Counters { source, map, events: Vec::new(), cpus: Vec::new() })
    }

    /// A CPU that cannot count all at once has none: there, registers have to do. Fails if no CPU
    /// can.
    pub fn open(&mut self, cpus: &[u32]) -> anyhow::Result<()> {
        let keys =
            |cpu: u32| (0..COUNTERS as u32).map(move |i| (cpu * COUNTERS as u32 + i).to_ne_bytes());
        // The map holds them, too.
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
                    .context("an event cannot be handed over")?;
            }
            self.events.extend(group);
        }
        match last {
            Some(error) if self.events.is_empty() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// All of them count, or none: so that no miss is lost while the records are filled.
    fn group(&self, cpu: u32) -> std::io::Result<Vec<OwnedFd>> {
        let mut group: Vec<OwnedFd> = Vec::new();
        for mut event in self.source.events() {
            event.set_disabled(0);
            let leader = group.first().map(|f| f.as_raw_fd());
            group.push(open(&mut event, -1, cpu as i32, leader)?);
        }
        Ok(group)
    }
}

/// Opens the counters and sees whether a loop that this thread runs is told by them.
pub fn find(scheduler: &Scheduler, cpus: &[u32], source: Source) -> Result<Counters, Refusal> {
    let hardware = Hardware::probe();
    let missing = hardware.names(false);
    if source == Source::Hardware && !missing.is_empty() {
        let why = format!("this CPU, or a virtual machine's, does not tell {}", missing.join(", "));
        return Err(Refusal { why, is_odd: false });
    }
    let odd = |why: String| Refusal { why, is_odd: true };
    scheduler.branches.clone().map_err(odd)?;
    let mut counters = Counters::new(scheduler, source).map_err(|e| odd(format!("{e:#}")))?;
    counters.open(cpus).map_err(|e| odd(format!("they cannot be had at the same time: {e:#}")))?;
    let trial = try_out(scheduler).map_err(|e| odd(format!("{e:#}")))?;
    if std::env::var_os("LISSOM_VERBOSE").is_some() {
        let values = Trial::NAMES.iter().zip(trial.values());
        let text: Vec<String> =
            values.map(|(name, value)| format!("{name} {}", value as i64)).collect();
        eprintln!("lissom: a loop that was run, by branch records: {}", text.join(", "));
    }
    match trial.failure() {
        None => Ok(counters),
        Some(why) => Err(odd(why)),
    }
}

fn try_out(scheduler: &Scheduler) -> anyhow::Result<Trial> {
    let event = open(&mut clock(TRIAL_PERIOD_NS, false), 0, -1, None)
        .context("no clock for this thread")?;
    let link = scheduler.program(TRY)?.attach_perf_event(event.as_raw_fd());
    let link = link.context("the program cannot be attached")?;
    // Attached, it belongs to the link.
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

/// A loop of one branch, which loads nothing, for about a millisecond.
fn go_round() {
    // SAFETY: it counts a register of its own down, and touches nothing else.
    unsafe {
        std::arch::asm!("2:", "dec {0}", "jnz 2b", inout(reg) 3_000_000_u64 => _, options(nomem, nostack));
    }
}

impl Trial {
    /// None: the loop was seen.
    fn failure(&self) -> Option<String> {
        Some(match self {
            Trial { loops: 1.., .. } => return None,
            Trial { looks: 0, .. } => "nobody looked at a loop that was run".into(),
            Trial { full: 0, error: 0, .. } => "there are fewer than 16 records".into(),
            Trial { full: 0, error, .. } => {
                format!("the records cannot be read (error {})", *error as i64)
            }
            Trial { counted: 0, .. } => "the misses cannot be counted".into(),
            Trial { quiet: 0, .. } => "there are misses in a loop without loads".into(),
            _ => "the records do not show a loop that was run".into(),
        })
    }
}

#[cfg(test)]
#[path = "branches_test.rs"]
mod tests;
