//! Test the rule of bpf/scx_branches.h with made-up records and counts, and the messages about a
//! trial.

use super::*;

/// `struct branch`
#[repr(C)]
#[derive(Clone, Copy)]
struct Branch {
    from: u64,
    to: u64,
    flags: u64,
}

/// `struct branch_scan`
#[repr(C)]
#[derive(Clone, Copy)]
struct Look {
    thread: u64,
    switches: u64,
    l1d_misses: u64,
    dtlb_misses: u64,
    blind_ns: u64,
}

unsafe extern "C" {
    fn branches_interval(before: *const Look, now: *const Look) -> i32;
    fn branches_loop(branches: *const Branch, count: u32, ip: u64) -> u64;
    fn branches_paper_interval(before: *const Look, now: *const Look) -> i32;
    fn branches_paper_loop(interval: i32, branches: *const Branch, count: u32, ip: u64) -> u64;
}

const FROM: u64 = 0x40_1010;
const TO: u64 = 0x40_1000;
/// `MOST_BRANCHES`
const MOST: usize = 32;

fn same(count: usize) -> Vec<Branch> {
    vec![Branch { from: FROM, to: TO, flags: 2 }; count]
}

/// Calls the rule with a full array: the entries from `count` on are from an earlier scan.
fn loop_of(branches: &[Branch], count: usize, ip: u64) -> u64 {
    let mut all = branches.to_vec();
    all.resize(MOST, Branch { from: 1, to: 2, flags: 0 });
    // SAFETY: the function reads at most MOST records.
    unsafe { branches_loop(all.as_ptr(), count as u32, ip) }
}

fn loop_in(branches: &[Branch], ip: u64) -> u64 {
    loop_of(branches, branches.len(), ip)
}

/// Equal branches, except one.
fn but(at: usize, other: Branch) -> Vec<Branch> {
    let mut branches = same(16);
    branches[at] = other;
    branches
}

#[test]
fn the_same_branch_backwards() {
    for count in [16, 17, 32] {
        for ip in [TO, TO + 7, FROM] {
            assert_eq!(loop_in(&same(count), ip), FROM, "{count} {ip:#x}");
        }
    }
}

#[test]
fn fewer_records_tell_nothing() {
    for count in [0, 1, 4, 8, 15] {
        assert_eq!(loop_in(&same(count), TO), 0, "{count}");
        // Nor do records that an earlier scan left.
        assert_eq!(loop_of(&same(32), count, TO), 0, "{count}");
    }
}

#[test]
fn one_that_differs() {
    let first = same(1)[0];
    for at in 0..16 {
        assert_eq!(loop_in(&but(at, Branch { from: FROM + 2, ..first }), TO), 0, "{at}");
        assert_eq!(loop_in(&but(at, Branch { to: TO + 2, ..first }), TO), 0, "{at}");
    }
    // All records count, even if the CPU has more than the paper's 16.
    let mut more = same(32);
    more[31].to += 1;
    assert_eq!(loop_in(&more, TO), 0);
    assert_eq!(loop_of(&more, 31, TO), FROM);
}

#[test]
fn forwards_or_to_itself() {
    let forwards = vec![Branch { from: TO, to: FROM, flags: 0 }; 16];
    let itself = vec![Branch { from: TO, to: TO, flags: 0 }; 16];
    assert_eq!(loop_in(&forwards, TO), 0);
    assert_eq!(loop_in(&itself, TO), 0);
}

#[test]
fn flags_are_not_looked_at() {
    let mut branches = same(16);
    // Bits for mispredicted, predicted, a number of cycles, and a branch type.
    for (i, branch) in branches.iter_mut().enumerate() {
        branch.flags = [1, 2, 0x1230, 1 << 20][i % 4];
    }
    assert_eq!(loop_in(&branches, TO), FROM);
}

#[test]
fn of_the_kernel() {
    let kernel = 0xffff_ffff_8100_0000;
    let all = vec![Branch { from: kernel + 16, to: kernel, flags: 0 }; 16];
    assert_eq!(loop_in(&all, kernel + 8), 0);
    // The return from an interrupt, among the branches of a loop.
    assert_eq!(loop_in(&but(3, Branch { from: kernel, to: TO, flags: 0 }), TO), 0);
    assert_eq!(loop_in(&but(0, Branch { from: kernel, to: TO, flags: 0 }), TO), 0);
}

/// The instruction pointer is outside the loop: the records are from another thread, or the thread
/// has just left the loop.
#[test]
fn of_another_thread() {
    for ip in [0, TO - 1, FROM + 1, 0x7fff_0000_0000, u64::MAX] {
        assert_eq!(loop_in(&same(16), ip), 0, "{ip:#x}");
    }
}

#[test]
fn intervals() {
    const UNKNOWN: i32 = 0;
    const MISSED: i32 = 1;
    const QUIET: i32 = 2;
    // SAFETY: the function only reads both.
    let between =
        |before: Look, now: Look| unsafe { branches_interval(&raw const before, &raw const now) };
    let look = Look { thread: 7, switches: 3, l1d_misses: 100, dtlb_misses: 10, blind_ns: 5 };
    assert_eq!(between(look, look), QUIET);
    assert_eq!(between(look, Look { l1d_misses: 101, ..look }), MISSED);
    assert_eq!(between(look, Look { dtlb_misses: 11, ..look }), MISSED);
    // Another thread runs, the thread was off the CPU meanwhile, or another user had the counters.
    assert_eq!(between(look, Look { thread: 8, ..look }), UNKNOWN);
    assert_eq!(between(look, Look { switches: 4, ..look }), UNKNOWN);
    assert_eq!(between(look, Look { blind_ns: 6, ..look }), UNKNOWN);
    assert_eq!(between(look, Look { switches: 4, l1d_misses: 101, ..look }), UNKNOWN);
    // Counts that could not be read, at the first, the second, or both scans.
    let unread = Look { thread: 0, l1d_misses: 0, dtlb_misses: 0, ..look };
    assert_eq!(between(unread, look), UNKNOWN);
    assert_eq!(between(look, unread), UNKNOWN);
    assert_eq!(between(unread, unread), UNKNOWN);
}

/// Apply the paper's whole rule. Returns the loop in which it takes a thread to spin, or 0.
fn paper(before: Look, now: Look, branches: &[Branch], ip: u64) -> u64 {
    let mut all = branches.to_vec();
    all.resize(MOST, Branch { from: 1, to: 2, flags: 0 });
    // SAFETY: the functions only read both scans, and at most MOST records.
    unsafe {
        let interval = branches_paper_interval(&raw const before, &raw const now);
        branches_paper_loop(interval, all.as_ptr(), branches.len() as u32, ip)
    }
}

const LOOK: Look = Look { thread: 7, switches: 3, l1d_misses: 100, dtlb_misses: 10, blind_ns: 5 };

#[test]
fn the_paper_takes_a_loop_without_misses_to_spin() {
    assert_eq!(paper(LOOK, LOOK, &same(16), TO), FROM);
    // The interval is the CPU's: the CPU may have switched threads meanwhile, and another one may
    // spin now.
    assert_eq!(paper(LOOK, Look { switches: 4, ..LOOK }, &same(16), FROM), FROM);
    assert_eq!(paper(LOOK, Look { thread: 8, ..LOOK }, &same(16), TO + 7), FROM);
    // Only the last 16 records count.
    let mut older = same(32);
    older[16].to += 1;
    assert_eq!(paper(LOOK, LOOK, &older, TO), FROM);
    older[15].to += 1;
    assert_eq!(paper(LOOK, LOOK, &older, TO), 0);
}

#[test]
fn the_paper_takes_nobody_else_to_spin() {
    // A miss of either kind, by any thread.
    for missed in [Look { l1d_misses: 101, ..LOOK }, Look { dtlb_misses: 11, ..LOOK }] {
        assert_eq!(paper(LOOK, missed, &same(16), TO), 0);
        assert_eq!(paper(LOOK, Look { switches: 4, ..missed }, &same(16), TO), 0);
    }
    // Counters that could not be read, or that another user had for a while.
    let unread = Look { thread: 0, ..LOOK };
    assert_eq!(paper(unread, LOOK, &same(16), TO), 0);
    assert_eq!(paper(LOOK, unread, &same(16), TO), 0);
    assert_eq!(paper(LOOK, Look { blind_ns: 6, ..LOOK }, &same(16), TO), 0);
    // Too few records, several branches, forward branches, and an instruction outside the loop.
    for count in [0, 1, 8, 15] {
        assert_eq!(paper(LOOK, LOOK, &same(count), TO), 0, "{count}");
    }
    let first = same(1)[0];
    for at in 0..16 {
        assert_eq!(paper(LOOK, LOOK, &but(at, Branch { to: TO + 2, ..first }), TO), 0, "{at}");
    }
    let forwards = vec![Branch { from: TO, to: FROM, flags: 0 }; 16];
    assert_eq!(paper(LOOK, LOOK, &forwards, TO), 0);
    assert_eq!(paper(LOOK, LOOK, &same(16), FROM + 1), 0);
}

#[test]
fn trials() {
    let seen = Trial { looks: 9, counted: 9, quiet: 5, full: 9, loops: 1, error: 0 };
    assert_eq!(seen.failure(), None);
    let why = |trial: Trial| trial.failure().unwrap_or_default();
    let none = Trial { loops: 0, ..seen };
    assert_eq!(why(none), "the records do not show a test loop");
    assert_eq!(why(Trial { quiet: 0, ..none }), "misses in a test loop without loads");
    assert_eq!(why(Trial { quiet: 0, counted: 0, ..none }), "cannot count the misses");
    assert_eq!(why(Trial { full: 0, ..none }), "fewer than 16 records");
    assert_eq!(
        why(Trial { full: 0, error: -2_i64 as u64, ..none }),
        "cannot read the records (error -2)"
    );
    assert_eq!(why(Trial::default()), "the test loop was not scanned");
}

#[test]
fn events_as_on_any_machine() {
    // The events may or may not open here: each name has to be in one of the two lists.
    let hardware = Hardware::probe();
    assert_eq!(hardware.names(true).len() + hardware.names(false).len(), COUNTERS);
    let all = Hardware { branches: true, l1d_misses: true, dtlb_misses: true };
    assert_eq!(all.names(true), ["last-branch records", "L1D misses", "dTLB misses"]);
    // Where perf events are permitted, the substitutes of Source::Software open as a group.
    let [first, others @ ..] = Source::Software.events();
    let Ok(mut leader) = first.build() else { return };
    for event in others {
        event.build_with_group(&mut leader).expect("the first one opened");
    }
}
