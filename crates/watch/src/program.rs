//! Activity of a program between two snapshots: the rows of `lissom stat` and `lissom top`.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use super::found::Found;
use super::live::Trouble;
use super::look::{Look, Runtime, Seen};
use super::told::Lock;
use super::waits::BlockedIn;
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

/// Activity of a program. CPU times are in percent of one CPU, so they may exceed 100. Those in
/// loops that wait, in other code, undecided and in the kernel add up to `cpu_percent`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Program {
    pub pid: u32,
    pub name: String,
    /// Command line. Empty: unknown.
    pub command: String,
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
    /// `cpu_percent`, in percent of all online CPUs.
    pub machine_percent: f64,
    /// CPU time in loops that wait, by samples. None: unknown.
    pub spin_percent: Option<f64>,
    /// Half width of the 95 % confidence interval of `spin_percent`.
    pub spin_error_percent: Option<f64>,
    /// CPU time in user code that makes progress, by samples.
    pub work_percent: Option<f64>,
    /// CPU time in user code of which neither was proven.
    pub undecided_percent: Option<f64>,
    /// CPU time in the kernel.
    pub kernel_percent: f64,
    /// Time for which threads waited for a CPU, in percent of the time, summed over all threads.
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
    /// System calls in which threads waited since the watch began. Without those for futexes if the
    /// program is under lissom.
    pub blocked_in: Option<Vec<BlockedIn>>,
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
    /// The share of its CPU time in user mode since the watch began, from 0 to 1.
    #[serde(skip)]
    pub user_share: f64,
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

/// Sums over all intervals since the watch began.
#[derive(Clone, Default)]
struct Sums {
    spinning: Found,
    cpu: Duration,
    user_cpu: Duration,
}

/// Sums of each program.
#[derive(Default)]
pub struct Past(HashMap<(u32, u64), Sums>);

impl Past {
    /// Return all programs of `now`, and those of `before` that have ended.
    pub fn programs(&mut self, before: &Look, now: &Look) -> Vec<Program> {
        let mut programs: Vec<Program> = Vec::new();
        for seen in now.programs.values() {
            let last = before.programs.get(&seen.pid).filter(|b| b.start_time == seen.start_time);
            let last = last.unwrap_or(seen);
            let sums = self.0.entry((seen.pid, seen.start_time)).or_default();
            sums.spinning.add(&seen.spinning);
            sums.cpu += seen.cpu.saturating_sub(last.cpu);
            sums.user_cpu += seen.user_cpu.saturating_sub(last.user_cpu);
            programs.push(program(last, seen, sums));
        }
        let is_gone =
            |b: &&Seen| now.programs.get(&b.pid).is_none_or(|n| n.start_time != b.start_time);
        for seen in before.programs.values().filter(is_gone) {
            let last = program(seen, seen, &Sums::default());
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

fn program(last: &Seen, now: &Seen, sums: &Sums) -> Program {
    let seconds = (now.at - last.at).as_secs_f64().max(1e-6);
    let percent = |d: Duration| d.as_secs_f64() / seconds * 100.0;
    let (old, told) = (last.told(), now.told());
    let cpu_percent = percent(now.cpu.saturating_sub(last.cpu));
    let user_percent = percent(now.user_cpu.saturating_sub(last.user_cpu)).min(cpu_percent);
    let shares = now
        .spinning
        .shares()
        .or_else(|| (cpu_percent > 0.0).then(|| sums.spinning.shares()).flatten());
    let spin_percent = shares.map(|s| s.waits * user_percent);
    let throttled = now.throttled.map(|n| n.saturating_sub(last.throttled.unwrap_or(n)));
    let throttled_percent = throttled.map(|t| percent(t).min(100.0));
    let rate = |name: &str| {
        let told = told?.counters.get(name);
        Some(told.saturating_sub(old.map_or(told, |o| o.counters.get(name))) as f64 / seconds)
    };
    let migrations = now.totals.migrations.zip(last.totals.migrations);
    let (state, why) = state(now);
    let (looks_at_locks, locks) = match (told, &now.waits) {
        (Some(told), _) => (None, told.locks.clone()),
        (None, Some(waits)) => (Some(waits.looks), waits.locks.clone()),
        (None, None) => (None, Vec::new()),
    };
    let blocked_in = now.waits.as_ref().map(|waits| waits.blocked_in.clone());
    Program {
        pid: now.pid,
        name: now.name.clone(),
        command: now.command.clone(),
        user: now.user,
        state,
        why,
        threads: now.threads(),
        runnable: now.totals.runnable,
        slots: told.map(|t| t.slots),
        ready: told.map(|t| if t.is_asleep { 0 } else { t.ready }),
        limit: told.map(|t| t.limit),
        cpu_percent,
        machine_percent: cpu_percent / os::process::online_count() as f64,
        spin_percent,
        spin_error_percent: shares.map(|s| s.error * user_percent),
        work_percent: shares.map(|s| s.works * user_percent),
        undecided_percent: shares.map(|s| s.undecided * user_percent),
        kernel_percent: cpu_percent - user_percent,
        delay_percent: percent(now.totals.run_delay.saturating_sub(last.totals.run_delay)),
        throttled_percent,
        throttled_spinning_percent: throttled_percent
            .zip(spin_percent)
            .map(|(throttled, spin)| throttled * spin / cpu_percent.max(1e-6)),
        migrations_per_s: migrations.map(|(n, l)| n.saturating_sub(l) as f64 / seconds),
        blocks_per_s: rate("blocks"),
        wakes_saved_per_s: rate("wakes_avoided"),
        counters: told.map(|t| t.counters.clone()),
        pinned: told.map(|t| t.pinned.clone()),
        start_time: now.start_time,
        spinning: sums.spinning.clone(),
        user_share: sums.user_cpu.as_secs_f64() / sums.cpu.as_secs_f64().max(1e-6),
        blocked_in,
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
    use crate::found::{Judged, Slot};
    use crate::places::spin_sites;
    use crate::threads::Totals;
    use crate::told::Told;
    use os::place::Places;
    use std::collections::BTreeMap;
    use std::time::Instant;

    fn found(samples: u32, waits: u32) -> Found {
        let judged = |i| if i < waits { Judged::Waits(4096) } else { Judged::Works };
        let judged = (0..samples).map(|i| ((i.into(), 0), judged(i))).collect();
        let mut found = Found::default();
        found.add_slot(&Slot { taken: samples, judged });
        found
    }

    fn seen(cpu_ms: u64, spinning: u32, throttled_ms: Option<u64>) -> Seen {
        Seen {
            pid: 7,
            at: Instant::now(),
            start_time: 1,
            name: "solver".into(),
            user: 0,
            state: 'S',
            cpu: Duration::from_millis(cpu_ms),
            user_cpu: Duration::from_millis(cpu_ms * 3 / 4),
            command: "solver -v".into(),
            totals: Totals { threads: 8, migrations: Some(cpu_ms / 10), ..Totals::default() },
            throttled: throttled_ms.map(Duration::from_millis),
            is_frozen: false,
            runtime: Runtime::None,
            spinning: found(10, spinning),
            waits: None,
        }
    }

    fn look(at: Instant, seen: Option<Seen>) -> Look {
        let seen = seen.map(|s| Seen { at, ..s });
        Look { at, programs: seen.into_iter().map(|s| (s.pid, s)).collect::<BTreeMap<_, _>>() }
    }

    #[test]
    fn between_two_looks() {
        let (begin, mut past) = (Instant::now(), Past::default());
        let first = look(begin, Some(seen(1000, 0, Some(100))));
        let second = look(begin + Duration::from_secs(2), Some(seen(5000, 5, Some(600))));
        let of = |past: &mut Past, a: &Look, b: &Look| past.programs(a, b).remove(0);
        let program = of(&mut past, &first, &second);
        assert_eq!((program.cpu_percent, program.spin_percent), (200.0, Some(75.0)));
        assert_eq!(
            (program.work_percent, program.undecided_percent, program.kernel_percent),
            (Some(75.0), Some(0.0), 50.0)
        );
        assert_eq!(
            (program.throttled_percent, program.throttled_spinning_percent),
            (Some(25.0), Some(9.375))
        );
        let sites = spin_sites(&program, &mut Places::default(), 5);
        assert_eq!(sites.len(), 1);
        // Half of the samples, which stand for three quarters of the CPU time.
        assert_eq!(sites[0].percent, Some(37.5));
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
