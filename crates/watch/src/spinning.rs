//! Spin sampling from outside: find CPU time that threads waste in loops that wait. A clock
//! interrupts each CPU; the interpreter of `lissom sched` judges some of the interrupted threads
//! (docs/design/sched-judge.md). It reads registers of all processes, so it needs root, or
//! CAP_PERFMON and CAP_SYS_PTRACE.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};

use judge::{Candidate, loop_of};

/// Interrupts per second of each CPU.
const RATE: u64 = 99;
/// Maximum interrupts per second of all CPUs together.
const RATE_OF_ALL: u64 = 2000;

/// CPU time for judging, as a fraction of the time between two calls. The other samples are
/// dropped.
const SHARE: f64 = 0.02;

/// Maximum duration of judging, in multiples of its CPU time: CPUs may be short.
const PATIENCE: u32 = 10;

/// ax bx cx dx si di bp sp ip flags, r8 to r15, as the kernel numbers them (asm/perf_regs.h).
const REGISTERS: u64 = 0x3ff | 0xff << 16;

/// Results for one process since the last call.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Judged samples: of threads that ran code of their own.
    pub judged: u32,
    pub spinning: u32,
    /// Samples by the address of the loop's first instruction.
    pub loops: HashMap<u64, u32>,
}

impl Found {
    /// Return the fraction of samples in loops that wait. None: too few samples.
    pub fn share(&self) -> Option<f64> {
        (self.judged >= 5).then(|| f64::from(self.spinning) / f64::from(self.judged))
    }

    pub fn add(&mut self, other: &Found) {
        self.judged += other.judged;
        self.spinning += other.spinning;
        for (head, n) in &other.loops {
            *self.loops.entry(*head).or_default() += n;
        }
    }
}

pub struct Sampling {
    samplers: Vec<Sampler>,
    random: fastrand::Rng,
    last: Instant,
}

impl Sampling {
    /// Start to sample all online CPUs. Fails without the privileges.
    pub fn start() -> anyhow::Result<Sampling> {
        let cpus = os::process::online_cpus().unwrap_or_else(|| vec![0]);
        let rate = RATE.min(RATE_OF_ALL / cpus.len() as u64).max(1);
        let mut samplers = Vec::new();
        for cpu in cpus {
            let mut builder = Builder::new(Software::CPU_CLOCK);
            builder.any_pid().one_cpu(cpu as usize).sample_period(1_000_000_000 / rate);
            builder.exclude_kernel(true).exclude_hv(true).exclude_idle(true);
            builder
                .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::REGS_USER)
                .sample_regs_user(REGISTERS);
            // 128 KiB hold 600 samples.
            let mut sampler = builder.build()?.sampled(32)?;
            sampler.enable()?;
            samplers.push(sampler);
        }
        Ok(Sampling { samplers, random: fastrand::Rng::new(), last: Instant::now() })
    }

    /// Judge samples since the last call. Returns the results by process.
    pub fn look(&mut self) -> HashMap<u32, Found> {
        let mut candidates = Vec::new();
        for sampler in &mut self.samplers {
            while let Some(record) = sampler.next_record() {
                candidates.extend(record.parse_record().ok().and_then(|r| candidate(&r)));
            }
        }
        // Judge soon, while stacks are unchanged, but in random order: the budget may drop the
        // rest.
        self.random.shuffle(&mut candidates);
        let (begin, used) = (Instant::now(), cpu_time());
        let budget = (begin - self.last).mul_f64(SHARE).max(Duration::from_millis(2));
        self.last = begin;
        let mut found: HashMap<u32, Found> = HashMap::new();
        for candidate in candidates {
            let of = found.entry(candidate.pid).or_default();
            of.judged += 1;
            if let Ok(head) = loop_of(&candidate) {
                of.spinning += 1;
                *of.loops.entry(head).or_default() += 1;
            }
            if cpu_time().saturating_sub(used) > budget || begin.elapsed() > budget * PATIENCE {
                break;
            }
        }
        found
    }
}

/// Return the CPU time of this thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Convert a sample. None: it has no user registers, or belongs to this process or the idle task.
fn candidate(record: &Record) -> Option<Candidate> {
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
    Some(Candidate { pid, thread, ip: registers[16], registers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        let mut found = Found { judged: 4, spinning: 4, loops: HashMap::from([(1, 4)]) };
        assert_eq!(found.share(), None);
        found.add(&Found { judged: 4, spinning: 0, loops: HashMap::from([(1, 1), (2, 3)]) });
        assert_eq!(found.share(), Some(0.5));
        assert_eq!((found.loops[&1], found.loops[&2]), (5, 3));
    }
}
