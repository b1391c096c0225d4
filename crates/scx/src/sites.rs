//! Sites: places where threads were repeatedly in the same state. Judges them, and drops those of
//! ended processes.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use libbpf_rs::{MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use procfs::process::Process;

use super::layout::{self, Site, SiteInfo};
use super::load::{self, Scheduler};
use super::maps;
use judge::judge;
use judge::{Candidate, Verdict};

/// Longest time to judge at a time: this process runs before all threads that it schedules.
const BUDGET: Duration = Duration::from_millis(5);

/// Number of sites above which those without a preemption are dropped. The map holds 16,384.
const FULL: usize = 12_288;

/// Start time of a process, and start address of its code, which usually changes with an exec.
type Life = (u64, u64);

pub struct Sites {
    ring: RingBuffer<'static>,
    waiting: Rc<RefCell<VecDeque<Candidate>>>,
    map: MapHandle,
    lives: HashMap<u32, Life>,
    /// There were candidates since the last has_judged.
    judged: bool,
}

impl Sites {
    pub fn new(scheduler: &Scheduler) -> anyhow::Result<Sites> {
        let waiting = Rc::new(RefCell::new(VecDeque::new()));
        let candidates = scheduler.map(load::CANDIDATES)?;
        let mut builder = RingBufferBuilder::new();
        let queue = waiting.clone();
        builder.add(&candidates, move |bytes| {
            queue.borrow_mut().extend(layout::candidate(bytes));
            0
        })?;
        let ring = builder.build()?;
        Ok(Sites {
            ring,
            waiting,
            map: scheduler.handle(load::SITES)?,
            lives: HashMap::new(),
            judged: false,
        })
    }

    /// A descriptor that is readable while there are candidates.
    pub fn readable(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring buffer owns the descriptor, and outlives the borrow.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }

    /// Judge candidates for at most about BUDGET. Returns true if there may be more: let others
    /// run before the next call.
    pub fn judge_some(&mut self) -> anyhow::Result<bool> {
        self.ring.consume()?;
        let begin = Instant::now();
        loop {
            let Some(candidate) = self.waiting.borrow_mut().pop_front() else { return Ok(false) };
            self.judged = true;
            if let Some(life) = life(candidate.pid) {
                self.lives.entry(candidate.pid).or_insert(life);
                self.decide(&candidate);
            }
            if begin.elapsed() > BUDGET {
                return Ok(true);
            }
        }
    }

    /// Returns whether there were candidates since the last call.
    pub fn has_judged(&mut self) -> bool {
        std::mem::take(&mut self.judged)
    }

    fn decide(&self, candidate: &Candidate) {
        // This process has real-time priority, so its own scheduler does not run it.
        let is_own = candidate.pid == std::process::id();
        let verdict = if is_own { Verdict::Works } else { judge(candidate) };
        let site = Site::new(candidate.pid, candidate.ip);
        let Some(mut info) = maps::get::<SiteInfo>(&self.map, &site) else { return };
        if info.verdict != verdict {
            info.verdict = verdict;
            // Counts of the kernel between the two calls are lost, and the site may have been
            // dropped: neither matters.
            let _ = maps::put(&self.map, &site, &info, MapFlags::EXIST);
        }
    }

    /// Drop the sites of processes that have ended or called exec. If more than FULL are left, also
    /// drop those without a preemption. Returns the number of remaining sites.
    pub fn forget_ended(&mut self) -> usize {
        let mut lives: HashMap<u32, Option<Life>> = HashMap::new();
        let (mut left, mut idle) = (0, Vec::new());
        for site in maps::keys::<Site>(&self.map) {
            let now = *lives.entry(site.pid).or_insert_with(|| life(site.pid));
            let is_same =
                now.is_some_and(|now| self.lives.get(&site.pid).is_none_or(|then| *then == now));
            if !is_same {
                maps::delete(&self.map, &site);
                continue;
            }
            left += 1;
            if maps::get::<SiteInfo>(&self.map, &site).is_some_and(|info| info.kicks == 0) {
                idle.push(site);
            }
        }
        self.lives = lives.into_iter().filter_map(|(pid, life)| Some((pid, life?))).collect();
        if left > FULL {
            left -= idle.len();
            idle.iter().for_each(|site| maps::delete(&self.map, site));
        }
        left
    }
}

/// Returns None if the process has ended.
fn life(pid: u32) -> Option<Life> {
    let stat = Process::new(pid as i32).and_then(|p| p.stat()).ok()?;
    Some((stat.starttime, stat.startcode))
}

/// All known sites, with their verdicts and counts.
pub fn all(map: &MapHandle) -> Vec<(Site, SiteInfo)> {
    maps::keys::<Site>(map).into_iter().filter_map(|s| Some((s, maps::get(map, &s)?))).collect()
}
