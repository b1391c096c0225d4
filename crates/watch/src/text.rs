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
        self.head_and_width().0
    }

    pub fn width(self) -> usize {
        self.head_and_width().1
    }

    fn head_and_width(self) -> (&'static str, usize) {
        match self {
            Column::Pid => ("PID", 7),
            Column::Program => ("PROGRAM", 13),
            Column::State => ("STATE", 7),
            Column::Threads => ("THR", 4),
            Column::Slots => ("SLOT", 4),
            Column::Runnable => ("RUN", 4),
            Column::Cpu => ("CPU%", 5),
            Column::Spin => ("SPIN%", 5),
            Column::Throttled => ("THRT%", 5),
            Column::Blocks => ("BLK/s", 5),
            Column::Saved => ("SAV/s", 5),
            Column::Migrations => ("MIG/s", 5),
        }
    }

    pub fn is_left(self) -> bool {
        matches!(self, Column::Program | Column::State)
    }

    /// Return the number in the column. None: it is unknown, or the column has text.
    fn number(self, p: &Program) -> Option<f64> {
        match self {
            Column::Pid | Column::Program | Column::State => None,
            Column::Threads => Some(p.threads.into()),
            Column::Slots => p.slots.map(f64::from),
            // Threads that are ready without a slot are asleep to the kernel: add them.
            Column::Runnable => Some(p.could_run().into()),
            Column::Cpu => Some(p.cpu_percent),
            Column::Spin => p.spin_percent,
            Column::Throttled => p.throttled_percent,
            Column::Blocks => p.blocks_per_s,
            Column::Saved => p.wakes_saved_per_s,
            Column::Migrations => p.migrations_per_s,
        }
    }

    pub fn cell(self, p: &Program) -> String {
        let known = |format: fn(f64) -> String| self.number(p).map_or("-".into(), format);
        match self {
            Column::Pid => p.pid.to_string(),
            Column::Program => p.name.chars().take(self.width()).collect(),
            Column::State => p.state.name().into(),
            Column::Threads | Column::Slots | Column::Runnable => known(|n| n.to_string()),
            _ => known(short),
        }
    }

    /// Compare programs by this column: those that matter come first.
    pub fn compare(self, a: &Program, b: &Program) -> std::cmp::Ordering {
        let number = |p: &Program| self.number(p).unwrap_or(-1.0);
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

fn spin_site(site: &SpinSite) -> String {
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

fn lock_profile(lock: &LockProfile) -> String {
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
