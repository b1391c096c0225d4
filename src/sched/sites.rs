//! The places where threads were seen in the same state again and again: judged once each, and
//! forgotten with their processes.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use procfs::process::Process;

use super::judge::judge;
use super::layout::{Candidate, Site, SiteInfo, Verdict};
use super::load::{self, Scheduler};

/// It runs before all threads that it schedules, so it must not run for long.
const BUDGET: Duration = Duration::from_millis(5);

/// Sites in the map from which on those that nobody gave way at are dropped. It has room for 16384.
const FULL: usize = 12_288;

/// When a process was started, and where its code lies: another one when it has become another
/// program.
type Life = (u64, u64);

pub struct Sites {
    ring: RingBuffer<'static>,
    waiting: Rc<RefCell<VecDeque<Candidate>>>,
    map: MapHandle,
    lives: HashMap<u32, Life>,
    /// There were candidates since has_judged.
    judged: bool,
}

impl Sites {
    pub fn new(scheduler: &Scheduler) -> anyhow::Result<Sites> {
        let waiting = Rc::new(RefCell::new(VecDeque::new()));
        let candidates = scheduler.map(load::CANDIDATES)?;
        let mut builder = RingBufferBuilder::new();
        let queue = waiting.clone();
        builder.add(&candidates, move |bytes| {
            queue.borrow_mut().extend(Candidate::parse(bytes));
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

    /// Readable when there are candidates.
    pub fn readable(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring buffer's, which lives as long as the borrow.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }

    /// True: there are more, and others are to run first.
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

    /// Whether there were candidates since the last call.
    pub fn has_judged(&mut self) -> bool {
        std::mem::take(&mut self.judged)
    }

    fn decide(&self, candidate: &Candidate) {
        // This one is not scheduled by what it has loaded.
        let is_own = candidate.pid == std::process::id();
        let verdict = if is_own { Verdict::Works } else { judge(candidate) };
        let key = candidate.site().bytes();
        let Ok(Some(value)) = self.map.lookup(&key, MapFlags::ANY) else { return };
        let Some(info) = SiteInfo::parse(&value) else { return };
        if info.verdict != verdict {
            // What was counted between the two is lost, and it may have been dropped: neither
            // matters.
            let _ = self.map.update(&key, &SiteInfo { verdict, ..info }.bytes(), MapFlags::EXIST);
        }
    }

    /// Drops what belongs to processes that have ended, or have become another program. Returns how
    /// many sites are left.
    pub fn forget_ended(&mut self) -> usize {
        let mut lives: HashMap<u32, Option<Life>> = HashMap::new();
        let (mut left, mut idle) = (0, Vec::new());
        // All at once: after one that is dropped, the kernel begins again with the first.
        let keys: Vec<Vec<u8>> = self.map.keys().collect();
        for key in keys {
            let Some(site) = Site::parse(&key) else { continue };
            let now = *lives.entry(site.pid).or_insert_with(|| life(site.pid));
            let is_same =
                now.is_some_and(|now| self.lives.get(&site.pid).is_none_or(|then| *then == now));
            if !is_same {
                let _ = self.map.delete(&key);
                continue;
            }
            left += 1;
            let info = self.map.lookup(&key, MapFlags::ANY).ok().flatten();
            if info.and_then(|v| SiteInfo::parse(&v)).is_some_and(|i| i.kicks == 0) {
                idle.push(key);
            }
        }
        self.lives = lives.into_iter().filter_map(|(pid, life)| Some((pid, life?))).collect();
        if left > FULL {
            left -= idle.len();
            idle.iter().for_each(|key| {
                let _ = self.map.delete(key);
            });
        }
        left
    }
}

/// None: it has ended.
fn life(pid: u32) -> Option<Life> {
    let stat = Process::new(pid as i32).and_then(|p| p.stat()).ok()?;
    Some((stat.starttime, stat.startcode))
}

/// All that are known, with what is known of them.
pub fn all(map: &MapHandle) -> Vec<(Site, SiteInfo)> {
    let info = |key: &[u8]| SiteInfo::parse(&map.lookup(key, MapFlags::ANY).ok()??);
    map.keys().filter_map(|key| Some((Site::parse(&key)?, info(&key)?))).collect()
}
