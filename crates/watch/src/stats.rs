//! The statistics region of `lissom run --stats`, and its output.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::SealFlag;
use serde::Serialize;

use ui::terminal::c_string;
use ui::text::{cut, grouped, plural, wrap};

use os::process;
use os::symbol;
use runtime::abi::{self, COUNTERS, PIN_REASONS, STATES};

/// The memfd into which the processes of the tree write.
pub struct Region {
    fd: OwnedFd,
    map: MmapRaw,
}

impl Region {
    pub fn create() -> io::Result<Region> {
        let fd = process::inherited_memfd("lissom-stats")?;
        nix::unistd::ftruncate(&fd, abi::REGION_BYTES as libc::off_t)?;
        // Prevent processes of the tree from shrinking it while others have it mapped.
        process::seal(&fd, SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW)?;
        let map = MmapOptions::new().len(abi::REGION_BYTES).map_raw(&fd)?;
        let region = Region { fd, map };
        region.get().header.initialise();
        Ok(region)
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub fn get(&self) -> &abi::Region {
        // SAFETY: mapped while self lives, aligned to a page, and made of integers only. Names are
        // plain bytes that their writer sets once; a torn one has a wrong text, not a wrong length.
        unsafe { &*self.map.as_ptr().cast() }
    }
}

#[derive(Serialize)]
pub struct Report {
    version: &'static str,
    command: Command,
    /// Processes without a record, because there were too many.
    processes_lost: u32,
    processes: Vec<Process>,
}

#[derive(Serialize)]
struct Command {
    seconds: f64,
    ended: String,
    /// Reason why the command itself was not managed.
    native: Option<String>,
}

#[derive(Serialize)]
struct Process {
    pid: u32,
    name: String,
    state: &'static str,
    reason: Option<String>,
    slots: u32,
    counters: Names,
    pinned: Names,
    /// Futex and event waits that kept their kernel thread, by reason.
    kept_waits: Names,
    objects: Vec<Object>,
    spin_loops: Vec<SpinLoop>,
}

/// A loop in which threads were found waiting.
#[derive(Clone, Debug, Serialize)]
pub struct SpinLoop {
    pub file: String,
    pub offset: u64,
    pub function: Option<String>,
    /// Offset in the function.
    pub function_offset: u64,
    pub samples: u64,
    /// Number of times that a thread, proven to wait, was parked here.
    pub waits: u64,
    /// Number of times that a thread yielded here without proof that it waits: a hint site.
    pub yields: u64,
    /// Number of spins here that ended within the threshold.
    pub short_spins: u64,
    /// Time that parked threads spent without a CPU, which others used.
    pub waited_us: u64,
    /// Whether one of its instructions is a spin site; null: not tried.
    pub site: Option<bool>,
    pub retired: bool,
}

#[derive(Serialize)]
struct Object {
    name: String,
    patched: u32,
    left: u32,
}

/// (name, text for people, value), in the order of abi.h. JSON has name and value.
#[derive(Clone, Debug)]
pub struct Names(pub Vec<(&'static str, &'static str, u64)>);

impl Serialize for Names {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, _, value)| (name, value)))
    }
}

impl Names {
    fn read(list: &'static [(&'static str, &'static str)], values: &[AtomicU64]) -> Names {
        Names(
            list.iter()
                .zip(values)
                .map(|(&(name, text), v)| (name, text, v.load(Relaxed)))
                .collect(),
        )
    }

    pub fn get(&self, name: &str) -> u64 {
        self.0.iter().find(|e| e.0 == name).map_or(0, |e| e.2)
    }
}

/// Return the counters: the sum of the common ones and those of each slot.
pub fn counters(record: &abi::Record) -> Names {
    let mut names = Names::read(COUNTERS, &record.counter);
    for stripe in &record.stripe {
        for (name, value) in names.0.iter_mut().zip(stripe) {
            name.2 = name.2.wrapping_add(value.load(Relaxed));
        }
    }
    names
}

/// Return the number of pinned threads, by reason.
pub fn pinned(record: &abi::Record) -> Names {
    Names::read(PIN_REASONS, &record.pinned)
}

/// Return the loops with their functions. The loop in which threads waited longest comes first.
fn spin_loops(record: &abi::Record) -> Vec<SpinLoop> {
    let mut loops = loops(record);
    for l in &mut loops {
        let (function, offset) = symbol::function_at(Path::new(&l.file), l.offset).unzip();
        (l.function, l.function_offset) = (function, offset.unwrap_or(0));
    }
    loops
}

/// Return the loops without functions, whose names require reading files. The loop in which threads
/// waited longest comes first.
pub fn loops(record: &abi::Record) -> Vec<SpinLoop> {
    let tsc_per_us = u64::from(record.tsc_per_us.load(Relaxed)).max(1);
    let n = (record.loops.load(Relaxed) as usize).min(abi::MAX_LOOPS);
    let mut loops: Vec<SpinLoop> = record.loop_[..n]
        .iter()
        .map(|l| SpinLoop {
            file: c_string(&l.path),
            offset: l.offset.load(Relaxed),
            function: None,
            function_offset: 0,
            samples: l.samples.load(Relaxed),
            waits: l.waits.load(Relaxed),
            yields: l.yields.load(Relaxed),
            short_spins: l.short_spins.load(Relaxed),
            waited_us: l.waited_tsc.load(Relaxed) / tsc_per_us,
            site: [None, Some(true), Some(false)]
                .get(l.site.load(Relaxed) as usize)
                .copied()
                .flatten(),
            retired: l.retired.load(Relaxed) != 0,
        })
        .collect();
    loops.sort_by_key(|l| std::cmp::Reverse((l.waited_us, l.samples)));
    loops
}

impl Process {
    fn read(record: &abi::Record) -> Process {
        let load = |value: &AtomicU32| value.load(Relaxed);
        let reason = c_string(&record.reason);
        let objects = record.object.iter().take(load(&record.objects) as usize).map(|o| Object {
            name: c_string(&o.name),
            patched: load(&o.patched),
            left: load(&o.left),
        });
        Process {
            pid: load(&record.pid),
            name: c_string(&record.comm),
            state: STATES.get(load(&record.state) as usize).map_or("unknown", |s| s.0),
            reason: (!reason.is_empty()).then_some(reason),
            slots: load(&record.slots),
            counters: counters(record),
            pinned: pinned(record),
            kept_waits: Names::read(PIN_REASONS, &record.kept_waits),
            objects: objects.collect(),
            spin_loops: spin_loops(record),
        }
    }

    /// Return whether there is something to report: several threads, waits or switches.
    fn did_something(&self) -> bool {
        let c = |name| self.counters.get(name);
        c("threads_peak") > 1
            || ["blocks", "switches_user", "switches_kernel"].into_iter().any(|n| c(n) > 0)
    }
}

impl Report {
    pub fn new(region: &Region, native: Option<String>, ran: Duration, ended: String) -> Report {
        let region = region.get();
        let claimed = region.header.claimed.load(Relaxed);
        let kept = (claimed as usize).min(abi::MAX_RECORDS);
        // Skip records of processes that died before they wrote their number.
        let mut processes: Vec<Process> =
            region.record[..kept].iter().map(Process::read).filter(|p| p.pid != 0).collect();
        processes.sort_by_key(|p| std::cmp::Reverse(p.counters.get("threads_peak")));
        Report {
            version: env!("CARGO_PKG_VERSION"),
            command: Command { seconds: (ran.as_secs_f64() * 1e3).round() / 1e3, ended, native },
            processes_lost: claimed - kept as u32,
            processes,
        }
    }

    pub fn table(&self) -> String {
        let mut lines =
            vec![format!("lissom: {:.2} s, {}", self.command.seconds, self.command.ended)];
        if let Some(reason) = &self.command.native {
            lines.extend(wrap(&format!("the command ran natively: {reason}"), "  ", 2));
        }
        let (busy, quiet): (Vec<_>, Vec<_>) =
            self.processes.iter().partition(|p| p.did_something());
        for process in &busy {
            process_lines(process, &mut lines);
        }
        if !quiet.is_empty() {
            lines.extend(wrap(&quiet_summary(&quiet), "", 2));
        }
        if self.processes.is_empty() && self.command.native.is_none() {
            lines.push("no process has reported".into());
        }
        if self.processes_lost > 0 {
            lines.push(format!(
                "{}: only the first {} are recorded",
                counted(self.processes_lost.into(), "more process", "es"),
                abi::MAX_RECORDS
            ));
        }
        if let Some(verdict) = verdict(&busy) {
            lines.extend(wrap(&verdict, "", 2));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Sum up what lissom did, from counters of all processes. None: nothing that they prove.
fn verdict(busy: &[&Process]) -> Option<String> {
    let sum = |name| busy.iter().fold(0u64, |sum, p| sum.saturating_add(p.counters.get(name)));
    let waited_us = busy
        .iter()
        .flat_map(|p| &p.spin_loops)
        .fold(0u64, |sum, l| sum.saturating_add(l.waited_us));
    let mut claims = Vec::new();
    let (switches, wakes) = (sum("switches_user"), sum("wakes_avoided"));
    if switches > 0 {
        claims.push(format!("{} without the kernel", counted(switches, "thread switch", "es")));
    }
    if wakes > 0 {
        claims.push(format!("{} avoided", counted(wakes, "futex wake system call", "s")));
    }
    // 0.1 s is what the line can show.
    if waited_us >= 50_000 {
        claims.push(format!("{:.1} s of busy-waiting without a CPU", waited_us as f64 / 1e6));
    }
    let of = match busy {
        [p] => format!(
            "{} on {}",
            plural(p.counters.get("threads_peak"), "thread"),
            plural(p.slots.into(), "slot")
        ),
        _ => counted(busy.len() as u64, "process", "es"),
    };
    (!claims.is_empty()).then(|| format!("in short: {of}: {}", claims.join(", ")))
}

/// Format a count with its noun, and the ending of the plural.
fn counted(n: u64, noun: &str, ending: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { ending })
}

fn process_lines(process: &Process, lines: &mut Vec<String>) {
    let c = |name: &str| process.counters.get(name);
    let state =
        if process.state == "active" { String::new() } else { format!(", {}", process.state) };
    lines.push(cut(&format!(
        "{} [{}]: {} (at most {} at a time) on {}{state}",
        process.name,
        process.pid,
        plural(c("threads"), "thread"),
        c("threads_peak"),
        plural(u64::from(process.slots), "slot"),
    )));
    if let Some(reason) = &process.reason {
        lines.extend(wrap(reason, "  ", 2));
    }
    // These counters are part of other lines.
    let elsewhere = ["threads", "threads_peak", "sites_patched", "sites_left"];
    for (name, text, value) in &process.counters.0 {
        if *value > 0 && !elsewhere.contains(name) {
            lines.extend(wrap(text, &format!("{:>16}  ", grouped(*value)), 18));
        }
    }
    pin_lines(process, lines);
    for l in &process.spin_loops {
        lines.extend(wrap(&spin_loop_text(l), "  spin loop: ", 4));
    }
    let objects: Vec<String> = process
        .objects
        .iter()
        .map(|o| match o.left {
            0 => format!("{} {}", o.name, o.patched),
            left => format!("{} {} ({left} left alone)", o.name, o.patched),
        })
        .collect();
    if !objects.is_empty() {
        lines.extend(wrap(&format!("sites patched: {}", objects.join(", ")), "  ", 4));
    }
}

/// Format pinned threads, and waits that kept their kernel thread, by reason.
fn pin_lines(process: &Process, lines: &mut Vec<String>) {
    let waits = process.counters.get("blocks");
    let share = |kept: u64| match kept {
        0 => String::new(),
        kept => format!(" ({} of waits)", percent(kept, waits)),
    };
    let mut line = |value: u64, text: String| {
        lines.extend(wrap(&text, &format!("{:>16}  ", grouped(value)), 18));
    };
    let total = process.kept_waits.0.iter().fold(0u64, |sum, kept| sum.saturating_add(kept.2));
    if total > 0 {
        line(total, format!("waits that kept their kernel thread{}", share(total)));
    }
    for ((_, text, threads), (_, _, kept)) in process.pinned.0.iter().zip(&process.kept_waits.0) {
        match (threads, kept) {
            (0, 0) => {}
            (0, kept) => line(*kept, format!("of these: {text}{}", share(*kept))),
            (threads, kept) => line(*threads, format!("threads pinned: {text}{}", share(*kept))),
        }
    }
}

/// Format the share of `part` in `whole`, which may have been counted a little earlier.
fn percent(part: u64, whole: u64) -> String {
    let share = 100.0 * part.min(whole) as f64 / whole.max(1) as f64;
    if share > 0.0 && share < 1.0 { "less than 1 %".into() } else { format!("{share:.0} %") }
}

fn spin_loop_text(l: &SpinLoop) -> String {
    let file =
        Path::new(&l.file).file_name().map_or(l.file.clone(), |n| n.to_string_lossy().into_owned());
    let place = match &l.function {
        Some(function) => format!("{file} {function}+{:#x}", l.function_offset),
        None => format!("{file}+{:#x}", l.offset),
    };
    let hits = l.waits + l.yields + l.short_spins;
    if hits == 0 {
        let why =
            if l.site != Some(false) { "" } else { ", no instruction of it can be a spin site" };
        return format!("{place}: found in {}{why}", plural(l.samples, "scan"));
    }
    let mut parts = Vec::new();
    if l.waits > 0 {
        parts.push(format!(
            "{}, {} us each, {:.1} s in all without a CPU",
            counted(l.waits, "wait", "s"),
            grouped(l.waited_us / l.waits),
            l.waited_us as f64 / 1e6
        ));
    }
    if l.yields > 0 {
        parts.push(format!("{} at a hint", counted(l.yields, "yield", "s")));
    }
    parts.push(format!("{} of the spins ended within the threshold", percent(l.short_spins, hits)));
    if l.retired {
        parts.push("retired because waits were rare".into());
    }
    format!("{place}: {}", parts.join("; "))
}

/// Count processes with nothing to report, by name.
fn quiet_summary(quiet: &[&Process]) -> String {
    let mut names: Vec<(String, usize)> = Vec::new();
    for process in quiet {
        let name = match (&process.reason, process.state) {
            (Some(reason), _) => format!("{} ({reason})", process.name),
            (None, "active") => process.name.clone(),
            (None, state) => format!("{} ({state})", process.name),
        };
        match names.iter_mut().find(|n| n.0 == name) {
            Some(entry) => entry.1 += 1,
            None => names.push((name, 1)),
        }
    }
    let names: Vec<String> = names
        .into_iter()
        .map(|(name, n)| if n > 1 { format!("{n} x {name}") } else { name })
        .collect();
    format!(
        "{} without threads to manage: {}",
        counted(quiet.len() as u64, "process", "es"),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use ui::text::WIDTH;

    use super::*;

    fn store(record: &abi::Record, counter: &str, value: u64) {
        let index = COUNTERS.iter().position(|c| c.0 == counter).expect("a counter of abi.h");
        record.counter[index].store(value, Relaxed);
    }

    #[test]
    fn report() {
        let region = Region::create().expect("a memfd");
        let map = region.get();
        map.header.claimed.store(300, Relaxed);
        for (i, record) in map.record.iter().take(3).enumerate() {
            record.pid.store(100 + i as u32, Relaxed);
            record.state.store(1, Relaxed);
            record.slots.store(2, Relaxed);
            store(record, "threads", 1);
            store(record, "threads_peak", 1);
        }
        store(&map.record[1], "threads", 64);
        store(&map.record[1], "threads_peak", 33);
        store(&map.record[1], "blocks", 2_500_000);
        store(&map.record[1], "blocks_kernel", 12);
        map.record[1].pinned[1].store(3, Relaxed);
        let report = Report::new(&region, None, Duration::from_millis(2345), "exit code 0".into());
        assert_eq!(report.processes_lost, 300 - abi::MAX_RECORDS as u32);
        assert_eq!(report.processes[0].pid, 101);
        let table = report.table();
        assert!(table.lines().all(|l| l.chars().count() <= WIDTH), "{table}");
        assert!(table.contains("2,500,000  waits that blocked in user space"), "{table}");
        assert!(!table.contains("in short"), "nothing is proven: {table}");
        assert!(table.contains("2 processes without threads to manage"), "{table}");
        let json: serde_json::Value =
            serde_json::from_str(&ui::output::json(&report)).expect("valid JSON");
        assert_eq!(json["processes"][0]["counters"]["threads_peak"], 33);
        assert_eq!(json["processes"][0]["pinned"]["signal_mask"], 3);
    }

    #[test]
    fn verdicts() {
        let region = Region::create().expect("a memfd");
        let map = region.get();
        map.header.claimed.store(2, Relaxed);
        let record = &map.record[0];
        record.pid.store(100, Relaxed);
        record.slots.store(1, Relaxed);
        store(record, "threads_peak", 32);
        store(record, "switches_user", 80_783);
        let last = || {
            let report = Report::new(&region, None, Duration::from_secs(1), "exit code 0".into());
            let words = report.table().split_whitespace().collect::<Vec<_>>().join(" ");
            words.split_once("in short: ").map(|(_, verdict)| verdict.to_string())
        };
        assert_eq!(
            last().as_deref(),
            Some("32 threads on 1 slot: 80,783 thread switches without the kernel")
        );
        store(record, "switches_user", 0);
        record.loops.store(1, Relaxed);
        record.tsc_per_us.store(1000, Relaxed);
        record.loop_[0].waited_tsc.store(1_900_000_000, Relaxed);
        assert_eq!(
            last().as_deref(),
            Some("32 threads on 1 slot: 1.9 s of busy-waiting without a CPU")
        );
        let other = &map.record[1];
        other.pid.store(101, Relaxed);
        store(other, "threads_peak", 2);
        store(other, "wakes_avoided", 1);
        assert_eq!(
            last().as_deref(),
            Some(
                "2 processes: 1 futex wake system call avoided, 1.9 s of busy-waiting without a CPU"
            )
        );
        record.loop_[0].waited_tsc.store(0, Relaxed);
        assert_eq!(last().as_deref(), Some("2 processes: 1 futex wake system call avoided"));
    }
}
