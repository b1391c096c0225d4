//! What programs do, as the kernel tells: every change of the number of a process's runnable
//! threads is counted by BPF programs (bpf/activity.bpf.c), in memory that is mapped here, so that
//! a look costs no system calls. Nothing is missed, but it takes privileges.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use anyhow::{Context as _, bail};
use libbpf_rs::{Iter, Link, Map, MapCore as _, Object, ObjectBuilder};
use procfs::process::Process;

use super::allocation::Id;
use super::sample::{Seen, has_runtime};
use super::vector::ActivityVector;
use crate::process;

/// `ACTIVITY_LAST` of bpf/activity.h, and what it says about an entry's number.
const ENTRIES: usize = 65;

/// `struct activity` of bpf/activity.h, which explains it.
#[repr(C, align(64))]
struct Record {
    start: AtomicU64,
    pid: AtomicU32,
    execs: AtomicU32,
    threads: AtomicI32,
    runnable: AtomicI32,
    time: [AtomicI64; ENTRIES],
}

/// `struct activity_state`.
#[repr(C)]
struct State {
    used: AtomicU32,
    lost: AtomicU32,
}

/// libbpf reads structures from it in place.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/activity.bpf.o")));

/// Looks again at a record that changes meanwhile: a look takes less than a microsecond.
const RETRIES: u32 = 1000;

/// The runtime is mapped a moment after the exec: who has not had it in one period is asked in the
/// next one again.
const ASKED: u32 = 2;

pub struct Activity {
    records: Mapping<Record>,
    state: Mapping<State>,
    known: HashMap<u32, Known>,
    /// ns, when the last period ended.
    until: u64,
    said_lost: bool,
    _links: Vec<Link>,
    _object: Object,
}

/// A process, as it was at the end of the last period.
struct Known {
    start: u64,
    history: History,
    execs: u32,
    /// None: it is gone, or somebody else's.
    program: Option<Program>,
}

struct Program {
    name: String,
    malleable: bool,
    asked: u32,
}

impl Activity {
    /// Fails without the privileges, on kernels without types (CONFIG_DEBUG_INFO_BTF) or older than
    /// 5.12, and where process numbers are not the kernel's own.
    pub fn load() -> anyhow::Result<Activity> {
        if !process::in_first_pid_namespace() {
            bail!(
                "BPF counts processes by the numbers of the machine, and this is a PID namespace of its own"
            );
        }
        if std::env::var_os("LISSOM_VERBOSE").is_none() {
            libbpf_rs::set_print(None);
        }
        let processes = procfs::process::all_processes().context("/proc")?.count();
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
                .context("a map is missing")
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
        // Now that changes are seen: who is there already. Reading to the end is all it takes.
        // Twice, for a thread that is made before its process is found, and that the first pass is
        // past by then.
        let first_look = first_look.context("a program is missing")?;
        for _ in 0..2 {
            Iter::new(&first_look)?
                .read_to_end(&mut Vec::new())
                .context("the threads that run already")?;
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

    /// Discards what was counted until now: while the threads that run already were being found, a
    /// process seemed to have fewer than it has, for as long as this one waited for a CPU.
    fn begin(&mut self) {
        let user = process::euid();
        for slot in 0..self.used() {
            let record = &self.records[slot];
            let (start, pid) =
                (record.start.load(Ordering::Acquire), record.pid.load(Ordering::Relaxed));
            if start == 0 || record.threads.load(Ordering::Relaxed) <= 0 {
                continue;
            }
            let execs = record.execs.load(Ordering::Relaxed);
            let mut known =
                Known { start, history: History::new(), execs, program: program(pid, user) };
            known.history.advance(record, start, self.until, 0);
            self.known.insert(slot as u32, known);
        }
    }

    fn used(&self) -> usize {
        (self.state[0].used.load(Ordering::Relaxed) as usize).min(self.records.len())
    }

    /// What has happened since the last call, or since it was loaded: of this user's processes,
    /// without this one; root's: everybody's. By process number.
    pub fn seen(&mut self) -> Vec<Seen> {
        let now = now();
        let period = now - self.until;
        self.until = now;
        let (user, own) = (process::euid(), std::process::id());
        let used = self.used();
        let mut seen = Vec::new();
        for (slot, record) in self.records.iter().enumerate().take(used) {
            let slot = slot as u32;
            let (start, pid) =
                (record.start.load(Ordering::Acquire), record.pid.load(Ordering::Relaxed));
            let threads = record.threads.load(Ordering::Relaxed);
            // One that has ended, and waits for its parent, is none.
            if start == 0 || threads <= 0 || pid == own {
                self.known.remove(&slot);
                continue;
            }
            let execs = record.execs.load(Ordering::Relaxed);
            if self.known.get(&slot).is_none_or(|k| k.start != start) {
                let new =
                    Known { start, history: History::new(), execs, program: program(pid, user) };
                self.known.insert(slot, new);
            }
            let known = self.known.get_mut(&slot).expect("just made, if it was not there");
            if known.execs != execs {
                known.execs = execs;
                known.program = program(pid, user);
            }
            let Some(activity) = known.history.advance(record, start, now, period) else {
                continue;
            };
            let Some(program) = &mut known.program else { continue };
            if activity.ran() && !program.malleable && program.asked < ASKED {
                program.asked += 1;
                program.malleable = Process::new(pid as i32).is_ok_and(|p| has_runtime(&p));
            }
            seen.push(Seen::new(
                pid,
                program.name.clone(),
                threads as u32,
                program.malleable,
                activity,
            ));
        }
        self.say_lost();
        seen.sort_unstable_by_key(|s| s.id);
        seen
    }

    /// For how long a process has had 0, 1, 2 ... threads, the last entry: as many or more, since
    /// it was started or, if that was earlier, this was loaded. Also of one that has ended and that
    /// its parent has not waited for. None: it is gone.
    #[allow(dead_code, reason = "for programs that print profiles")]
    pub fn profile(&self, process: Id) -> Option<Vec<Duration>> {
        let record = self.records[..self.used()].iter().find(|r| {
            r.pid.load(Ordering::Relaxed) == process && r.start.load(Ordering::Acquire) != 0
        })?;
        let start = record.start.load(Ordering::Acquire);
        let totals = totals(&snapshot(record, start)?, now());
        Some(totals.iter().map(|&t| Duration::from_nanos(t)).collect())
    }

    fn say_lost(&mut self) {
        let lost = self.state[0].lost.load(Ordering::Relaxed);
        if lost > 0 && !self.said_lost {
            self.said_lost = true;
            eprintln!(
                "lissom: {lost} programs or threads are not counted, for lack of memory or because there are too many"
            );
        }
    }
}

/// None: it is gone, or somebody else's. Its runtime may not be mapped yet.
fn program(pid: u32, user: u32) -> Option<Program> {
    let process = Process::new(pid as i32).ok()?;
    let mine = user == 0 || process.uid().ok()? == user;
    mine.then_some(Program { name: process.stat().ok()?.comm, malleable: false, asked: 0 })
}

/// Totals of a process at the end of the last period.
struct History {
    totals: [u64; ENTRIES],
    /// Which entry grew then, and its raw value: while that is the same, nothing has changed.
    open: usize,
    raw: i64,
}

impl History {
    fn new() -> History {
        History { totals: [0; ENTRIES], open: 0, raw: i64::MIN }
    }

    /// The time between this call and the one before. None: the record does not hold still, or is
    /// another process's by now.
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

/// Entries that have not grown are not of this period.
fn vector(length: usize, ns: impl Fn(usize) -> u64) -> ActivityVector {
    let time: Vec<Duration> = (0..length).map(|i| Duration::from_nanos(ns(i))).collect();
    let valid = time.iter().map(|t| !t.is_zero()).collect();
    ActivityVector::new(time, valid)
}

/// The entries at one moment: while a change is made, their sum is not what it has to be. None:
/// always so, or `start` is not the record's any more.
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

/// The entry of as many threads as there are now: minus the time since when.
fn open(raw: &[i64; ENTRIES]) -> usize {
    (0..ENTRIES).min_by_key(|&i| raw[i]).unwrap_or(0)
}

/// What times taken on two CPUs differ by may make an entry smaller than 0.
fn totals(raw: &[i64; ENTRIES], now: u64) -> [u64; ENTRIES] {
    let open = open(raw);
    std::array::from_fn(|i| {
        let time = if i == open { raw[i].wrapping_add(now as i64) } else { raw[i] };
        u64::try_from(time).unwrap_or(0)
    })
}

/// The clock of bpf_ktime_get_ns.
fn now() -> u64 {
    process::monotonic().as_nanos() as u64
}

/// A BPF map's values, read only.
struct Mapping<T> {
    start: NonNull<T>,
    length: usize,
    of: PhantomData<T>,
}

impl<T> Mapping<T> {
    /// T: atomics only, for it changes behind our back.
    fn new(map: &Map, length: usize) -> anyhow::Result<Mapping<T>> {
        let file = File::from(map.as_fd().try_clone_to_owned()?);
        // SAFETY: a new mapping, of a map that is as long; the kernel checks that.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length * size_of::<T>(),
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context("mmap of a BPF map");
        }
        let start = NonNull::new(start.cast()).context("mmap of a BPF map")?;
        Ok(Mapping { start, length, of: PhantomData })
    }
}

impl<T> Deref for Mapping<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: mapped for as long as `self` lives; T are atomics.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: made by mmap, with this length.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length * size_of::<T>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 5_000_000_000;

    /// As the kernel side counts it.
    struct Counted {
        record: Record,
        count: usize,
    }

    impl Counted {
        fn new() -> Counted {
            // SAFETY: zeroes are atomics.
            let record: Record = unsafe { std::mem::zeroed() };
            record.start.store(START as u64, Ordering::Relaxed);
            record.time[0].store(-START, Ordering::Relaxed);
            Counted { record, count: 0 }
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
        let mut counted = Counted::new();
        let mut history = History::new();
        let mut period = |counted: &Counted, from: i64, to: i64| {
            let (now, period) = ((START + to * MS) as u64, ((to - from) * MS) as u64);
            ms(&history
                .advance(&counted.record, START as u64, now, period)
                .expect("it holds still"))
        };
        counted.change(1, START + 10 * MS);
        counted.change(3, START + 30 * MS);
        counted.change(1, START + 60 * MS);
        assert_eq!(period(&counted, 0, 100), [10, 60, 0, 30]);
        // Nothing changes: it goes on as it was.
        assert_eq!(period(&counted, 100, 200), [0, 100]);
        assert_eq!(period(&counted, 200, 250), [0, 50]);
        counted.change(0, START + 260 * MS);
        assert_eq!(period(&counted, 250, 350), [90, 10]);
        assert_eq!(period(&counted, 350, 450), [100]);
        // A change that comes back at once is a change.
        counted.change(2, START + 460 * MS);
        counted.change(0, START + 461 * MS);
        assert_eq!(period(&counted, 450, 550), [99, 0, 1]);
        counted.change(64, START + 560 * MS);
        let last = period(&counted, 550, 650);
        assert_eq!((last.len(), last[0], last[64]), (65, 10, 90));
    }

    #[test]
    fn changes_that_are_half_made() {
        let counted = Counted::new();
        counted.record.time[0].fetch_add(START + 7, Ordering::Relaxed);
        assert!(snapshot(&counted.record, START as u64).is_none());
        counted.record.time[1].fetch_sub(START + 7, Ordering::Relaxed);
        assert_eq!(snapshot(&counted.record, START as u64).map(|raw| open(&raw)), Some(1));
        // Another process's.
        assert!(snapshot(&counted.record, START as u64 + 1).is_none());
    }

    #[test]
    fn clocks_that_differ() {
        // The later change was given the earlier time.
        let mut counted = Counted::new();
        counted.change(1, START + 1_000);
        counted.change(0, START + 900);
        let raw = snapshot(&counted.record, START as u64).expect("it holds still");
        assert_eq!(totals(&raw, (START + 2_000) as u64)[..3], [2_100, 0, 0]);
    }
}
