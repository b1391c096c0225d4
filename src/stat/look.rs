//! What all programs are doing at one moment, and what two such looks say about the time between
//! them.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use procfs::ProcError;
use procfs::process::{Process, Stat, StatFlags};

use super::freezer::is_frozen;
use super::live::{Live, Trouble};
use super::spinning::{Found, Sampling};
use super::threads::{Threads, Totals};
use super::throttle::Throttling;
use super::told::{Lock, Told};
use super::waits::Waits;
use crate::manager::sample::have_runtime;

/// Of a program, as many as the runtime keeps.
const MOST_LOCKS: usize = 32;

/// Which programs are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    These(Vec<u32>),
}

/// One process at one moment.
pub struct Seen {
    pub pid: u32,
    /// Of two processes with the same number one has another.
    pub start_time: u64,
    pub name: String,
    pub user: u32,
    /// As ps(1) shows it.
    pub state: char,
    /// Since it began.
    pub cpu: Duration,
    pub totals: Totals,
    /// Of its group, since that began. None: that is not counted.
    pub throttled: Option<Duration>,
    /// Its group is frozen. Asked only where nothing has been heard of it for a while.
    pub is_frozen: bool,
    pub runtime: Runtime,
    /// Between the last look and this one, by samples.
    pub spinning: Found,
    /// Not under lissom: on how many looks since it is watched, and the futexes on which threads
    /// were found waiting.
    pub waits: Option<(u32, Vec<Lock>)>,
}

/// Of lissom, in the process.
pub enum Runtime {
    /// It is not under lissom.
    None,
    /// It may not be looked into.
    Hidden,
    Silent(Trouble),
    Tells(Box<Told>),
}

impl Seen {
    /// What it says of itself, if it does.
    pub fn told(&self) -> Option<&Told> {
        match &self.runtime {
            Runtime::Tells(told) => Some(told),
            _ => None,
        }
    }

    /// Its own: of lissom's there are one or two more.
    pub fn threads(&self) -> u32 {
        self.told().map_or(self.totals.threads, |t| t.threads)
    }
}

pub struct Look {
    pub at: Instant,
    pub programs: BTreeMap<u32, Seen>,
}

/// Of a process, from one look to the next.
struct Known {
    cpu: Duration,
    runtime: Presence,
    live: Option<Live>,
    threads: Threads,
    totals: Totals,
    waits: Waits,
}

/// Whether lissom is in the process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    No,
    Yes,
    NotAllowed,
}

pub struct Watch {
    which: Which,
    user: u32,
    known: HashMap<(u32, u64), Known>,
    throttling: Throttling,
    /// Or why it may not be had.
    sampling: anyhow::Result<Sampling>,
    looks_at_waits: bool,
}

impl Watch {
    pub fn new(which: Which) -> Watch {
        Watch {
            sampling: Sampling::start(),
            looks_at_waits: true,
            ..Watch::without_sampling(which)
        }
    }

    /// Costs less, and does not see who spins, nor what those wait for who do not tell.
    pub fn without_sampling(which: Which) -> Watch {
        Watch {
            which,
            user: crate::process::euid(),
            known: HashMap::new(),
            throttling: Throttling::default(),
            sampling: Err(anyhow::anyhow!("not asked for")),
            looks_at_waits: false,
        }
    }

    /// Why nobody is looked at for spinning.
    pub fn no_sampling(&self) -> Option<String> {
        self.sampling.as_ref().err().map(|e| format!("{e:#}"))
    }

    pub fn look(&mut self) -> anyhow::Result<Look> {
        let mut spinning = self.sampling.as_mut().map(Sampling::look).unwrap_or_default();
        let mut programs = BTreeMap::new();
        for process in self.processes()? {
            // One that ends meanwhile is none.
            let (Ok(stat), Ok(user)) = (process.stat(), process.uid()) else { continue };
            let is_kernels = stat.flags & StatFlags::PF_KTHREAD.bits() != 0;
            let is_others = self.user != 0 && self.user != user && self.which == Which::All;
            if is_kernels || is_others || stat.pid as u32 == std::process::id() {
                continue;
            }
            let found = spinning.remove(&(stat.pid as u32)).unwrap_or_default();
            programs.insert(stat.pid as u32, self.seen(&process, stat, user, found));
        }
        let is_there =
            |pid: u32, start: u64| programs.get(&pid).is_some_and(|p: &Seen| p.start_time == start);
        self.known.retain(|&(pid, start), _| is_there(pid, start));
        self.throttling.keep(is_there);
        Ok(Look { at: Instant::now(), programs })
    }

    fn processes(&self) -> anyhow::Result<Vec<Process>> {
        match &self.which {
            Which::All => {
                Ok(procfs::process::all_processes().context("/proc")?.flatten().collect())
            }
            Which::These(pids) => {
                Ok(pids.iter().filter_map(|&pid| Process::new(pid as i32).ok()).collect())
            }
        }
    }

    fn seen(&mut self, process: &Process, stat: Stat, user: u32, spinning: Found) -> Seen {
        let (pid, start_time) = (stat.pid as u32, stat.starttime);
        let ticks = procfs::ticks_per_second();
        let cpu = Duration::from_millis((stat.utime + stat.stime) * 1000 / ticks);
        let known = self.known.entry((pid, start_time)).or_insert_with(|| Known {
            cpu: Duration::MAX,
            runtime: Presence::No,
            live: None,
            threads: Threads::default(),
            totals: Totals::default(),
            waits: Waits::default(),
        });
        // A process that has not run has not changed.
        let has_run = known.cpu != cpu || stat.state == 'R';
        if has_run {
            // What it has become may be under lissom, or not any more.
            known.runtime = presence(process);
            known.totals = known.threads.look(pid).unwrap_or(known.totals);
            if self.looks_at_waits && known.runtime == Presence::No {
                known.waits.look(pid);
            }
        }
        known.cpu = cpu;
        let runtime = known.runtime(pid);
        Seen {
            pid,
            start_time,
            name: crate::terminal::plain(&stat.comm),
            user,
            state: stat.state,
            cpu,
            totals: known.totals,
            throttled: self.throttling.of(pid, start_time),
            is_frozen: matches!(&runtime, Runtime::Tells(told) if told.is_late()) && is_frozen(pid),
            runtime,
            spinning,
            waits: (known.runtime == Presence::No)
                .then(|| (known.waits.looks(), known.waits.hottest(MOST_LOCKS))),
        }
    }

    /// Looks at what threads wait for, in between, of programs that do not tell.
    pub fn look_at_waits(&mut self) {
        for (&(pid, _), known) in self.known.iter_mut().filter(|(_, k)| k.runtime == Presence::No) {
            known.waits.look(pid);
        }
    }
}

fn presence(process: &Process) -> Presence {
    match process.maps() {
        Err(ProcError::PermissionDenied(_)) => Presence::NotAllowed,
        Ok(maps) if have_runtime(&maps) => Presence::Yes,
        _ => Presence::No,
    }
}

impl Known {
    fn runtime(&mut self, pid: u32) -> Runtime {
        match self.runtime {
            Presence::No => return Runtime::None,
            Presence::NotAllowed => return Runtime::Hidden,
            Presence::Yes => {}
        }
        let known =
            self.live.as_ref().and_then(|live| live.read().ok()).map(|copy| Told::new(&copy));
        // What has not been written for so long may be another monitor's, which has been made anew
        // since.
        if let Some(told) =
            known.filter(|told| told.is_asleep || told.age <= Duration::from_secs(1))
        {
            return Runtime::Tells(Box::new(told));
        }
        match Live::find(pid).and_then(|live| Ok((live.read()?, live))) {
            Ok((copy, live)) => {
                self.live = Some(live);
                Runtime::Tells(Box::new(Told::new(&copy)))
            }
            Err(trouble) => Runtime::Silent(trouble),
        }
    }
}
