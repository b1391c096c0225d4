//! Snapshots of all programs. Two of them give the activity in between.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use procfs::ProcError;
use procfs::process::{Process, Stat, StatFlags};

use super::found::Found;
use super::freezer::is_frozen;
use super::live::{Live, Trouble};
use super::spinning::Sampling;
use super::threads::{Threads, Totals};
use super::throttle::Throttling;
use super::told::{Lock, Told};
use super::waits::{BlockedIn, Waits};
use os::process::have_runtime;

/// Futexes kept of each program: as many as the runtime keeps.
const MOST_LOCKS: usize = 32;

/// Programs to include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    These(Vec<u32>),
}

/// One process in a snapshot.
pub struct Seen {
    pub pid: u32,
    /// When its CPU time was read: a snapshot of many programs takes a while.
    pub at: Instant,
    /// In clock ticks since boot. Distinguishes processes with the same number.
    pub start_time: u64,
    pub name: String,
    pub user: u32,
    /// State letter, as in ps(1).
    pub state: char,
    /// CPU time since the process began.
    pub cpu: Duration,
    /// The part of `cpu` in user mode.
    pub user_cpu: Duration,
    /// Its command line, with a blank between two arguments. Empty: unknown.
    pub command: String,
    pub totals: Totals,
    /// Time for which CPU quotas have stopped its cgroup, since that was created. None: not
    /// counted.
    pub throttled: Option<Duration>,
    /// Its cgroup is frozen. Read only if the runtime's statistics are late.
    pub is_frozen: bool,
    pub runtime: Runtime,
    /// Spin samples since the last snapshot.
    pub spinning: Found,
    /// Where threads were found waiting since the watch began. None: it may not be inspected.
    pub waits: Option<Waiting>,
}

/// Waits of a program, by scans.
pub struct Waiting {
    /// Number of scans.
    pub looks: u32,
    /// Empty for a program under lissom: its runtime counts them.
    pub locks: Vec<Lock>,
    pub blocked_in: Vec<BlockedIn>,
}

/// State of the runtime in a process.
pub enum Runtime {
    /// The process is not under lissom.
    None,
    /// The process may not be inspected.
    Hidden,
    Silent(Trouble),
    Tells(Box<Told>),
}

impl Seen {
    /// Return the runtime's statistics, if known.
    pub fn told(&self) -> Option<&Told> {
        match &self.runtime {
            Runtime::Tells(told) => Some(told),
            _ => None,
        }
    }

    /// Return the number of threads, without the one or two of the runtime.
    pub fn threads(&self) -> u32 {
        self.told().map_or(self.totals.threads, |t| t.threads)
    }
}

pub struct Look {
    pub at: Instant,
    pub programs: BTreeMap<u32, Seen>,
}

/// Data of a process that is kept from one snapshot to the next.
#[derive(Default)]
struct Known {
    /// None: this is the first snapshot with it.
    cpu: Option<Duration>,
    command: String,
    runtime: Presence,
    live: Option<Live>,
    threads: Threads,
    totals: Totals,
    waits: Waits,
}

/// Whether a process has mapped the runtime.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    No,
    Yes,
    NotAllowed,
}

pub struct Watch {
    which: Which,
    user: u32,
    known: HashMap<(u32, u64), Known>,
    throttling: Throttling,
    /// Spin sampling, or why it is not available.
    sampling: anyhow::Result<Sampling>,
    looks_at_waits: bool,
}

impl Watch {
    pub fn new(which: Which) -> Watch {
        Watch {
            sampling: Sampling::start(&which),
            looks_at_waits: true,
            ..Watch::without_sampling(which)
        }
    }

    /// Create a watch that costs less: it does not sample spinning or waits.
    pub fn without_sampling(which: Which) -> Watch {
        Watch {
            which,
            user: os::process::euid(),
            known: HashMap::new(),
            throttling: Throttling::default(),
            sampling: Err(anyhow::anyhow!("not requested")),
            looks_at_waits: false,
        }
    }

    /// Return why spinning is not sampled.
    pub fn no_sampling(&self) -> Option<String> {
        self.sampling.as_ref().err().map(|e| format!("{e:#}"))
    }

    /// Take a snapshot. Fails if /proc cannot be read.
    pub fn look(&mut self) -> anyhow::Result<Look> {
        let mut spinning = self.sampling.as_mut().map(Sampling::look).unwrap_or_default();
        let mut programs = BTreeMap::new();
        for process in self.processes()? {
            // Skip a process that ends meanwhile.
            let (Ok(stat), Ok(user)) = (process.stat(), process.uid()) else { continue };
            let at = Instant::now();
            let is_kernels = stat.flags & StatFlags::PF_KTHREAD.bits() != 0;
            let is_others = self.user != 0 && self.user != user && self.which == Which::All;
            if is_kernels || is_others || stat.pid as u32 == std::process::id() {
                continue;
            }
            let found = spinning.remove(&(stat.pid as u32)).unwrap_or_default();
            programs.insert(stat.pid as u32, self.seen(&process, stat, at, user, found));
        }
        let is_there =
            |pid: u32, start: u64| programs.get(&pid).is_some_and(|p: &Seen| p.start_time == start);
        self.known.retain(|&(pid, start), _| is_there(pid, start));
        self.throttling.keep(is_there);
        Ok(Look { at: Instant::now(), programs })
    }

    fn processes(&self) -> anyhow::Result<Vec<Process>> {
        match &self.which {
            Which::All => Ok(procfs::process::all_processes()
                .context("cannot read /proc")?
                .flatten()
                .collect()),
            Which::These(pids) => {
                Ok(pids.iter().filter_map(|&pid| Process::new(pid as i32).ok()).collect())
            }
        }
    }

    fn seen(
        &mut self,
        process: &Process,
        stat: Stat,
        at: Instant,
        user: u32,
        spinning: Found,
    ) -> Seen {
        let (pid, start_time) = (stat.pid as u32, stat.starttime);
        let ticks = procfs::ticks_per_second();
        let time = |in_ticks: u64| Duration::from_millis(in_ticks * 1000 / ticks);
        let cpu = time(stat.utime + stat.stime);
        let known = self.known.entry((pid, start_time)).or_default();
        // A process that has not run has not changed.
        let has_run = known.cpu != Some(cpu) || stat.state == 'R';
        if has_run {
            // After an exec, the process may be under lissom, or not any more.
            known.runtime = presence(process);
            known.command = command(process);
            known.totals = known.threads.look(pid).unwrap_or(known.totals);
            if self.looks_at_waits {
                known.look_at_waits(pid);
            }
        }
        known.cpu = Some(cpu);
        let runtime = known.runtime(pid);
        Seen {
            pid,
            at,
            start_time,
            name: ui::terminal::plain(&stat.comm),
            user,
            state: stat.state,
            cpu,
            user_cpu: time(stat.utime),
            command: known.command.clone(),
            totals: known.totals,
            throttled: self.throttling.of(pid, start_time),
            is_frozen: matches!(&runtime, Runtime::Tells(told) if told.is_late()) && is_frozen(pid),
            runtime,
            spinning,
            waits: (known.runtime != Presence::NotAllowed).then(|| Waiting {
                looks: known.waits.looks(),
                locks: known.waits.hottest(MOST_LOCKS),
                blocked_in: known.waits.blocked_in(),
            }),
        }
    }

    /// Sample between snapshots in which system calls and on which futexes threads wait.
    pub fn look_at_waits(&mut self) {
        for (&(pid, _), known) in &mut self.known {
            known.look_at_waits(pid);
        }
    }
}

fn command(process: &Process) -> String {
    ui::terminal::plain(&process.cmdline().unwrap_or_default().join(" "))
}

fn presence(process: &Process) -> Presence {
    match process.maps() {
        Err(ProcError::PermissionDenied(_)) => Presence::NotAllowed,
        Ok(maps) if have_runtime(&maps) => Presence::Yes,
        _ => Presence::No,
    }
}

impl Known {
    fn look_at_waits(&mut self, pid: u32) {
        if self.runtime != Presence::NotAllowed {
            let publishes = self.runtime == Presence::Yes && self.live.is_some();
            self.waits.look(pid, publishes);
        }
    }

    fn runtime(&mut self, pid: u32) -> Runtime {
        match self.runtime {
            Presence::No => return Runtime::None,
            Presence::NotAllowed => return Runtime::Hidden,
            Presence::Yes => {}
        }
        let known =
            self.live.as_ref().and_then(|live| live.read().ok()).map(|copy| Told::new(&copy));
        // Statistics this old may be of a monitor that another one has replaced: search again.
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
