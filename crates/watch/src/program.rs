//! Activity of a program between two snapshots: the rows of `lissom stat` and `lissom top`.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use super::live::Trouble;
use super::look::{Look, Runtime, Seen};
use super::spinning::Found;
use super::told::Lock;
use crate::stats::{Names, SpinLoop};

/// Age of statistics from which the monitor counts as stuck. It writes ten times a second, and is
/// late where CPUs are short.
const STUCK: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Under lissom: its threads take turns.
    Active,
    /// Under lissom: at most one thread can run.
    Idle,
    /// Under lissom, but it has given up or is disabled.
    Native,
    /// Under lissom: it has no statistics.
    Silent,
    /// Under lissom: its monitor has not run for seconds, although threads could.
    Stuck,
    /// A signal or a debugger has stopped it, or its cgroup is frozen.
    Stopped,
    /// It has ended, and its parent has not waited for it.
    Dead,
    /// It has ended since the last snapshot.
    Ended,
    /// It is another user's: unknown whether it is under lissom.
    Hidden,
    /// Not under lissom.
    #[default]
    Other,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Idle => "idle",
            State::Native => "native",
            State::Silent => "silent",
            State::Stuck => "STUCK",
            State::Stopped => "stopped",
            State::Dead => "dead",
            State::Ended => "ended",
            State::Hidden => "hidden",
            State::Other => "-",
        }
    }
}

/// Activity of a program. Percentages are of one CPU, so they may exceed 100, or of elapsed time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Program {
    pub pid: u32,
    pub name: String,
    pub user: u32,
    pub state: State,
    /// Reason for the state, if known.
    pub why: Option<String>,
    pub threads: u32,
    pub runnable: u32,
    /// Only known under lissom.
    pub slots: Option<u32>,
    /// Threads that are ready without a slot. Only known under lissom.
    pub ready: Option<u32>,
    /// Slots that it would have alone. Only known under lissom.
    pub limit: Option<u32>,
    pub cpu_percent: f64,
    /// Percent of one CPU that threads spent in loops that wait, by samples. None: unknown.
    pub spin_percent: Option<f64>,
    /// Time for which threads waited for a CPU, summed over all threads.
    pub delay_percent: f64,
    /// Percent of the time for which a CPU quota stopped its cgroup. None: not counted.
    pub throttled_percent: Option<f64>,
    /// Part of `throttled_percent` that spinning caused.
    pub throttled_spinning_percent: Option<f64>,
    pub migrations_per_s: Option<f64>,
    /// Waits in user space. Only known under lissom.
    pub blocks_per_s: Option<f64>,
    /// Futex wakes that needed no system call. Only known under lissom.
    pub wakes_saved_per_s: Option<f64>,
    /// Counters since the program began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Names>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Names>,
    #[serde(skip)]
    pub start_time: u64,
    /// Spin samples since the watch began.
    #[serde(skip)]
    pub spinning: Found,
    #[serde(skip)]
    pub locks: Vec<Lock>,
    /// Number of scans that `locks` sums up. None: the runtime counted the waits.
    #[serde(skip)]
    pub looks_at_locks: Option<u32>,
    #[serde(skip)]
    pub loops: Vec<SpinLoop>,
}

impl Program {
    /// Return the number of threads that run, or wait for a CPU or a slot. The kernel counts those
    /// with a slot, the runtime those without.
    pub fn could_run(&self) -> u32 {
        self.runnable + self.ready.unwrap_or(0)
    }
}

/// Sums over more than one interval.
#[derive(Default)]
pub struct Past(HashMap<(u32, u64), Found>);

impl Past {
    /// Return all programs of `now`, and those of `before` that have ended.
    pub fn programs(&mut self, before: &Look, now: &Look) -> Vec<Program> {
        let time = now.at - before.at;
        let mut programs: Vec<Program> = Vec::new();
        for seen in now.programs.values() {
            let last = before.programs.get(&seen.pid).filter(|b| b.start_time == seen.start_time);
            let all = self.0.entry((seen.pid, seen.start_time)).or_default();
            all.add(&seen.spinning);
            programs.push(program(last.unwrap_or(seen), seen, time, all.clone()));
        }
        let is_gone =
            |b: &&Seen| now.programs.get(&b.pid).is_none_or(|n| n.start_time != b.start_time);
        for seen in before.programs.values().filter(is_gone) {
            let last = program(seen, seen, time, Found::default());
            programs.push(Program {
                state: State::Ended,
                threads: 0,
                runnable: 0,
                slots: None,
                ready: None,
                ..last
            });
        }
        self.0.retain(|(pid, start), _| {
            now.programs.get(pid).is_some_and(|p| p.start_time == *start)
        });
        programs
    }
}

fn program(last: &Seen, now: &Seen, time: Duration, spinning: Found) -> Program {
    let seconds = time.as_secs_f64().max(1e-6);
    let percent = |d: Duration| d.as_secs_f64() / seconds * 100.0;
    let (old, told) = (last.told(), now.told());
    let cpu_percent = percent(now.cpu.saturating_sub(last.cpu));
    let share =
        now.spinning.share().or_else(|| (cpu_percent > 0.0).then(|| spinning.share()).flatten());
    let throttled = now.throttled.map(|n| n.saturating_sub(last.throttled.unwrap_or(n)));
    let throttled_percent = throttled.map(|t| percent(t).min(100.0));
    let rate = |name: &str| {
        let told = told?.counters.get(name);
        Some(told.saturating_sub(old.map_or(told, |o| o.counters.get(name))) as f64 / seconds)
    };
    let migrations = now.totals.migrations.zip(last.totals.migrations);
    let (state, why) = state(now);
    let (looks_at_locks, locks) = match &now.waits {
        Some((looks, locks)) => (Some(*looks), locks.clone()),
        None => (None, told.map_or(Vec::new(), |t| t.locks.clone())),
    };
    Program {
        pid: now.pid,
        name: now.name.clone(),
        user: now.user,
        state,
        why,
        threads: now.threads(),
        runnable: now.totals.runnable,
        slots: told.map(|t| t.slots),
        ready: told.map(|t| if t.is_asleep { 0 } else { t.ready }),
        limit: told.map(|t| t.limit),
        cpu_percent,
        spin_percent: share.map(|s| s * cpu_percent),
        delay_percent: percent(now.totals.run_delay.saturating_sub(last.totals.run_delay)),
        throttled_percent,
        throttled_spinning_percent: throttled_percent.zip(share).map(|(t, s)| t * s),
        migrations_per_s: migrations.map(|(n, l)| n.saturating_sub(l) as f64 / seconds),
        blocks_per_s: rate("blocks"),
        wakes_saved_per_s: rate("wakes_avoided"),
        counters: told.map(|t| t.counters.clone()),
        pinned: told.map(|t| t.pinned.clone()),
        start_time: now.start_time,
        spinning,
        locks,
        looks_at_locks,
        loops: told.map_or(Vec::new(), |t| t.loops.clone()),
    }
}

fn state(seen: &Seen) -> (State, Option<String>) {
    match (seen.state, &seen.runtime) {
        ('Z' | 'X', _) => {
            (State::Dead, Some("it has ended, but its parent has not waited for it".into()))
        }
        ('T' | 't', _) => (State::Stopped, Some("by a signal or a debugger".into())),
        (_, Runtime::None) => (State::Other, None),
        (_, Runtime::Hidden) => (State::Hidden, Some(Trouble::NotAllowed.text())),
        (_, Runtime::Silent(Trouble::Gone)) => (State::Ended, None),
        (_, Runtime::Silent(trouble)) => (State::Silent, Some(trouble.text())),
        (_, Runtime::Tells(told)) => match told.state {
            _ if told.is_native => {
                (State::Native, Some("lissom gave up for good: all waits are in the kernel".into()))
            }
            "native" | "off" => (State::Native, None),
            _ if told.is_asleep => (State::Idle, None),
            _ if seen.is_frozen => (State::Stopped, Some("its cgroup is frozen".into())),
            _ if told.age > STUCK => {
                let text = format!(
                    "its monitor has not run for {:.0} s, although threads could",
                    told.age.as_secs_f64()
                );
                (State::Stuck, Some(text))
            }
            _ => (State::Active, None),
        },
    }
}

/// Return whether the overview shows the program. Programs outside lissom are many; show them only
/// if they ran.
pub fn is_worth_a_line(p: &Program) -> bool {
    match p.state {
        State::Ended => false,
        State::Other | State::Hidden => p.cpu_percent > 0.0 || p.runnable > 0,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Totals;
    use crate::told::Told;
    use std::collections::BTreeMap;
    use std::time::Instant;

    fn seen(cpu_ms: u64, spinning: u32, throttled_ms: Option<u64>) -> Seen {
        Seen {
            pid: 7,
            start_time: 1,
            name: "solver".into(),
            user: 0,
            state: 'S',
            cpu: Duration::from_millis(cpu_ms),
            totals: Totals { threads: 8, migrations: Some(cpu_ms / 10), ..Totals::default() },
            throttled: throttled_ms.map(Duration::from_millis),
            is_frozen: false,
            runtime: Runtime::None,
            spinning: Found { judged: 10, spinning, loops: HashMap::from([(4096, spinning)]) },
            waits: None,
        }
    }

    fn look(at: Instant, seen: Option<Seen>) -> Look {
        Look { at, programs: seen.into_iter().map(|s| (s.pid, s)).collect::<BTreeMap<_, _>>() }
    }

    #[test]
    fn between_two_looks() {
        let (begin, mut past) = (Instant::now(), Past::default());
        let first = look(begin, Some(seen(1000, 0, Some(100))));
        let second = look(begin + Duration::from_secs(2), Some(seen(5000, 5, Some(600))));
        let of = |past: &mut Past, a: &Look, b: &Look| past.programs(a, b).remove(0);
        let program = of(&mut past, &first, &second);
        assert_eq!((program.cpu_percent, program.spin_percent), (200.0, Some(100.0)));
        assert_eq!(
            (program.throttled_percent, program.throttled_spinning_percent),
            (Some(25.0), Some(12.5))
        );
        assert_eq!(program.migrations_per_s, Some(200.0));
        assert_eq!((program.state, program.slots), (State::Other, None));
        // A new process with the number of an old one has done nothing yet.
        let other = Seen { start_time: 2, ..seen(9000, 0, None) };
        let third = look(begin + Duration::from_secs(3), Some(other));
        let programs = past.programs(&second, &third);
        assert_eq!(programs[0].cpu_percent, 0.0);
        assert_eq!(
            (programs[1].state, programs[1].pid, programs[1].could_run()),
            (State::Ended, 7, 0)
        );
        // Sums of ended programs are not kept.
        assert_eq!(past.0.len(), 1);
        let zombie = Seen { state: 'Z', ..seen(0, 0, None) };
        let fourth = look(begin + Duration::from_secs(4), Some(zombie));
        assert_eq!(of(&mut past, &third, &fourth).state, State::Dead);
    }

    #[test]
    fn what_is_heard_of_it() {
        let told = |age, is_asleep| {
            Runtime::Tells(Box::new(Told {
                age: Duration::from_millis(age),
                is_asleep,
                is_native: false,
                state: "active",
                threads: 1,
                slots: 1,
                limit: 1,
                running: 1,
                ready: 0,
                counters: Names(vec![]),
                pinned: Names(vec![]),
                locks: vec![],
                loops: vec![],
            }))
        };
        let of = |runtime| state(&Seen { runtime, ..seen(0, 0, None) }).0;
        assert_eq!(of(told(100, false)), State::Active);
        assert_eq!(of(told(100_000, true)), State::Idle);
        assert_eq!(of(told(100_000, false)), State::Stuck);
        let frozen = Seen { runtime: told(100_000, false), is_frozen: true, ..seen(0, 0, None) };
        assert_eq!(state(&frozen).0, State::Stopped);
        assert_eq!(of(Runtime::Silent(Trouble::NotThere)), State::Silent);
        assert_eq!(of(Runtime::None), State::Other);
    }
}
