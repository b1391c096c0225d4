//! The hottest places of a program, with names.

use serde::Serialize;

use super::program::Program;
use super::told::Lock;
use crate::place::{Place, Places};

/// Where threads of a program have waited in loops.
#[derive(Clone, Debug, Serialize)]
pub struct SpinSite {
    pub place: String,
    /// Of the samples that were judged, in percent: CPU time that was lost here. None: seen by the
    /// runtime only.
    pub percent: Option<f64>,
    /// Times that a thread gave way here, by the runtime: these cost no CPU time.
    pub gave_way: Option<u64>,
    pub waited_ms: Option<u64>,
}

/// A futex on which threads have waited.
#[derive(Clone, Debug, Serialize)]
pub struct LockProfile {
    /// A variable of an object; else its address.
    pub name: String,
    pub address: u64,
    /// About as many, since the program began; under lissom only.
    pub waits: Option<u64>,
    /// Threads that wait there at a time, on average; of programs that are not under lissom.
    pub threads: Option<f64>,
    /// Who waited there, once.
    pub waiter: Option<String>,
}

/// Those where most time is lost first; at most `n` seen by samples, and as many by the runtime.
pub fn spin_sites(program: &Program, places: &mut Places, n: usize) -> Vec<SpinSite> {
    let mut sampled: Vec<(String, u32)> = Vec::new();
    for (&ip, &count) in &program.spinning.loops {
        // A function that waits may be there more than once: inlined, say.
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
    let told = program.loops.iter().filter(|l| l.waits + l.yields > 0).take(n).map(|l| SpinSite {
        place: places.in_file(program.pid, &l.file, l.offset).map_or(l.file.clone(), of_function),
        percent: None,
        gave_way: Some(l.waits + l.yields),
        waited_ms: Some(l.waited_us / 1000),
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

/// Those with the most waits first.
pub fn lock_profiles(program: &Program, places: &mut Places, n: usize) -> Vec<LockProfile> {
    let name = |places: &mut Places, lock: &Lock| match places.of_data(program.pid, lock.address) {
        Some(Place { symbol: Some(symbol), object, behind: 0, .. }) => format!("{symbol} {object}"),
        Some(place) => place.text(),
        None => format!("{:#x}", lock.address),
    };
    program
        .locks
        .iter()
        .take(n)
        .map(|lock| LockProfile {
            name: name(places, lock),
            address: lock.address,
            waits: program.looks_at_locks.is_none().then_some(lock.waits),
            threads: program
                .looks_at_locks
                .map(|looks| lock.waits as f64 / f64::from(looks.max(1))),
            waiter: waiter(program.pid, lock, places),
        })
        .collect()
}

/// The innermost caller that is not part of what waits: the first address on the stack that is that
/// of an instruction behind a call, in another object. Else, where the wait began.
fn waiter(pid: u32, lock: &Lock, places: &mut Places) -> Option<String> {
    let (&began, stack) = lock.code.split_first()?;
    let began = places.of(pid, began).cloned();
    let is_other = |place: &&Place| began.as_ref().is_none_or(|b| b.object != place.object);
    let caller =
        stack.iter().find_map(|&at| places.of_caller(pid, at).filter(is_other).map(of_function));
    caller.or_else(|| began.as_ref().map(of_function))
}
