//! Text output.

use super::places::{LockProfile, SpinSite};
use super::program::Program;
use ui::terminal::{short, short_count};
use ui::text::{cut, grouped, plural, rounded_parts, wrap_at};

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
    Command,
}

/// Maximum length of a program's name: TASK_COMM_LEN without its NUL.
const NAME: usize = 15;

/// Maximum number of system calls in the details.
const CALLS: usize = 5;

/// Columns that narrow screens lack. The first ones go first.
const DROPPED: [Column; 10] = [
    Column::Command,
    Column::Migrations,
    Column::Saved,
    Column::Blocks,
    Column::Throttled,
    Column::Slots,
    Column::Runnable,
    Column::State,
    Column::Threads,
    Column::Spin,
];

impl Column {
    pub const ALL: [Column; 13] = [
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
        Column::Command,
    ];

    /// Return the columns that fit on a screen of this width, with their widths. Drops whole
    /// columns. Names and command lines get the remaining space.
    pub fn fitting(width: usize) -> Vec<(Column, usize)> {
        let mut columns: Vec<(Column, usize)> = Column::ALL.map(|c| (c, c.width())).into();
        let used = |columns: &[(Column, usize)]| {
            columns.iter().map(|c| c.1 + 1).sum::<usize>().saturating_sub(1)
        };
        for dropped in DROPPED {
            if used(&columns) > width {
                columns.retain(|c| c.0 != dropped);
            }
        }
        for (widened, most) in [(Column::Program, NAME), (Column::Command, usize::MAX)] {
            let spare = width.saturating_sub(used(&columns));
            if let Some(column) = columns.iter_mut().find(|c| c.0 == widened) {
                column.1 = column.1.saturating_add(spare).min(most);
            }
        }
        columns
    }

    pub fn head(self) -> &'static str {
        self.about().0
    }

    /// Return the minimum width.
    fn width(self) -> usize {
        self.about().1
    }

    /// Return what the column shows. Empty: its title says it.
    pub fn meaning(self) -> &'static str {
        self.about().2
    }

    fn about(self) -> (&'static str, usize, &'static str) {
        match self {
            Column::Pid => ("PID", 7, ""),
            Column::Program => ("PROGRAM", 13, ""),
            Column::State => ("STATE", 7, ""),
            Column::Threads => ("THR", 4, "threads"),
            Column::Slots => ("SLOT", 4, "maximum number of threads that lissom runs at once"),
            Column::Runnable => ("RUN", 4, "threads that run or are ready to run"),
            Column::Cpu => ("CPU%", 5, "CPU time, in percent of one CPU"),
            Column::Spin => ("SPIN%", 5, "part of CPU% in loops that wait for other threads"),
            Column::Throttled => ("THRT%", 5, "stopped by a CPU quota, in percent of the time"),
            Column::Blocks => ("BLK/s", 5, "waits in user space per second"),
            Column::Saved => ("SAV/s", 5, "futex wakes without a system call per second"),
            Column::Migrations => ("MIG/s", 5, "migrations between CPUs per second"),
            Column::Command => ("COMMAND", 20, "command line, if the terminal is wide enough"),
        }
    }

    pub fn is_left(self) -> bool {
        matches!(self, Column::Program | Column::State | Column::Command)
    }

    /// Return the number in the column. None: it is unknown, or the column has text.
    fn number(self, p: &Program) -> Option<f64> {
        match self {
            Column::Pid | Column::Program | Column::State | Column::Command => None,
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

    /// Format the cell. Names and command lines may be too long.
    pub fn cell(self, p: &Program) -> String {
        let known = |format: fn(f64) -> String| self.number(p).map_or("-".into(), format);
        match self {
            Column::Pid => p.pid.to_string(),
            Column::Program => p.name.clone(),
            Column::State => p.state.name().into(),
            Column::Threads | Column::Slots | Column::Runnable => known(|n| short_count(n as u64)),
            Column::Command => p.command.clone(),
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
            Column::Command => a.command.cmp(&b.command),
            _ => number(b).total_cmp(&number(a)),
        };
        order.then(a.pid.cmp(&b.pid))
    }
}

/// Explain the columns, one a line.
pub fn legend() -> Vec<String> {
    let explained = Column::ALL.into_iter().filter(|c| !c.meaning().is_empty());
    explained.map(|c| format!("{:<7} {}", c.head(), c.meaning())).collect()
}

/// Format a row, without trailing spaces.
fn line(columns: &[(Column, usize)], cell: impl Fn(Column) -> String) -> String {
    let cells: Vec<String> = columns
        .iter()
        .map(|&(c, width)| match c.is_left() {
            true => format!("{:<width$.width$}", cell(c)),
            false => format!("{:>width$}", cell(c)),
        })
        .collect();
    cells.join(" ").trim_end().to_string()
}

/// Format a table of this width.
pub fn table(programs: &[Program], width: usize) -> String {
    let columns = Column::fitting(width);
    let mut lines = vec![line(&columns, |c| c.head().to_string())];
    lines.extend(programs.iter().map(|p| line(&columns, |c| c.cell(p))));
    lines.join("\n") + "\n"
}

/// Describe a program, except its places, in lines of at most `width` columns.
pub fn details(p: &Program, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |text: String| lines.extend(wrap_at(width, &text, "  ", 4));
    if let Some(why) = &p.why {
        say(format!("{}: {why}", p.state.name()));
    }
    let threads = plural(p.threads.into(), "thread");
    let ready = match p.could_run() {
        1 => "1 runs or is ready".to_string(),
        n => format!("{n} run or are ready"),
    };
    say(match (p.slots, p.limit) {
        (Some(slots), Some(limit)) => {
            format!("{threads} on {slots} of {}: {ready}", plural(limit.into(), "slot"))
        }
        _ => format!("{threads}: {ready}"),
    });
    say(cpu_time(p));
    if p.delay_percent >= 5.0 {
        say(format!("on average, {:.1} threads waited for a CPU", p.delay_percent / 100.0));
    }
    if let Some(throttled) = p.throttled_percent.filter(|&t| t > 0.0) {
        let of = p
            .throttled_spinning_percent
            .map_or(String::new(), |s| format!(", {s:.0} % because of the spinning"));
        say(format!("stopped by the CPU quota for {throttled:.0} % of the time{of}"));
    }
    if let (Some(blocks), Some(saved)) = (p.blocks_per_s, p.wakes_saved_per_s) {
        say(format!(
            "{} and {} a second without a system call",
            counted(blocks, "wait"),
            counted(saved, "wake")
        ));
    }
    if let Some(migrations) = p.migrations_per_s {
        say(format!("{} between CPUs a second", counted(migrations, "migration")));
    }
    // Leave out calls that would show 0.0.
    let blocked: Vec<String> = p
        .blocked_in
        .iter()
        .flatten()
        .filter(|b| b.threads >= 0.05)
        .take(CALLS)
        .map(|b| format!("{} {:.1}", b.call, b.threads))
        .collect();
    if !blocked.is_empty() {
        say(format!("average number of threads that wait in system calls: {}", blocked.join(", ")));
    }
    lines
}

fn counted(n: f64, noun: &str) -> String {
    let n = n.round() as u64;
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Describe the CPU time and its parts. The parts add up, as rounded.
fn cpu_time(p: &Program) -> String {
    let total = format!(
        "CPU time: {:.0} % of one CPU ({:.0} % of the machine)",
        p.cpu_percent, p.machine_percent
    );
    let (Some(spin), Some(error), Some(work), Some(undecided)) =
        (p.spin_percent, p.spin_error_percent, p.work_percent, p.undecided_percent)
    else {
        if p.cpu_percent < 0.5 {
            return total;
        }
        let parts = [p.cpu_percent - p.kernel_percent, p.kernel_percent];
        let parts = rounded_parts(p.cpu_percent, &parts);
        return format!(
            "{total} = {} % in user code (in loops that wait: unknown) + {} % in the kernel",
            parts[0], parts[1]
        );
    };
    let parts = rounded_parts(p.cpu_percent, &[spin, work, undecided, p.kernel_percent]);
    format!(
        "{total} = {} % (+- {error:.0}) in loops that wait + {} % in other code + {} % undecided \
         + {} % in the kernel",
        parts[0], parts[1], parts[2], parts[3]
    )
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
        lines.push("  loops that wait: % of the program's CPU time, or number of yields".into());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::BlockedIn;

    #[test]
    fn columns_that_fit() {
        let heads = |width| {
            let columns = Column::fitting(width);
            columns.iter().map(|c| c.0.head()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(heads(1), "PID PROGRAM CPU%");
        assert_eq!(heads(60), "PID PROGRAM STATE THR SLOT RUN CPU% SPIN%");
        assert_eq!(heads(80), "PID PROGRAM STATE THR SLOT RUN CPU% SPIN% THRT% BLK/s SAV/s MIG/s");
        assert!(heads(120).ends_with("MIG/s COMMAND"));
        for width in 40..250 {
            let columns = Column::fitting(width);
            let used = columns.iter().map(|c| c.1).sum::<usize>() + columns.len() - 1;
            assert!(used <= width && columns.iter().all(|c| c.1 >= c.0.width()), "{columns:?}");
        }
    }

    #[test]
    fn parts_of_the_cpu_time() {
        let mut p = Program {
            threads: 1,
            runnable: 1,
            cpu_percent: 100.0,
            machine_percent: 50.0,
            spin_percent: Some(60.4),
            spin_error_percent: Some(6.6),
            work_percent: Some(20.4),
            undecided_percent: Some(10.0),
            kernel_percent: 9.2,
            delay_percent: 150.0,
            blocks_per_s: Some(1.0),
            wakes_saved_per_s: Some(1234.0),
            migrations_per_s: Some(1.2),
            blocked_in: Some(
                [("futex", 3.0), ("read", 0.26), ("poll", 0.01)]
                    .map(|(call, threads)| BlockedIn { call: call.into(), threads })
                    .into(),
            ),
            ..Program::default()
        };
        assert_eq!(
            details(&p, 200),
            [
                "  1 thread: 1 runs or is ready",
                "  CPU time: 100 % of one CPU (50 % of the machine) = 61 % (+- 7) in loops that \
                 wait + 20 % in other code + 10 % undecided + 9 % in the kernel",
                "  on average, 1.5 threads waited for a CPU",
                "  1 wait and 1,234 wakes a second without a system call",
                "  1 migration between CPUs a second",
                "  average number of threads that wait in system calls: futex 3.0, read 0.3",
            ]
        );
        p.spin_percent = None;
        (p.threads, p.runnable, p.slots, p.limit) = (2, 2, Some(1), Some(1));
        let text = details(&p, 50);
        assert!(text.iter().all(|line| line.chars().count() <= 50), "{text:?}");
        assert_eq!(text[0], "  2 threads on 1 of 1 slot: 2 run or are ready");
        assert!(text.join(" ").contains("unknown) + 9 % in"), "{text:?}");
    }

    #[test]
    fn columns_are_documented() {
        let page = include_str!("../../../docs/guide/stat.md");
        for column in Column::ALL.into_iter().filter(|c| !c.meaning().is_empty()) {
            let row = format!("| {} | {} |", column.head(), column.meaning());
            assert!(page.contains(&row), "docs/guide/stat.md lacks {row}");
        }
    }
}
