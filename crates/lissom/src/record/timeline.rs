//! From events of threads to spans of time.

use std::collections::HashMap;

use watch::trace::{Event, Name, Wait, Waker, What, calls};

/// Number of threads whose names are kept, also after their end.
const NAMES: usize = 65_536;

/// The part of a trace that one or two events complete.
pub enum Part {
    Span(Span),
    /// One thread woke another, which then got a CPU.
    Arrow {
        from: (u32, u64),
        to: (u32, u64),
    },
    /// The thread is new, or has a new name.
    Named(u32),
}

/// Time for which a thread had one state. In ns of CLOCK_MONOTONIC.
pub struct Span {
    pub thread: u32,
    pub from: u64,
    pub to: u64,
    pub state: State,
    /// The recording ended first.
    pub unfinished: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Running {
        cpu: u32,
    },
    /// It ran, or waited for a CPU: unknown which.
    Active,
    /// It waited for a CPU.
    Ready,
    Waiting {
        wait: Wait,
        waker: Option<Waker>,
    },
}

struct Thread {
    since: u64,
    /// None: unknown so far.
    state: Option<State>,
    /// The thread that woke it, and when, until it gets a CPU.
    woken: Option<(u32, u64)>,
}

/// The threads of one process.
pub struct Timeline {
    pid: u32,
    threads: HashMap<u32, Thread>,
    names: HashMap<u32, String>,
    /// Thread numbers in the process's memory are those of the kernel.
    has_our_numbers: bool,
    /// Time of the last event.
    last: u64,
}

impl Timeline {
    pub fn new(pid: u32, has_our_numbers: bool) -> Timeline {
        Timeline { pid, threads: HashMap::new(), names: HashMap::new(), has_our_numbers, last: 0 }
    }

    /// Take the next event. Calls `take` with each part that it completes.
    pub fn add(&mut self, event: &Event, take: &mut impl FnMut(&Timeline, Part)) {
        let &Event { time, thread: number, what } = event;
        if what == What::Lost {
            // All states are unknown until their next event.
            return self.complete(self.last, false, take);
        }
        self.last = time;
        let name = match what {
            What::Runs { name, .. } => Some(text(&name)),
            _ if self.names.contains_key(&number) => None,
            _ => Some(os_name(self.pid, number)),
        };
        if self.rename(number, name) {
            take(self, Part::Named(number));
        }
        let fresh = Thread { since: time, state: None, woken: None };
        let thread = self.threads.entry(number).or_insert(fresh);
        let (before, since) = (thread.state, thread.since);
        let mut ended = before;
        let next = match what {
            What::Runs { cpu, .. } => Some(State::Running { cpu }),
            What::Active => Some(State::Active),
            What::Ready => Some(State::Ready),
            What::Waits(wait) => Some(State::Waiting { wait, waker: None }),
            What::Ends | What::Lost => None,
            What::Woken(waker) => {
                let wait = match before {
                    Some(State::Waiting { wait, .. }) => Some(wait),
                    None => None,
                    // It has not gone to sleep yet.
                    _ => return,
                };
                if is_certain(self.pid, number, wait, &waker) {
                    thread.woken = Some((waker.thread, time));
                }
                ended = wait.map(|wait| State::Waiting { wait, waker: Some(waker) });
                Some(State::Ready)
            }
        };
        // Samples repeat the state.
        if before.is_some() && next == before && !matches!(what, What::Runs { .. }) {
            return;
        }
        thread.state = next;
        thread.since = time;
        let woken = match what {
            What::Runs { .. } => thread.woken.take(),
            _ => None,
        };
        if let Some(state) = ended {
            let state = self.checked(number, state);
            let to = time.max(since);
            take(
                self,
                Part::Span(Span { thread: number, from: since, to, state, unfinished: false }),
            );
        }
        if let Some(from) = woken {
            take(self, Part::Arrow { from, to: (number, time.max(from.1)) });
        }
        if next.is_none() {
            self.threads.remove(&number);
        }
    }

    /// Read the holders of locks anew, for waits that continue. events: of a scan.
    pub fn refresh(&mut self, events: &[Event]) {
        for event in events {
            let known = self.threads.get_mut(&event.thread).and_then(|t| t.state.as_mut());
            if let (Some(State::Waiting { wait, .. }), What::Waits(now)) = (known, event.what)
                && wait.futex == now.futex
            {
                wait.holder = now.holder;
            }
        }
    }

    /// Complete the spans of all threads.
    pub fn finish(&mut self, now: u64, take: &mut impl FnMut(&Timeline, Part)) {
        self.complete(now, true, take);
    }

    fn complete(&mut self, now: u64, unfinished: bool, take: &mut impl FnMut(&Timeline, Part)) {
        let threads = std::mem::take(&mut self.threads);
        for (number, Thread { since, state, .. }) in threads {
            let Some(state) = state else { continue };
            let (state, to) = (self.checked(number, state), now.max(since));
            take(self, Part::Span(Span { thread: number, from: since, to, state, unfinished }));
        }
    }

    /// Remove a holder that is no other thread of the process.
    fn checked(&self, number: u32, state: State) -> State {
        let State::Waiting { mut wait, waker } = state else { return state };
        let is_other = |holder: &u32| *holder != number && self.names.contains_key(holder);
        wait.holder = wait.holder.filter(|h| self.has_our_numbers && is_other(h));
        State::Waiting { wait, waker }
    }

    /// Return whether a waker is a thread of the process that woke `thread`, and was not just
    /// interrupted by a device or a timer.
    pub fn has_woken(&self, thread: u32, wait: Wait, waker: &Waker) -> bool {
        is_certain(self.pid, thread, Some(wait), waker)
    }

    /// Return the name of a thread, with its number.
    pub fn name(&self, thread: u32) -> String {
        let name = self.names.get(&thread).map_or("?", String::as_str);
        format!("{name} [{thread}]")
    }

    /// Return the name of a thread alone.
    pub fn bare_name(&self, thread: u32) -> &str {
        self.names.get(&thread).map_or("?", String::as_str)
    }

    /// Return whether the process has or had a thread of this name.
    pub fn knows(&self, name: &str) -> bool {
        self.names.values().any(|known| known == name)
    }

    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    fn rename(&mut self, thread: u32, name: Option<String>) -> bool {
        let Some(name) = name else { return false };
        let known = self.names.get(&thread);
        if known == Some(&name) || (known.is_none() && self.names.len() == NAMES) {
            return false;
        }
        self.names.insert(thread, name);
        true
    }
}

fn is_certain(pid: u32, thread: u32, wait: Option<Wait>, waker: &Waker) -> bool {
    let for_a_futex = wait.is_some_and(|wait| wait.futex.is_some());
    let wakes = |call| calls::wakes(call, for_a_futex);
    waker.pid == pid && waker.thread != thread && waker.call.is_some_and(wakes)
}

pub fn text(name: &Name) -> String {
    ui::terminal::c_string(name)
}

fn os_name(pid: u32, thread: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm"));
    name.map_or("?".into(), |name| ui::terminal::plain(name.trim_end()))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const PID: u32 = 1 << 30;

    pub fn name_of(text: &str) -> Name {
        let mut name = [0; 16];
        name[..text.len()].copy_from_slice(text.as_bytes());
        name
    }

    pub fn runs(time: u64, thread: u32, name: &str) -> Event {
        Event { time, thread, what: What::Runs { cpu: 1, name: name_of(name) } }
    }

    pub fn waits(time: u64, thread: u32, holder: Option<u32>) -> Event {
        let wait = Wait { call: Some(202), futex: Some(64), holder };
        Event { time, thread, what: What::Waits(wait) }
    }

    pub fn woken(time: u64, thread: u32, waker: u32, call: u32) -> Event {
        let name = name_of("waker");
        let waker = Waker { thread: waker, pid: PID, name, call: Some(call) };
        Event { time, thread, what: What::Woken(waker) }
    }

    /// Format the parts of these events.
    fn parts(events: &[Event], end: u64) -> Vec<String> {
        let mut timeline = Timeline::new(PID, true);
        let mut lines = Vec::new();
        let mut take = |timeline: &Timeline, part: Part| {
            lines.push(match part {
                Part::Named(thread) => timeline.name(thread),
                Part::Arrow { from, to } => format!("{from:?} -> {to:?}"),
                Part::Span(Span { thread, from, to, state, unfinished }) => {
                    let state = match state {
                        State::Waiting { wait, waker } => {
                            format!("waits {:?} {:?}", wait.holder, waker.map(|w| w.thread))
                        }
                        state => format!("{state:?}"),
                    };
                    format!("{thread} {from}-{to} {state}{}", if unfinished { " ..." } else { "" })
                }
            });
        };
        events.iter().for_each(|event| timeline.add(event, &mut take));
        timeline.finish(end, &mut take);
        lines
    }

    #[test]
    fn a_lock_is_waited_for() {
        let events = [
            runs(0, 1, "a"),
            runs(5, 2, "b"),
            waits(10, 2, Some(1)),
            woken(30, 2, 1, 202),
            runs(35, 2, "b"),
            Event { time: 40, thread: 2, what: What::Ends },
        ];
        assert_eq!(
            parts(&events, 50),
            [
                "a [1]",
                "b [2]",
                "2 5-10 Running { cpu: 1 }",
                "2 10-30 waits Some(1) Some(1)",
                "2 30-35 Ready",
                "(1, 30) -> (2, 35)",
                "2 35-40 Running { cpu: 1 }",
                "1 0-50 Running { cpu: 1 } ...",
            ]
        );
    }

    #[test]
    fn a_holder_that_is_no_thread_and_a_waker_that_was_interrupted() {
        // The waker was in poll when a timer woke the thread.
        let events = [runs(0, 1, "a"), waits(1, 1, Some(77)), woken(2, 1, 3, 7), runs(3, 1, "a")];
        assert_eq!(
            parts(&events, 3),
            [
                "a [1]",
                "1 0-1 Running { cpu: 1 }",
                "1 1-2 waits None Some(3)",
                "1 2-3 Ready",
                "1 3-3 Running { cpu: 1 } ...",
            ]
        );
    }

    #[test]
    fn lost_events() {
        let lost = Event { time: 9, thread: 2, what: What::Lost };
        let events = [runs(0, 1, "a"), waits(1, 1, None), runs(4, 2, "b"), lost, runs(9, 2, "b")];
        let parts = parts(&events, 10);
        assert_eq!(parts[1..3], ["1 0-1 Running { cpu: 1 }", "b [2]"]);
        assert!(parts.contains(&"1 1-4 waits None None".into()), "{parts:?}");
        assert!(parts.contains(&"2 9-10 Running { cpu: 1 } ...".into()), "{parts:?}");
        assert_eq!(parts.len(), 6);
    }

    #[test]
    fn samples_repeat_and_clocks_differ() {
        let active = |time| Event { time, thread: 1, what: What::Active };
        let events = [active(5), active(6), waits(9, 1, None), waits(11, 1, None), active(8)];
        assert_eq!(
            parts(&events, 20)[1..],
            ["1 5-9 Active", "1 9-9 waits None None", "1 8-20 Active ..."]
        );
    }
}
