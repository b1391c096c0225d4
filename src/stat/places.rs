//! The hottest places of a program, with names.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::Serialize;

use super::program::Program;
use super::told::{Lock, Loop};
use crate::place::{Place, Places, call_ends_at};
use crate::symbol;
use crate::terminal::plain;

/// Where threads of a program have waited in loops.
#[derive(Clone, Debug, Serialize)]
pub struct SpinSite {
    pub place: String,
    /// Of the samples that were judged, in percent: CPU time that was lost here. None: seen by the runtime only.
    pub percent: Option<f64>,
    /// Times that a thread gave way here, by the runtime: these cost no CPU time.
    pub gave_way: Option<u64>,
    pub waited_ms: Option<u64>,
}

/// A futex on which threads have waited.
#[derive(Clone, Debug, Serialize)]
pub struct HotLock {
    /// A variable of an object; else its address.
    pub name: String,
    pub address: u64,
    /// About as many, since the program began.
    pub waits: u64,
    /// Who waited there, once.
    pub waiter: Option<String>,
}

/// Those where most time is lost first; at most `n` seen by samples, and as many by the runtime.
pub fn spin_sites(program: &Program, places: &mut Places, n: usize) -> Vec<SpinSite> {
    let mut sampled: Vec<(String, u32)> = Vec::new();
    for (&ip, &count) in &program.spinning.places {
        // A loop has several instructions: the function tells them apart well enough.
        let place = places.of(program.pid, ip).map_or(format!("{ip:#x}"), of_function);
        match sampled.iter_mut().find(|s| s.0 == place) {
            Some(site) => site.1 += count,
            None => sampled.push((place, count)),
        }
    }
    sampled.sort_by_key(|s| (std::cmp::Reverse(s.1), s.0.clone()));
    let judged = f64::from(program.spinning.judged.max(1));
    let sampled = sampled.into_iter().take(n).map(|(place, count)| SpinSite {
        place,
        percent: Some(f64::from(count) / judged * 100.0),
        gave_way: None,
        waited_ms: None,
    });
    let told = program.loops.iter().filter(|l| l.waits > 0).take(n).map(|l| SpinSite {
        place: of_loop(program.pid, l),
        percent: None,
        gave_way: Some(l.waits),
        waited_ms: Some(l.waited.as_millis() as u64),
    });
    sampled.chain(told).collect()
}

fn of_function(place: &Place) -> String {
    match (&place.symbol, &place.line) {
        (Some(symbol), Some(line)) => format!("{symbol} {} {line}", place.object),
        (Some(symbol), None) => format!("{symbol} {}", place.object),
        (None, _) => place.text(),
    }
}

fn of_loop(pid: u32, l: &Loop) -> String {
    let file = crate::place::inside(pid, Path::new(&l.file));
    let name = Path::new(&l.file).file_name().map_or(l.file.clone(), |n| plain(&n.to_string_lossy()));
    match symbol::function_at(&file, l.offset) {
        Some((function, _)) => format!("{function} {name}"),
        None => format!("{name}+{:#x}", l.offset),
    }
}

/// Those with the most waits first.
pub fn hot_locks(program: &Program, places: &mut Places, n: usize) -> Vec<HotLock> {
    let name = |places: &mut Places, lock: &Lock| match places.of_data(program.pid, lock.address) {
        Some(Place { symbol: Some(symbol), object, behind: 0, .. }) => format!("{symbol} {object}"),
        Some(place) => place.text(),
        None => format!("{:#x}", lock.address),
    };
    program
        .locks
        .iter()
        .take(n)
        .map(|lock| HotLock {
            name: name(places, lock),
            address: lock.address,
            waits: lock.waits,
            waiter: waiter(program.pid, lock, places),
        })
        .collect()
}

/// The innermost caller that is not part of what waits: the first address on the stack that is that of an instruction behind a call. Else, where the wait began.
fn waiter(pid: u32, lock: &Lock, places: &mut Places) -> Option<String> {
    let callers = lock.code.iter().skip(1).filter(|&&at| is_behind_call(pid, at));
    let mut candidates = callers.map(|at| at - 1).chain(lock.code.first().copied());
    candidates.find_map(|at| places.of(pid, at).map(of_function))
}

fn is_behind_call(pid: u32, address: u64) -> bool {
    let Some((file, offset)) = crate::place::file_at(pid, address) else { return false };
    let mut before = [0; 7];
    let read = File::open(file).and_then(|f| f.read_exact_at(&mut before, offset.saturating_sub(7)));
    read.is_ok() && call_ends_at(&before)
}
