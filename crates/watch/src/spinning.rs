//! Spin sampling from outside: find CPU time that threads waste in loops that wait. A clock
//! interrupts each CPU; the interpreter of `lissom sched` judges the interrupted threads
//! (docs/design/sched-judge.md). It reads registers of all processes, so it needs root, or
//! CAP_PERFMON and CAP_SYS_PTRACE.
//!
//! A thread of its own judges each sample at once. A later verdict would be about other memory: a
//! thread that waited for its turn when it was sampled has had its turn by then.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};
use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

use super::found::{Found, Judged, Slot};
use super::look::Which;
use judge::{Candidate, Verdict, loop_of};

/// Interrupts per second of each CPU.
const RATE: u64 = 99;
/// Maximum interrupts per second of all CPUs together.
const RATE_OF_ALL: u64 = 2000;

/// Duration of a slot. Its judged samples stand for all of its samples.
const SLOT: Duration = Duration::from_millis(100);
/// CPU time for judging in a slot: 2 % of a CPU. The slot's other samples are counted only.
const BUDGET: Duration = Duration::from_millis(2);

/// ax bx cx dx si di bp sp ip flags, r8 to r15, as the kernel numbers them (asm/perf_regs.h).
const REGISTERS: u64 = 0x3ff | 0xff << 16;
const RSP: usize = 7;

#[derive(Default)]
struct Results {
    found: HashMap<u32, Found>,
    /// None: not requested.
    samples: Option<Vec<Sample>>,
}

/// A judged sample of a thread that ran code of its own.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub pid: u32,
    pub thread: u32,
    /// In ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// First instruction of the loop in which it waits. None: it does not wait.
    pub head: Option<u64>,
}

pub struct Sampling {
    results: Arc<Mutex<Results>>,
    /// Closing it ends the thread.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Sampling {
    /// Start to sample these programs on all online CPUs. Fails without the privileges.
    pub fn start(which: &Which) -> anyhow::Result<Sampling> {
        Sampling::with(which, Results::default())
    }

    /// Do the same, and keep each judged sample for `samples`.
    pub fn of_samples(which: &Which) -> anyhow::Result<Sampling> {
        Sampling::with(which, Results { samples: Some(Vec::new()), ..Results::default() })
    }

    fn with(which: &Which, results: Results) -> anyhow::Result<Sampling> {
        let cpus = os::process::online_cpus().unwrap_or_else(|| vec![0]);
        let rate = RATE.min(RATE_OF_ALL / cpus.len() as u64).max(1);
        let mut samplers = Vec::new();
        for cpu in cpus {
            let mut builder = Builder::new(Software::CPU_CLOCK);
            builder.any_pid().one_cpu(cpu as usize).sample_period(1_000_000_000 / rate);
            builder.exclude_kernel(true).exclude_hv(true).exclude_idle(true).wakeup_events(1);
            builder.clockid(Clock::MONOTONIC);
            builder
                .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME | SampleFlag::REGS_USER)
                .sample_regs_user(REGISTERS);
            // 128 KiB hold 600 samples.
            let mut sampler = builder.build()?.sampled(32)?;
            sampler.enable()?;
            samplers.push(sampler);
        }
        let (end, ended) = UnixStream::pair()?;
        let results = Arc::new(Mutex::new(results));
        let mut judging = Judging {
            samplers,
            only: match which {
                Which::All => None,
                Which::These(pids) => Some(pids.iter().copied().collect()),
            },
            slots: HashMap::new(),
            results: results.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("lissom-judge".into())
            .spawn(move || judging.run(&ended))?;
        Ok(Sampling { results, end: Some(end), thread: Some(thread) })
    }

    /// Return the results since the last call, by process. The current slot is not included.
    pub fn look(&mut self) -> HashMap<u32, Found> {
        std::mem::take(&mut lock(&self.results).found)
    }

    /// Return the judged samples since the last call, in the order of each CPU.
    pub fn samples(&mut self) -> Vec<Sample> {
        lock(&self.results).samples.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

fn lock(results: &Mutex<Results>) -> MutexGuard<'_, Results> {
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.end = None;
        // A panic of the thread was reported, and samples are missing only.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The state of the judging thread.
struct Judging {
    samplers: Vec<Sampler>,
    only: Option<BTreeSet<u32>>,
    slots: HashMap<u32, Slot>,
    results: Arc<Mutex<Results>>,
}

impl Judging {
    fn run(&mut self, ended: &UnixStream) {
        // Run before the sampled thread continues. The budget bounds what this takes from others.
        // Without the privilege, some verdicts are late.
        let _ = os::process::set_policy(0, libc::SCHED_FIFO, 1);
        loop {
            let (end, used) = (Instant::now() + SLOT, cpu_time());
            while let Some(left) = end.checked_duration_since(Instant::now()) {
                // Beyond the budget, count the remaining samples at the end of the slot.
                let judges = cpu_time() < used + BUDGET;
                if wait(if judges { &self.samplers } else { &[] }, left, ended) {
                    return;
                }
                while judges && self.judge_one(used + BUDGET) {}
            }
            while self.judge_one(used + BUDGET) {}
            self.end_slot();
        }
    }

    /// Take the next sample of each CPU, and judge it unless this thread's CPU time has reached
    /// `limit`. Returns false if there was none.
    fn judge_one(&mut self, limit: Duration) -> bool {
        let mut any = false;
        for sampler in &mut self.samplers {
            let Some(record) = sampler.next_record() else { continue };
            any = true;
            let parsed = record.parse_record().ok().and_then(|r| candidate(&r));
            let Some((candidate, time)) = parsed else {
                continue;
            };
            if self.only.as_ref().is_some_and(|only| !only.contains(&candidate.pid)) {
                continue;
            }
            let slot = self.slots.entry(candidate.pid).or_default();
            slot.taken += 1;
            if cpu_time() < limit {
                let judged = match loop_of(&candidate) {
                    Ok(head) => Judged::Waits(head),
                    Err(Verdict::Works) => Judged::Works,
                    Err(_) => Judged::Undecided,
                };
                let position = (candidate.ip, candidate.registers[RSP] % 4096);
                slot.judged.push((position, judged));
                if let Some(samples) = &mut lock(&self.results).samples {
                    let Candidate { pid, thread, .. } = candidate;
                    let head = if let Judged::Waits(head) = judged { Some(head) } else { None };
                    samples.push(Sample { pid, thread, time, head });
                }
            }
        }
        any
    }

    fn end_slot(&mut self) {
        let mut results = lock(&self.results);
        self.slots.retain(|&pid, slot| {
            let is_added = results.found.entry(pid).or_default().add_slot(slot);
            // Without verdicts, the samples belong to the next slot.
            !is_added && os::process::exists(pid)
        });
    }
}

/// Wait for a sample. Returns true if the end was requested.
fn wait(samplers: &[Sampler], left: Duration, ended: &UnixStream) -> bool {
    let fds = samplers.iter().map(|s| s.as_raw_fd()).chain([ended.as_raw_fd()]);
    let mut wanted: Vec<PollFd> = fds
        // SAFETY: the samplers and the socket are open during the call.
        .map(|fd| PollFd::new(unsafe { BorrowedFd::borrow_raw(fd) }, PollFlags::POLLIN))
        .collect();
    let milliseconds = u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX);
    // An error counts as a wake-up.
    let _ = poll(&mut wanted, PollTimeout::from(milliseconds));
    wanted.last().and_then(PollFd::any).unwrap_or(false)
}

/// Return the CPU time of this thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Convert a sample, with its time. None: it has no user registers, or belongs to this process or
/// the idle task.
fn candidate(record: &Record) -> Option<(Candidate, u64)> {
    let Record::Sample(sample) = record else { return None };
    let (pid, thread) = (sample.pid()?, sample.tid()?);
    let r = &sample.regs_user()?.regs;
    // Registers r8 to r15 follow the flags there.
    let is_own = pid == std::process::id();
    if r.len() != 18 || is_own || pid == 0 {
        return None;
    }
    let mut registers = [0; 18];
    registers[..8].copy_from_slice(&r[..8]);
    registers[8..16].copy_from_slice(&r[10..18]);
    registers[16..].copy_from_slice(&r[8..10]);
    Some((Candidate { pid, thread, ip: registers[16], registers }, sample.time().unwrap_or(0)))
}
