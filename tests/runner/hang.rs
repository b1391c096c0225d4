//! Report where the threads of a hanging case are, and kill its session.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Maximum number of threads shown of each process; the rest are only counted.
const SHOWN: usize = 48;

/// Return the processes of the session, ordered by pid.
fn members(session: i32) -> Vec<i32> {
    let mut found: Vec<i32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .filter(|&pid| {
            stat(Path::new(&format!("/proc/{pid}"))).is_some_and(|s| s.session == session)
        })
        .collect();
    found.sort_unstable();
    found
}

struct Stat {
    state: String,
    session: i32,
    ticks: u64,
}

/// Parse the fields after the name, which may itself contain blanks and parentheses.
fn stat(folder: &Path) -> Option<Stat> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|f| f.parse::<u64>().ok());
    Some(Stat {
        state: fields.first()?.to_string(),
        session: fields.get(3)?.parse().ok()?,
        ticks: ticks(11)? + ticks(12)?,
    })
}

pub fn describe(session: i32) -> String {
    let mut text = String::new();
    for pid in members(session) {
        let folder = format!("/proc/{pid}");
        let command = fs::read(format!("{folder}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let command: String = command.chars().take(200).collect();
        let _ = writeln!(text, "process {pid}: {command}");
        describe_threads(&folder, &mut text);
        stacks(pid, &mut text);
    }
    text
}

fn describe_threads(folder: &str, text: &mut String) {
    let task = format!("{folder}/task");
    let mut threads: Vec<_> =
        fs::read_dir(task).into_iter().flatten().flatten().map(|e| e.path()).collect();
    threads.sort();
    // Read the CPU times twice to show which threads use a CPU.
    let before: Vec<u64> = threads.iter().map(|t| stat(t).map_or(0, |s| s.ticks)).collect();
    std::thread::sleep(Duration::from_millis(200));
    for (thread, before) in threads.iter().zip(before).take(SHOWN) {
        let read = |name: &str| fs::read_to_string(thread.join(name)).unwrap_or_default();
        let Some(stat) = stat(thread) else { continue };
        let tid = thread.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(
            text,
            "  {tid} {:<15} {} cpu {:.2} s (+{:.2})  {}  {}",
            read("comm").trim(),
            stat.state,
            stat.ticks as f64 / 100.0,
            stat.ticks.saturating_sub(before) as f64 / 100.0,
            read("wchan").trim(),
            read("syscall").trim(),
        );
    }
    if threads.len() > SHOWN {
        let _ = writeln!(text, "  ... and {} more threads", threads.len() - SHOWN);
    }
}

/// Append the threads' call stacks if gdb is installed.
fn stacks(pid: i32, text: &mut String) {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "20", "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off"]);
    command.args(["-ex", "thread apply all -q bt 10", "-p", &pid.to_string()]);
    let Ok(output) = command.stdin(Stdio::null()).output() else { return };
    let stacks = String::from_utf8_lossy(&output.stdout).into_owned();
    let from = stacks.find("\nThread ").unwrap_or(stacks.len());
    text.extend(stacks[from..].lines().take(400).map(|l| format!("  {l}\n")));
}

/// Kill every process of the session, including those that changed their process group.
pub fn kill_session(session: i32) {
    // Repeat: a process may fork during the scan, and a killed process takes a moment to die.
    for _ in 0..100 {
        let alive: Vec<i32> = members(session)
            .into_iter()
            .filter(|pid| stat(Path::new(&format!("/proc/{pid}"))).is_some_and(|s| s.state != "Z"))
            .collect();
        if alive.is_empty() {
            return;
        }
        for pid in alive {
            // SAFETY: plain system call.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
