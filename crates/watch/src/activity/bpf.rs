//! Activity of programs, counted in the kernel. BPF programs (bpf/activity.bpf.c) count every
//! change of a process's number of runnable threads, in memory that is mapped here. So reading
//! costs no system calls and misses nothing, but loading needs privileges.

use std::collections::HashMap;
use std::io::Read as _;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use anyhow::Context as _;
use libbpf_rs::{Iter, Link, Map, MapCore as _, Object, ObjectBuilder};
use memmap2::{MmapOptions, MmapRaw};
use procfs::process::Process;

use super::sample::Seen;
use super::vector::ActivityVector;
use crate::bpf::{self, Aligned};
use os::process;
use os::process::has_runtime;

/// Number of entries in a record: `ACTIVITY_LAST` of bpf/activity.h, and one for 0 threads.
const ENTRIES: usize = 65;

/// Layout of `struct activity` in bpf/activity.h, which documents the fields.
#[repr(C, align(64))]
struct Record {
    start: AtomicU64,
    pid: AtomicU32,
    execs: AtomicU32,
    threads: AtomicI32,
    runnable: AtomicI32,
    time: [AtomicI64; ENTRIES],
}

/// Layout of `struct activity_state` in bpf/activity.h.
#[repr(C)]
struct State {
    used: AtomicU32,
    lost: AtomicU32,
}

static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/activity.bpf.o")));

/// Maximum number of attempts to read a record that changes meanwhile. An attempt takes less than a
/// microsecond.
const RETRIES: u32 = 1000;

/// Number of periods in which to search a process for the runtime. It is mapped shortly after the
/// exec, so a search in one period may come too early.
const ASKED: u32 = 2;

pub struct Activity {
    records: Mapping<Record>,
    state: Mapping<State>,
    known: HashMap<usize, Known>,
    /// End of the last period, in ns of CLOCK_MONOTONIC.
    until: u64,
    said_lost: bool,
    _links: Vec<Link>,
    _object: Object,
}

/// A process, as its record describes it.
struct Counted {
    start: u64,
    pid: u32,
    execs: u32,
    threads: u32,
}

impl Record {
    /// Return the process. None: the record is free, or of a zombie, which has no threads.
    fn process(&self) -> Option<Counted> {
        let counted = Counted {
            start: self.start.load(Ordering::Acquire),
            pid: self.pid.load(Ordering::Relaxed),
            execs: self.execs.load(Ordering::Relaxed),
            threads: self.threads.load(Ordering::Relaxed).max(0) as u32,
        };
        (counted.start != 0 && counted.threads > 0).then_some(counted)
    }
}

/// State of a process at the end of the last period.
struct Known {
    start: u64,
    history: History,
    execs: u32,
    /// `None`: the process has exited, or belongs to another user.
    program: Option<Program>,
}

impl Known {
    fn new(counted: &Counted, user: u32) -> Known {
        let &Counted { start, pid, execs, .. } = counted;
        Known { start, history: History::new(), execs, program: program(pid, user) }
    }
}

struct Program {
    name: String,
    malleable: bool,
    /// Number of searches for the runtime so far.
    asked: u32,
}

impl Activity {
    /// Load and attach the BPF programs. Fails without privileges, on kernels older than 5.12 or
    /// without BTF (CONFIG_DEBUG_INFO_BTF), and outside the initial PID namespace.
    pub fn load() -> anyhow::Result<Activity> {
        bpf::prepare()?;
        let processes = procfs::process::all_processes().context("cannot read /proc")?.count();
        let capacity = (4 * processes).clamp(4096, 65_536) as u32;
        let mut object = ObjectBuilder::default().open_memory(&OBJECT.0)?;
        for mut map in object.maps_mut() {
            if ["processes", "slots", "free_slots"].iter().any(|n| map.name() == *n) {
                map.set_max_entries(capacity)?;
            }
        }
        let object = object.load()?;
        let map = |name: &str| -> anyhow::Result<Map<'_>> {
            object
                .maps()
                .find(|m| m.name().to_string_lossy().ends_with(name))
                .context("the BPF object lacks a map")
        };
        let records = map("processes")?;
        assert_eq!(records.value_size() as usize, size_of::<Record>());
        let records = Mapping::new(&records, capacity as usize)?;
        let state = Mapping::new(&map(".bss")?, 1)?;
        let mut links = Vec::new();
        let mut first_look = None;
        for program in object.progs_mut() {
            let link = program.attach()?;
            match program.section().to_string_lossy().starts_with("iter/") {
                true => first_look = Some(link),
                false => links.push(link),
            }
        }
        // The other programs count changes by now, so add the existing threads: reading the
        // iterator to its end runs its program for each thread. The second pass adds threads that
        // were created behind the first pass, before it reached another thread of their process.
        let first_look = first_look.context("the BPF object lacks a program")?;
        for _ in 0..2 {
            Iter::new(&first_look)?
                .read_to_end(&mut Vec::new())
                .context("cannot list running threads by BPF")?;
        }
        let mut activity = Activity {
            records,
            state,
            known: HashMap::new(),
            until: now(),
            said_lost: false,
            _links: links,
            _object: object,
        };
        activity.begin();
        Ok(activity)
    }

    /// Discard the times counted until now. While `load` added existing threads, processes appeared
    /// to have fewer threads than they had; longer if this process had to wait for a CPU.
    fn begin(&mut self) {
        let user = process::euid();
        for slot in 0..self.used() {
            let record = &self.records[slot];
            let Some(counted) = record.process() else { continue };
            let mut known = Known::new(&counted, user);
            known.history.advance(record, counted.start, self.until, 0);
            self.known.insert(slot, known);
        }
    }

    /// Return the number of records that may be in use.
    fn used(&self) -> usize {
        (self.state[0].used.load(Ordering::Relaxed) as usize).min(self.records.len())
    }

    /// Return the activity since the last call, or since `load`, sorted by process ID. Covers the
    /// processes of this user, for root those of all users, but not this process.
    pub fn seen(&mut self) -> Vec<Seen> {
        let now = now();
        let period = now - self.until;
        self.until = now;
        let (user, own) = (process::euid(), std::process::id());
        let used = self.used();
        let mut seen = Vec::new();
        for (slot, record) in self.records.iter().enumerate().take(used) {
            let Some(counted) = record.process().filter(|process| process.pid != own) else {
                self.known.remove(&slot);
                continue;
            };
            let known = self.known.entry(slot).or_insert_with(|| Known::new(&counted, user));
            if known.start != counted.start {
                *known = Known::new(&counted, user);
            } else if known.execs != counted.execs {
                known.execs = counted.execs;
                known.program = program(counted.pid, user);
            }
            let Some(activity) = known.history.advance(record, counted.start, now, period) else {
                continue;
            };
            let Some(program) = &mut known.program else { continue };
            if activity.ran() && !program.malleable && program.asked < ASKED {
                program.asked += 1;
                program.malleable = Process::new(counted.pid as i32).is_ok_and(|p| has_runtime(&p));
            }
            seen.push(Seen::new(
                counted.pid,
                program.name.clone(),
                counted.threads,
                program.malleable,
                activity,
            ));
        }
        self.say_lost();
        seen.sort_unstable_by_key(|s| s.id);
        seen
    }

    /// Report once on standard error that processes or threads are not counted.
    fn say_lost(&mut self) {
        let lost = self.state[0].lost.load(Ordering::Relaxed);
        if lost > 0 && !self.said_lost {
            self.said_lost = true;
            ui::message!(
                "lissom: {lost} programs or threads are not counted: too many, or out of memory; \
                 restart the manager"
            );
        }
    }
}

/// Read a process's name. Returns `None` if it has exited, or belongs to another user. `malleable`
/// is false, because the runtime may not be mapped yet.
fn program(pid: u32, user: u32) -> Option<Program> {
    let process = Process::new(pid as i32).ok()?;
    let mine = user == 0 || process.uid().ok()? == user;
    mine.then_some(Program { name: process.stat().ok()?.comm, malleable: false, asked: 0 })
}

/// Totals of a process at the end of the last period.
struct History {
    /// ns with 0, 1, 2 ... runnable threads.
    totals: [u64; ENTRIES],
    /// The entry that grew then: the number of runnable threads.
    open: usize,
    /// Its raw value. As long as the record has the same value, the number has not changed.
    raw: i64,
}

impl History {
    fn new() -> History {
        History { totals: [0; ENTRIES], open: 0, raw: i64::MIN }
    }

    /// Return the activity since the last call. `now`, `period`: the end and the length of that
    /// time, in ns. Returns `None` if the record changes all the time, or belongs to another
    /// process.
    fn advance(
        &mut self,
        record: &Record,
        start: u64,
        now: u64,
        period: u64,
    ) -> Option<ActivityVector> {
        if record.time[self.open].load(Ordering::Relaxed) == self.raw {
            self.totals[self.open] += period;
            return Some(vector(self.open + 1, |i| if i == self.open { period } else { 0 }));
        }
        let raw = snapshot(record, start)?;
        let totals = totals(&raw, now);
        let before = std::mem::replace(&mut self.totals, totals);
        self.open = open(&raw);
        self.raw = raw[self.open];
        let grown = |i: usize| totals[i].saturating_sub(before[i]);
        let length = (0..ENTRIES).rev().find(|&i| grown(i) > 0).map_or(0, |i| i + 1);
        Some(vector(length, grown))
    }
}

/// Build an activity vector from the growth of each entry in ns.
fn vector(length: usize, ns: impl Fn(usize) -> u64) -> ActivityVector {
    ActivityVector::new((0..length).map(|i| Duration::from_nanos(ns(i))).collect())
}

/// Read all entries at one moment. While a change is half made, their sum is not -`start`; then
/// read again. The fence orders the reads of the entries before that of the record's start. Returns
/// `None` if the record changes all the time, or has another start.
fn snapshot(record: &Record, start: u64) -> Option<[i64; ENTRIES]> {
    for _ in 0..RETRIES {
        let raw = std::array::from_fn(|i| record.time[i].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        if record.start.load(Ordering::Relaxed) != start {
            return None;
        }
        if raw.iter().fold(0i64, |sum, &t| sum.wrapping_add(t)) == (start as i64).wrapping_neg() {
            return Some(raw);
        }
        std::hint::spin_loop();
    }
    None
}

/// Return the entry of the current number of threads: the smallest one, because its interval has
/// only begun (-t0).
fn open(raw: &[i64; ENTRIES]) -> usize {
    (0..ENTRIES).min_by_key(|&i| raw[i]).unwrap_or(0)
}

/// Convert raw entries into ns at the time `now`. Clocks of CPUs differ slightly, which may make an
/// entry negative: it counts as 0.
fn totals(raw: &[i64; ENTRIES], now: u64) -> [u64; ENTRIES] {
    let open = open(raw);
    std::array::from_fn(|i| {
        let time = if i == open { raw[i].wrapping_add(now as i64) } else { raw[i] };
        u64::try_from(time).unwrap_or(0)
    })
}

/// Return the time of CLOCK_MONOTONIC, the clock of bpf_ktime_get_ns, in ns.
fn now() -> u64 {
    process::monotonic().as_nanos() as u64
}

/// The values of a BPF map, mapped read-only.
struct Mapping<T> {
    map: MmapRaw,
    of: PhantomData<T>,
}

impl<T> Mapping<T> {
    /// Map the first `length` values of a map. `T` must consist of atomics, because the kernel
    /// changes them at any time.
    fn new(map: &Map, length: usize) -> anyhow::Result<Mapping<T>> {
        let mut options = MmapOptions::new();
        let map = options.len(length * size_of::<T>()).map_raw_read_only(map.as_fd().as_raw_fd());
        Ok(Mapping { map: map.context("cannot map a BPF map")?, of: PhantomData })
    }
}

impl<T> Deref for Mapping<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let length = self.map.len() / size_of::<T>();
        // SAFETY: mapped for as long as `self` lives; `T` consists of atomics.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 5_000_000_000;

    /// A record that counts as the BPF programs do.
    struct Simulated {
        record: Record,
        count: usize,
    }

    impl Simulated {
        fn new() -> Simulated {
            let record = Record {
                start: AtomicU64::new(START as u64),
                pid: AtomicU32::new(1),
                execs: AtomicU32::new(0),
                threads: AtomicI32::new(1),
                runnable: AtomicI32::new(0),
                time: std::array::from_fn(|i| AtomicI64::new(if i == 0 { -START } else { 0 })),
            };
            Simulated { record, count: 0 }
        }

        fn change(&mut self, count: usize, at: i64) {
            self.record.time[self.count].fetch_add(at, Ordering::Relaxed);
            self.record.time[count].fetch_sub(at, Ordering::Relaxed);
            self.count = count;
        }
    }

    fn ms(vector: &ActivityVector) -> Vec<u64> {
        vector.times().map(|t| t.as_millis() as u64).collect()
    }

    #[test]
    fn periods_from_sums() {
        const MS: i64 = 1_000_000;
        let mut simulated = Simulated::new();
        let mut history = History::new();
        let mut period = |simulated: &Simulated, from: i64, to: i64| {
            let (now, period) = ((START + to * MS) as u64, ((to - from) * MS) as u64);
            ms(&history
                .advance(&simulated.record, START as u64, now, period)
                .expect("it holds still"))
        };
        simulated.change(1, START + 10 * MS);
        simulated.change(3, START + 30 * MS);
        simulated.change(1, START + 60 * MS);
        assert_eq!(period(&simulated, 0, 100), [10, 60, 0, 30]);
        // Without a change, the same number of threads continues.
        assert_eq!(period(&simulated, 100, 200), [0, 100]);
        assert_eq!(period(&simulated, 200, 250), [0, 50]);
        simulated.change(0, START + 260 * MS);
        assert_eq!(period(&simulated, 250, 350), [90, 10]);
        assert_eq!(period(&simulated, 350, 450), [100]);
        // A change counts even if it is undone shortly afterwards.
        simulated.change(2, START + 460 * MS);
        simulated.change(0, START + 461 * MS);
        assert_eq!(period(&simulated, 450, 550), [99, 0, 1]);
        simulated.change(64, START + 560 * MS);
        let last = period(&simulated, 550, 650);
        assert_eq!((last.len(), last[0], last[64]), (65, 10, 90));
    }

    #[test]
    fn changes_that_are_half_made() {
        let simulated = Simulated::new();
        simulated.record.time[0].fetch_add(START + 7, Ordering::Relaxed);
        assert!(snapshot(&simulated.record, START as u64).is_none());
        simulated.record.time[1].fetch_sub(START + 7, Ordering::Relaxed);
        assert_eq!(snapshot(&simulated.record, START as u64).map(|raw| open(&raw)), Some(1));
        // The start time of another process.
        assert!(snapshot(&simulated.record, START as u64 + 1).is_none());
    }

    #[test]
    fn clocks_that_differ() {
        // The later change has the earlier time.
        let mut simulated = Simulated::new();
        simulated.change(1, START + 1_000);
        simulated.change(0, START + 900);
        let raw = snapshot(&simulated.record, START as u64).expect("it holds still");
        assert_eq!(totals(&raw, (START + 2_000) as u64)[..3], [2_100, 0, 0]);
    }
}
