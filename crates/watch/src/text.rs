//! Text output, at most 80 columns wide.

use super::places::{LockProfile, SpinSite};
use super::program::Program;
use ui::terminal::short;
use ui::text::{cut, grouped, wrap};

/// Columns of a row. `lissom top` sorts by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Pid,
    Program,
    State,
    Threads,
    Slots,
    Runnable,
    Cpu,
    Spin,
    Throttled,
    Blocks,
    Saved,
    Migrations,
}

impl Column {
    pub const ALL: [Column; 12] = [
        Column::Pid,
        Column::Program,
        Column::State,
        Column::Threads,
        Column::Slots,
        Column::Runnable,
        Column::Cpu,
        Column::Spin,
        Column::Throttled,
        Column::Blocks,
        Column::Saved,
        Column::Migrations,
    ];

    pub fn head(self) -> &'static str {
        match self {
            Column::Pid => "PID",
            Column::Program => "PROGRAM",
            Column::State => "STATE",
            Column::Threads => "THR",
            Column::Slots => "SLOT",
            Column::Runnable => "RUN",
            Column::Cpu => "CPU%",
            Column::Spin => "SPIN%",
            Column::Throttled => "THRT%",
            Column::Blocks => "BLK/s",
            Column::Saved => "SAV/s",
            Column::Migrations => "MIG/s",
        }
    }

    pub fn width(self) -> usize {
        match self {
            Column::Pid | Column::State => 7,
            Column::Program => 13,
            Column::Threads | Column::Slots | Column::Runnable => 4,
            _ => 5,
        }
    }

    pub fn is_left(self) -> bool {
        matches!(self, Column::Program | Column::State)
    }

    pub fn cell(self, p: &Program) -> String {
        let known = |n: Option<f64>| n.map_or("-".into(), short);
        match self {
            Column::Pid => p.pid.to_string(),
            Column::Program => p.name.chars().take(Column::Program.width()).collect(),
            Column::State => p.state.name().into(),
            Column::Threads => p.threads.to_string(),
            Column::Slots => p.slots.map_or("-".into(), |n| n.to_string()),
            // Threads that are ready without a slot are asleep to the kernel: add them.
            Column::Runnable => p.could_run().to_string(),
            Column::Cpu => short(p.cpu_percent),
            Column::Spin => known(p.spin_percent),
            Column::Throttled => known(p.throttled_percent),
            Column::Blocks => known(p.blocks_per_s),
            Column::Saved => known(p.wakes_saved_per_s),
            Column::Migrations => known(p.migrations_per_s),
        }
    }

    /// Compare programs by this column: those that matter come first.
    pub fn compare(self, a: &Program, b: &Program) -> std::cmp::Ordering {
        let number = |p: &Program| match self {
            Column::Threads => f64::from(p.threads),
            Column::Slots => p.slots.map_or(-1.0, f64::from),
            Column::Runnable => f64::from(p.could_run()),
            Column::Cpu => p.cpu_percent,
            Column::Spin => p.spin_percent.unwrap_or(-1.0),
            Column::Throttled => p.throttled_percent.unwrap_or(-1.0),
            Column::Blocks => p.blocks_per_s.unwrap_or(-1.0),
            Column::Saved => p.wakes_saved_per_s.unwrap_or(-1.0),
            Column::Migrations => p.migrations_per_s.unwrap_or(-1.0),
            _ => 0.0,
        };
        let order = match self {
            Column::Pid => a.pid.cmp(&b.pid),
            Column::Program => a.name.cmp(&b.name),
            Column::State => a.state.cmp(&b.state),
            _ => number(b).total_cmp(&number(a)),
        };
        order.then(a.pid.cmp(&b.pid))
    }
}

/// Format a row, without trailing spaces.
pub fn line(cell: impl Fn(Column) -> String) -> String {
    let cells = Column::ALL.map(|c| {
        let (text, width) = (cell(c), c.width());
        if c.is_left() { format!("{text:<width$}") } else { format!("{text:>width$}") }
    });
    cut(cells.join(" ").trim_end())
}

pub fn table(programs: &[Program]) -> String {
    let mut lines = vec![line(|c| c.head().to_string())];
    lines.extend(programs.iter().map(|p| line(|c| c.cell(p))));
    lines.join("\n") + "\n"
}

/// Describe a program, except its places.
pub fn details(p: &Program) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |text: String| lines.extend(wrap(&text, "  ", 4));
    if let Some(why) = &p.why {
        say(format!("{}: {why}", p.state.name()));
    }
    say(match (p.slots, p.limit) {
        (Some(slots), Some(limit)) => {
            format!(
                "{} threads on {slots} of {limit} slots: {} could run",
                p.threads,
                p.could_run()
            )
        }
        _ => format!("{} threads: {} could run", p.threads, p.could_run()),
    });
    let spin = match p.spin_percent {
        Some(spin) => format!("{spin:.0} % of one in loops that wait"),
        None => "an unknown part of it in loops that wait".into(),
    };
    say(format!(
        "CPU {:.0} % of one, {spin}; threads waited for a CPU for {:.0} %",
        p.cpu_percent, p.delay_percent
    ));
    if let Some(throttled) = p.throttled_percent.filter(|&t| t > 0.0) {
        let of = p
            .throttled_spinning_percent
            .map_or(String::new(), |s| format!(", {s:.0} % because of the spinning"));
        say(format!("stopped by the CPU quota for {throttled:.0} % of the time{of}"));
    }
    if let (Some(blocks), Some(saved)) = (p.blocks_per_s, p.wakes_saved_per_s) {
        say(format!(
            "{} waits and {} wakes a second without a system call",
            grouped(blocks as u64),
            grouped(saved as u64)
        ));
    }
    if let Some(migrations) = p.migrations_per_s {
        say(format!("{} migrations between CPUs a second", grouped(migrations as u64)));
    }
    lines
}

pub fn spin_site(site: &SpinSite) -> String {
    match (site.percent, site.gave_way) {
        (Some(percent), _) => format!("{percent:>9.0} %  {}", site.place),
        (None, gave_way) => {
            let waited = site.waited_ms.unwrap_or(0) as f64 / 1e3;
            format!(
                "{:>9}x  {} ({waited:.1} s without a CPU)",
                short(gave_way.unwrap_or(0) as f64),
                site.place
            )
        }
    }
}

pub fn lock_profile(lock: &LockProfile) -> String {
    let waiter = lock.waiter.as_ref().map_or(String::new(), |w| format!(" in {w}"));
    match lock.threads {
        Some(threads) => format!("{threads:>10.1}  {}{waiter}", lock.name),
        None => format!("{:>9}x  {}{waiter}", short(lock.waits.unwrap_or(0) as f64), lock.name),
    }
}

pub fn places(sites: &[SpinSite], locks: &[LockProfile]) -> Vec<String> {
    let mut lines = Vec::new();
    if !sites.is_empty() {
        lines.push("  loops that wait: % of its CPU time lost there, or number of yields".into());
        lines.extend(sites.iter().map(|s| cut(&spin_site(s))));
    }
    if !locks.is_empty() {
        let unit = if locks[0].threads.is_some() {
            "average number of threads"
        } else {
            "approximate number of waits so far"
        };
        lines.push(format!("  futexes that threads wait on: {unit}"));
        lines.extend(locks.iter().map(|l| cut(&lock_profile(l))));
    }
    lines
}
