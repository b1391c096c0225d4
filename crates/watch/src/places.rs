//! The hottest places of a program, with names.

use serde::Serialize;

use super::program::Program;
use super::told::Lock;
use os::place::{Place, Places};

/// A loop in which threads of a program waited.
#[derive(Clone, Debug, Serialize)]
pub struct SpinSite {
    pub place: String,
    /// CPU time lost here, in percent of the program's CPU time since the watch began. None: only
    /// the runtime knows the loop.
    pub percent: Option<f64>,
    /// Times that a thread yielded here, counted by the runtime. These cost no CPU time.
    pub gave_way: Option<u64>,
    pub waited_ms: Option<u64>,
}

/// A futex on which threads have waited.
#[derive(Clone, Debug, Serialize)]
pub struct LockProfile {
    /// Name of a variable and its object, or the address.
    pub name: String,
    pub address: u64,
    /// Approximate number since the program began. Only known under lissom.
    pub waits: Option<u64>,
    /// Average number of threads waiting here. Only known outside lissom.
    pub threads: Option<f64>,
    /// A function in which a thread waited here.
    pub waiter: Option<String>,
}

/// Return the loops that cost the most time first: at most `n` from samples, and `n` from the
/// runtime.
pub fn spin_sites(program: &Program, places: &mut Places, n: usize) -> Vec<SpinSite> {
    let mut sampled: Vec<(String, f64)> = Vec::new();
    for (ip, share) in program.spinning.loops() {
        // A function that waits may have several loops, for example if it is inlined.
        let place = places.of(program.pid, ip).map_or(format!("{ip:#x}"), of_function);
        match sampled.iter_mut().find(|s| s.0 == place) {
            Some(site) => site.1 += share,
            None => sampled.push((place, share)),
        }
    }
    sampled.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let sampled = sampled.into_iter().take(n).map(|(place, share)| SpinSite {
        place,
        percent: Some(share * program.user_share * 100.0),
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

/// Return the first `n` locks of the program: those with the most waits.
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

/// Return the innermost caller outside the object that waits: the first address on the stack that
/// follows a call instruction in another object. If there is none, return where the wait began.
fn waiter(pid: u32, lock: &Lock, places: &mut Places) -> Option<String> {
    let (&began, stack) = lock.code.split_first()?;
    let began = places.of(pid, began).cloned();
    let is_other = |place: &&Place| began.as_ref().is_none_or(|b| b.object != place.object);
    let caller =
        stack.iter().find_map(|&at| places.of_caller(pid, at).filter(is_other).map(of_function));
    caller.or_else(|| began.as_ref().map(of_function))
}
