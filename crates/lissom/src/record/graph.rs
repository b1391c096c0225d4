//! The wait-for graph: sums of the waits of threads for each other.

use std::collections::{BTreeMap, HashMap};

use super::timeline::{Span, State, Timeline};
use ui::number::short;
use ui::text::{plural, wrap};

/// Edges kept. Futexes on stacks are many.
const EDGES: usize = 65_536;

/// Edges shown: those with the most time.
const SHOWN: usize = 50;

/// The thing that a thread waits at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    Futex(u64),
    /// A system call other than futex calls.
    Call(u32),
}

/// Relation of the object to the thread at the other end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Other {
    /// It held the lock when the wait began.
    Holder(u32),
    /// It ended the wait.
    Waker(u32),
    Nobody,
}

impl Other {
    pub fn thread(self) -> Option<u32> {
        match self {
            Other::Holder(thread) | Other::Waker(thread) => Some(thread),
            Other::Nobody => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub count: u64,
    /// Times are in ns.
    pub total: u64,
    pub longest: u64,
    /// Waits that had not ended when the recording did.
    pub unfinished: u64,
}

type Key = (u32, Object, Other);

#[derive(Default)]
pub struct Graph {
    edges: HashMap<Key, Sum>,
    /// By thread and place: number of samples.
    spins: HashMap<(u32, String), u64>,
    /// By thread: samples of loops and of other code, and ns on a CPU.
    ran: HashMap<u32, (u64, u64)>,
    dropped: u64,
}

/// An edge with names.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    pub waiter: String,
    pub object: String,
    pub other: Option<String>,
    pub is_held: bool,
    pub sum: Sum,
}

/// The graph with names, as it is drawn.
pub struct Drawn {
    pub title: String,
    pub edges: Vec<Edge>,
    /// Thread, loop and seconds.
    pub spins: Vec<(String, String, f64)>,
    /// Cycles of threads that wait for each other's locks.
    pub deadlocks: Vec<String>,
    /// Facts that the graph lacks.
    pub notes: Vec<String>,
}

impl Sum {
    pub fn add(&mut self, other: &Sum) {
        self.count += other.count;
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
        self.unfinished += other.unfinished;
    }
}

impl Graph {
    /// Add a wait. Waits outside of futex calls count only if a thread of the process ended them.
    pub fn add(&mut self, timeline: &Timeline, span: &Span) {
        let State::Waiting { wait, waker } = span.state else {
            if matches!(span.state, State::Running { .. } | State::Active) {
                self.ran.entry(span.thread).or_default().1 += span.to - span.from;
            }
            return;
        };
        let woke = waker.filter(|waker| timeline.has_woken(span.thread, wait, waker));
        let other = match (wait.holder, woke) {
            (Some(holder), _) => Other::Holder(holder),
            (None, Some(waker)) => Other::Waker(waker.thread),
            (None, None) => Other::Nobody,
        };
        let object = match (wait.futex, wait.call) {
            (Some(futex), _) => Object::Futex(futex),
            (None, Some(call)) if other != Other::Nobody => Object::Call(call),
            _ => return,
        };
        let key = (span.thread, object, other);
        if self.edges.len() == EDGES && !self.edges.contains_key(&key) {
            self.dropped += 1;
            return;
        }
        let (time, unfinished) = (span.to - span.from, u64::from(span.unfinished));
        let one = Sum { count: 1, total: time, longest: time, unfinished };
        self.edges.entry(key).or_default().add(&one);
    }

    /// Add a sample of a thread on a CPU. place: the loop in which it spun, if it did.
    pub fn add_sample(&mut self, thread: u32, place: Option<&str>) {
        self.ran.entry(thread).or_default().0 += 1;
        if let Some(place) = place.filter(|_| self.spins.len() < EDGES) {
            *self.spins.entry((thread, place.to_string())).or_default() += 1;
        }
    }

    /// Return the graph with names. of: names an object.
    pub fn drawn(
        &self,
        title: String,
        timeline: &Timeline,
        of: impl Fn(Object) -> String,
    ) -> Drawn {
        let mut edges: Vec<(&Key, &Sum)> = self.edges.iter().collect();
        edges.sort_by_key(|(key, sum)| (std::cmp::Reverse(sum.total), **key));
        let mut notes = Vec::new();
        if edges.len() > SHOWN {
            notes.push(format!(
                "{} more with shorter waits",
                plural((edges.len() - SHOWN) as u64, "edge")
            ));
        }
        if self.dropped > 0 {
            notes.push(format!("{} at too many futexes", plural(self.dropped, "wait")));
        }
        let named = |&((waiter, object, other), sum): &(&Key, &Sum)| Edge {
            waiter: timeline.name(*waiter),
            object: of(*object),
            other: other.thread().map(|thread| timeline.name(thread)),
            is_held: matches!(other, Other::Holder(_)),
            sum: *sum,
        };
        let mut spins: Vec<_> = self.spins.iter().collect();
        spins.sort_by_key(|(key, count)| (std::cmp::Reverse(**count), (*key).clone()));
        let spins = spins.into_iter().take(SHOWN).map(|((thread, place), &count)| {
            let (samples, ns) = self.ran.get(thread).copied().unwrap_or_default();
            let share = count as f64 / samples.max(1) as f64;
            (timeline.name(*thread), place.clone(), share * ns as f64 / 1e9)
        });
        Drawn {
            title,
            spins: spins.collect(),
            deadlocks: self.deadlocks(timeline, &of),
            edges: edges.iter().take(SHOWN).map(named).collect(),
            notes,
        }
    }

    /// Return the cycles of unfinished waits for locks.
    fn deadlocks(&self, timeline: &Timeline, of: &impl Fn(Object) -> String) -> Vec<String> {
        let waits: BTreeMap<u32, (Object, u32)> = self
            .edges
            .iter()
            .filter(|(_, sum)| sum.unfinished > 0)
            .filter_map(|(&(waiter, object, other), _)| match other {
                Other::Holder(holder) => Some((waiter, (object, holder))),
                _ => None,
            })
            .collect();
        let mut found = Vec::new();
        for &first in waits.keys() {
            let mut chain = vec![first];
            while let Some((_, next)) = waits.get(chain.last().unwrap_or(&first)) {
                if *next == first {
                    let step = |thread: &u32| {
                        let (object, holder) = waits[thread];
                        let (waiter, holder) = (timeline.name(*thread), timeline.name(holder));
                        format!("{waiter} waits for {}, which {holder} holds", of(object))
                    };
                    found.push(chain.iter().map(step).collect::<Vec<_>>().join("; "));
                    break;
                }
                // A cycle is found from its smallest thread.
                if *next < first || chain.contains(next) {
                    break;
                }
                chain.push(*next);
            }
        }
        found
    }
}

/// Format ns with a unit.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", short(ns as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", short(ns as f64 / 1e6)),
        _ => format!("{} s", short(ns as f64 / 1e9)),
    }
}

/// Format the number of waits and their times.
pub fn times(sum: &Sum) -> String {
    let longest = match sum.count {
        1 => String::new(),
        _ => format!(", longest {}", time(sum.longest)),
    };
    let unfinished = match (sum.count, sum.unfinished) {
        (_, 0) => "",
        (1, _) => ", not ended",
        _ => ", one not ended",
    };
    format!("{}, {}{longest}{unfinished}", plural(sum.count, "wait"), time(sum.total))
}

/// Format the graph as text: the edges of each waiter, the longest waits first.
pub fn text(drawn: &Drawn) -> String {
    let mut lines = vec![drawn.title.clone()];
    let mut say = |text: &str, first: &str| lines.extend(wrap(text, first, first.len() + 2));
    drawn.deadlocks.iter().for_each(|deadlock| say(&format!("deadlock: {deadlock}"), ""));
    let mut waiters: Vec<&str> = Vec::new();
    let of_edges = drawn.edges.iter().map(|e| e.waiter.as_str());
    for waiter in of_edges.chain(drawn.spins.iter().map(|s| s.0.as_str())) {
        if !waiters.contains(&waiter) {
            waiters.push(waiter);
        }
    }
    for waiter in waiters {
        say(waiter, "");
        for edge in drawn.edges.iter().filter(|e| e.waiter == waiter) {
            let Edge { object, sum, .. } = edge;
            let text = match (&edge.other, edge.is_held) {
                (Some(holder), true) => format!("waits for {holder}, which holds {object}"),
                (Some(waker), false) => format!("waits at {object}, woken by {waker}"),
                (None, _) => format!("waits at {object}"),
            };
            say(&format!("{text}: {}", times(sum)), "  ");
        }
        for (_, place, seconds) in drawn.spins.iter().filter(|s| s.0 == waiter) {
            say(&format!("spins in {place}: about {}", time((*seconds * 1e9) as u64)), "  ");
        }
    }
    if drawn.edges.is_empty() && drawn.spins.is_empty() {
        say("no thread waited for another one", "");
    }
    drawn.notes.iter().for_each(|note| say(&format!("not shown: {note}"), ""));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::timeline::tests::{PID, runs, waits, woken};
    use super::super::timeline::{Part, Timeline};
    use super::*;
    use watch::trace::Event;

    pub fn drawn(events: &[Event], end: u64) -> Drawn {
        let (mut timeline, mut graph) = (Timeline::new(PID, true), Graph::default());
        let mut take = |timeline: &Timeline, part: Part| {
            if let Part::Span(span) = part {
                graph.add(timeline, &span);
            }
        };
        events.iter().for_each(|event| timeline.add(event, &mut take));
        timeline.finish(end, &mut take);
        graph.add_sample(2, Some("loop app"));
        graph.add_sample(2, None);
        graph.drawn("graph".into(), &timeline, |object| format!("{object:?}"))
    }

    #[test]
    fn sums() {
        let mut events = vec![runs(0, 1, "a"), runs(0, 2, "b")];
        for round in 0..2 {
            let at = round * 5_000_000;
            events.push(waits(at + 1_000_000, 2, Some(1)));
            events.push(woken(at + 3_000_000, 2, 1, 202));
            events.push(runs(at + 3_000_000, 2, "b"));
        }
        events.push(waits(20_000_000, 2, None));
        let text = text(&drawn(&events, 21_000_000));
        assert_eq!(
            text,
            "graph\nb [2]\n  \
             waits for a [1], which holds Futex(64): 2 waits, 4 ms, longest 2 ms\n  \
             waits at Futex(64): 1 wait, 1 ms, not ended\n  \
             spins in loop app: about 8 ms\n"
        );
    }

    #[test]
    fn a_deadlock() {
        let events = [runs(0, 1, "a"), runs(0, 2, "b"), waits(5, 1, Some(2)), waits(6, 2, Some(1))];
        let drawn = drawn(&events, 10);
        assert_eq!(
            drawn.deadlocks,
            ["a [1] waits for Futex(64), which b [2] holds; b [2] waits for Futex(64), which a \
              [1] holds"]
        );
        let text = text(&drawn);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn units() {
        assert_eq!(
            [999, 1_500, 2_000_000, 3_250_000_000].map(time),
            ["999 ns", "1.5 us", "2 ms", "3.25 s"]
        );
    }
}
