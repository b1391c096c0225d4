//! Starts the programs that are measured, with a time limit, and the CPU hogs beside them.
//!
//! A program gets a process group of its own, so that all of it can be ended. The terminal's
//! signals do not reach it then: they end the waiting here, and that ends the program.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::counters::Used;
use crate::{process, unpack};

/// The user has had enough; the number is that of the signal.
#[derive(Debug)]
pub struct Interrupted(pub i32);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted by signal {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// A folder for what is built and written on the way. Gone in the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn create() -> anyhow::Result<Scratch> {
        let mut template =
            std::env::temp_dir().join("lissom-bench-XXXXXX").into_os_string().into_vec();
        template.push(0);
        // SAFETY: a template with its terminating zero, which mkdtemp overwrites in place.
        let made = unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) };
        template.pop();
        let path = PathBuf::from(OsString::from_vec(template));
        if made.is_null() {
            return Err(io::Error::last_os_error())
                .context(format!("{} cannot be made: TMPDIR must name a folder", path.display()));
        }
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The signals that this process waits for instead of being ended or disturbed by them.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks them, for the rest of this process.
    pub fn block() -> Signals {
        // SAFETY: plain system calls on sets that live on the stack.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            // An inherited SIG_IGN would reap our children before we learn how they ended.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigaddset(&mut set, libc::SIGCHLD);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut action);
                // Ignored signals stay so (nohup): a blocked one would be delivered to
                // sigtimedwait.
                if action.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&mut set, signal);
                }
            }
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            Signals(set)
        }
    }

    /// Until a child has ended, perhaps, or the time is over. The error is `Interrupted`.
    pub fn wait_for_child(&self, time: Duration) -> anyhow::Result<()> {
        match self.wait(time) {
            0 | libc::SIGCHLD => Ok(()),
            signal => bail!(Interrupted(signal)),
        }
    }

    /// The next of them; 0 when the time is over first.
    fn wait(&self, time: Duration) -> i32 {
        let time = libc::timespec {
            tv_sec: time.as_secs().min(1 << 30) as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: the set is blocked; no information is asked for.
        unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &time) }.max(0)
    }
}

/// Whether a variable changes how programs are run, so that those that are measured do not have the
/// user's.
pub fn disturbs(name: &OsStr) -> bool {
    ["OMP_", "GOMP_", "KMP_", "LISSOM"].iter().any(|p| name.as_bytes().starts_with(p.as_bytes()))
}

/// A command that will run with its signals as they should be, and that ends with this process.
fn prepare(command: &[OsString]) -> Command {
    let mut prepared = Command::new(&command[0]);
    prepared.args(&command[1..]).stdin(Stdio::null()).process_group(0);
    for (name, _) in std::env::vars_os() {
        // They would change what is measured.
        if disturbs(&name) {
            prepared.env_remove(name);
        }
    }
    // Native is without the runtime, also when this process runs under an outer `lissom run`.
    if let Some(list) = std::env::var_os("LD_PRELOAD") {
        let others: Vec<&OsStr> = list
            .as_bytes()
            .split(|b| b" :".contains(b))
            .map(OsStr::from_bytes)
            .filter(|e| !e.is_empty() && !unpack::is_runtime(e))
            .collect();
        if others.is_empty() {
            prepared.env_remove("LD_PRELOAD");
        } else {
            prepared.env("LD_PRELOAD", others.join(OsStr::new(":")));
        }
    }
    // SAFETY: system calls only, on a set on the stack, between fork and exec.
    unsafe {
        prepared.pre_exec(|| {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            // If this process is killed outright, nobody would end the program.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    prepared
}

pub enum Ended {
    /// Exit code 0; what it wrote to standard output.
    Well(String),
    Badly(String),
    TooSlow,
}

/// A program that has been started. It is ended when this is dropped.
pub struct Running {
    child: Child,
    begun: Instant,
    out: PathBuf,
    err: PathBuf,
    is_reaped: bool,
}

/// One that has ended by itself.
pub struct Exited {
    pub ended: Ended,
    pub seconds: f64,
    pub used: Used,
}

impl Running {
    /// `name`: of the files in `scratch` that it writes to, no other program's at the same time.
    /// `cpus`: those that it may use, or else those of this process.
    pub fn start(
        command: &[OsString],
        scratch: &Scratch,
        name: &str,
        cpus: Option<&[usize]>,
    ) -> anyhow::Result<Running> {
        // Files and no pipes: nobody has to read while the program runs.
        let file = |what: &str| scratch.path().join(format!("{name}.{what}"));
        let (out, err) = (file("stdout"), file("stderr"));
        let mut prepared = prepare(command);
        if let Some(cpus) = cpus {
            let set = process::cpu_set(cpus);
            // SAFETY: one system call on a set that it owns, between fork and exec.
            unsafe { prepared.pre_exec(move || process::set_affinity(&set)) };
        }
        let begun = Instant::now();
        let child = prepared
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?)
            .spawn()
            .with_context(|| command[0].to_string_lossy().into_owned())?;
        Ok(Running { child, begun, out, err, is_reaped: false })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Post: it, and nothing that it has started, has been asked to end by SIGTERM.
    pub fn ask_to_end(&self) {
        assert!(!self.is_reaped);
        if let Ok(pid) = libc::pid_t::try_from(self.child.id()) {
            // SAFETY: plain system call. It has not been waited for, so the number is still its
            // own.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
    }

    /// None: it runs. Once it has ended, this is not asked again.
    pub fn poll(&mut self) -> anyhow::Result<Option<Exited>> {
        assert!(!self.is_reaped);
        let Some((status, used)) = self.reap(libc::WNOHANG)? else { return Ok(None) };
        let seconds = self.seconds();
        let ended = if status.success() {
            Ended::Well(String::from_utf8_lossy(&fs::read(&self.out)?).into_owned())
        } else {
            let said = fs::read(&self.err).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = error_line(&said);
            let why = [describe(status).as_str(), last].join(": ");
            Ended::Badly(why.trim_end_matches(": ").to_string())
        };
        Ok(Some(Exited { ended, seconds, used }))
    }

    /// Ends it. Post: the CPU seconds that it has used.
    pub fn stop(mut self) -> anyhow::Result<f64> {
        self.kill_group();
        Ok(self.reap(0)?.map_or(0.0, |(_, used)| used.cpu_seconds()))
    }

    /// How it has ended, and what it has used.
    fn reap(&mut self, options: libc::c_int) -> anyhow::Result<Option<(ExitStatus, Used)>> {
        let pid = libc::pid_t::try_from(self.child.id())?;
        let mut status = 0;
        // SAFETY: all zeros is a valid rusage; the pointers are to the stack.
        let (reaped, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid, &mut status, options, &mut usage), usage)
        };
        if reaped < 0 {
            return Err(io::Error::last_os_error()).context("wait4");
        }
        if reaped == 0 {
            return Ok(None);
        }
        self.is_reaped = true;
        Ok(Some((ExitStatus::from_raw(status), Used::from(&usage))))
    }

    /// Kills all of it. Before the leader is waited for, so its number cannot belong to another
    /// group.
    fn kill_group(&self) {
        if let Ok(pid) = libc::pid_t::try_from(self.child.id()) {
            // SAFETY: plain system call.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill_group();
            let _ = self.reap(0);
        }
    }
}

/// Runs a program to its end. The error is `Interrupted`, or that it could not be run at all.
pub fn run(
    command: &[OsString],
    signals: &Signals,
    scratch: &Scratch,
    limit: Duration,
) -> anyhow::Result<Ended> {
    Ok(run_counted(command, signals, scratch, limit)?.map_or(Ended::TooSlow, |exited| exited.ended))
}

/// The same, and what it has used. None: it was too slow.
pub fn run_counted(
    command: &[OsString],
    signals: &Signals,
    scratch: &Scratch,
    limit: Duration,
) -> anyhow::Result<Option<Exited>> {
    let mut running = Running::start(command, scratch, "program", None)?;
    let deadline = running.begun + limit;
    loop {
        if let Some(exited) = running.poll()? {
            return Ok(Some(exited));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        signals.wait_for_child(left)?;
    }
}

/// The last line is the error in nearly all programs, Python included; not where options are wrong,
/// and a hint follows.
fn error_line(said: &str) -> &str {
    let mut lines = said.lines().rev().filter(|l| !l.trim().is_empty());
    let last = lines.next().unwrap_or("");
    lines.find(|l| l.starts_with("error: ")).unwrap_or(last)
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended in an unknown way".into(),
    }
}

/// Kills the whole group. Before the leader is waited for, so its number cannot belong to another
/// group.
fn end(child: &mut Child) {
    if let Ok(pid) = libc::pid_t::try_from(child.id()) {
        // SAFETY: plain system call.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
    let _ = child.wait();
}

/// Processes that take what CPU time they can get.
pub struct Hogs(Vec<Child>);

impl Hogs {
    pub fn none() -> Hogs {
        Hogs(Vec::new())
    }

    /// One on each CPU that this process may use. `program` is the workload `sync`.
    pub fn start(program: &Path) -> anyhow::Result<Hogs> {
        let mut hogs = Hogs::none();
        for cpu in process::allowed_cpus() {
            hogs.add(program, &["--cpu".into(), cpu.to_string().into()])?;
        }
        Ok(hogs)
    }

    fn add(&mut self, program: &Path, options: &[OsString]) -> anyhow::Result<()> {
        let command = [&[program.into(), "hog".into()], options].concat();
        let child = prepare(&command).stdout(Stdio::null()).spawn().context("the CPU hog")?;
        self.0.push(child);
        Ok(())
    }

    /// So many, which run where the kernel puts them.
    pub fn anywhere(program: &Path, number: u32) -> anyhow::Result<Hogs> {
        let mut hogs = Hogs::none();
        for _ in 0..number {
            hogs.add(program, &[])?;
        }
        Ok(hogs)
    }

    /// A measurement beside hogs that have died would be none.
    pub fn check(&mut self) -> anyhow::Result<()> {
        for hog in &mut self.0 {
            if let Some(status) = hog.try_wait()? {
                bail!("a CPU hog has ended: {}", describe(status));
            }
        }
        Ok(())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ended {
        let scratch = Scratch::create().expect("a folder");
        // Only SIGCHLD matters here, and the test's other threads leave it to the process: so short
        // waits.
        let signals = Signals::block();
        let command = ["/bin/sh".into(), "-c".into(), script.into()];
        run(&command, &signals, &scratch, limit).expect("a shell")
    }

    #[test]
    fn ends() {
        let limit = Duration::from_millis(300);
        assert!(matches!(shell("echo hello", limit), Ended::Well(out) if out == "hello\n"));
        let bad = shell("echo first >&2; echo last >&2; exit 3", limit);
        assert!(matches!(bad, Ended::Badly(why) if why == "exit code 3: last"));
        let killed = shell("kill -KILL $$", limit);
        assert!(matches!(killed, Ended::Badly(why) if why == "killed by signal 9"));
        let begun = Instant::now();
        // The grandchild holds the pipe of no one, and is killed with its group.
        assert!(matches!(shell("sleep 60 & sleep 60", limit), Ended::TooSlow));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
