//! Run measured programs with a time limit, and CPU hogs beside them.
//!
//! Each program gets its own process group, so that all its processes can be killed. The terminal's
//! signals therefore reach only this process. They interrupt its wait, and it kills the program.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::command::words;
use super::counters::Used;
use os::process;
use runtime::unpack;

/// The error after SIGINT, SIGTERM or SIGHUP, with the signal's number.
#[derive(Debug)]
pub struct Interrupted(pub i32);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted by signal {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// A temporary folder for compiled programs and files. Dropping it removes the folder.
pub struct Scratch(TempDir);

impl Scratch {
    pub fn create() -> anyhow::Result<Scratch> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("lissom-bench-").permissions(Permissions::from_mode(0o700));
        let made = folder.tempdir();
        // tempfile's own error has a random name.
        let made = made.map_err(|e| {
            let text = e.to_string();
            let cause = text.split(" at path ").next().unwrap_or(&text);
            let parent = std::env::temp_dir();
            anyhow!(
                "cannot create a folder in {}: {cause}; set TMPDIR to another",
                parent.display()
            )
        });
        Ok(Scratch(made?))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path().join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

/// The blocked signals that this process receives by sigtimedwait: SIGCHLD, and the signals that
/// interrupt a benchmark.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Block SIGCHLD, and SIGINT, SIGTERM and SIGHUP unless ignored, for the rest of this process.
    pub fn block() -> Signals {
        // SAFETY: plain system calls on sets that live on the stack.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            // With an inherited SIG_IGN, the kernel would discard our children's exit status.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigaddset(&mut set, libc::SIGCHLD);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut action);
                // Keep ignored signals ignored (nohup): if blocked, sigtimedwait would receive
                // them.
                if action.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&mut set, signal);
                }
            }
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            Signals(set)
        }
    }

    /// Wait for SIGCHLD, for at most `time`. May return early. Fails with `Interrupted` if another
    /// signal of the set arrives.
    pub fn wait_for_child(&self, time: Duration) -> anyhow::Result<()> {
        match self.wait(time) {
            0 | libc::SIGCHLD => Ok(()),
            signal => bail!(Interrupted(signal)),
        }
    }

    /// Wait for a signal of the set, for at most `time`. Returns its number, or 0 without one.
    fn wait(&self, time: Duration) -> i32 {
        let time = libc::timespec {
            tv_sec: time.as_secs().min(1 << 30) as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: the set and the time are valid; the pointer to the signal's details may be null.
        unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &time) }.max(0)
    }
}

/// Return whether an environment variable changes how programs run. Measured programs do not
/// inherit such variables.
pub fn disturbs(name: &OsStr) -> bool {
    ["OMP_", "GOMP_", "KMP_", "LISSOM"].iter().any(|p| name.as_bytes().starts_with(p.as_bytes()))
}

/// Build the command of a measured program: in its own process group, with no signal blocked and no
/// input. It does not inherit variables that `disturbs` rejects, nor lissom's runtime. The kernel
/// kills it when this process dies.
fn prepare(command: &[OsString]) -> Command {
    let mut prepared = Command::new(&command[0]);
    prepared.args(&command[1..]).stdin(Stdio::null()).process_group(0);
    for (name, _) in std::env::vars_os() {
        if disturbs(&name) {
            prepared.env_remove(name);
        }
    }
    // Native runs have no runtime, even if this process itself runs under `lissom run`.
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
    // SAFETY: between fork and exec, the closure only makes system calls, on a set on the stack.
    unsafe {
        prepared.pre_exec(|| {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            // After a SIGKILL, this process cannot kill the program itself.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    prepared
}

pub enum Ended {
    /// Exit code 0, with the standard output.
    Well(String),
    /// Another exit code, or a signal, with the line of standard error that names the error.
    Badly(String),
    /// The time limit expired.
    TooSlow,
}

/// A started program. Dropping it kills the program's process group.
pub struct Running {
    child: Child,
    begun: Instant,
    out: PathBuf,
    err: PathBuf,
    is_reaped: bool,
}

/// A program that exited by itself.
pub struct Exited {
    pub ended: Ended,
    pub seconds: f64,
    pub used: Used,
    pub printed: Printed,
}

/// Length and hash of a standard output, to compare outputs byte by byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Printed {
    pub bytes: usize,
    hash: u64,
}

impl Printed {
    pub fn of(output: &[u8]) -> Printed {
        let mut hasher = DefaultHasher::new();
        hasher.write(output);
        Printed { bytes: output.len(), hash: hasher.finish() }
    }
}

impl Running {
    /// Start a program. It writes to the files NAME.stdout and NAME.stderr in `scratch`, so no
    /// other running program may have the same `name`. `cpus`: its affinity mask, if not this
    /// process's.
    pub fn start(
        command: &[OsString],
        scratch: &Scratch,
        name: &str,
        cpus: Option<&[usize]>,
    ) -> anyhow::Result<Running> {
        // Unlike pipes, files need no reader while the program runs.
        let file = |what: &str| scratch.path().join(format!("{name}.{what}"));
        let (out, err) = (file("stdout"), file("stderr"));
        let mut prepared = prepare(command);
        if let Some(cpus) = cpus {
            let set = process::cpu_set(cpus);
            // SAFETY: between fork and exec, the closure makes one system call, on a set it owns.
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

    /// Send SIGTERM to the program, but not to its children. It must not have been reaped.
    pub fn ask_to_end(&self) {
        assert!(!self.is_reaped);
        if let Ok(pid) = libc::pid_t::try_from(self.child.id()) {
            process::signal(pid, Signal::SIGTERM);
        }
    }

    /// Reap the program if it has exited. Returns `None` while it runs. Must not be called again
    /// after the exit.
    pub fn poll(&mut self) -> anyhow::Result<Option<Exited>> {
        assert!(!self.is_reaped);
        let Some((status, used)) = self.reap(libc::WNOHANG)? else { return Ok(None) };
        let seconds = self.seconds();
        let output = fs::read(&self.out)?;
        let printed = Printed::of(&output);
        let ended = if status.success() {
            Ended::Well(String::from_utf8_lossy(&output).into_owned())
        } else {
            let said = fs::read(&self.err).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = error_line(&said);
            let why = format!("{}: {last}", describe(status));
            Ended::Badly(why.trim_end_matches(": ").to_string())
        };
        Ok(Some(Exited { ended, seconds, used, printed }))
    }

    /// Kill the program's process group. Returns the CPU seconds that the program used.
    pub fn stop(mut self) -> anyhow::Result<f64> {
        kill_group(&self.child);
        Ok(self.reap(0)?.map_or(0.0, |(_, used)| used.cpu_seconds()))
    }

    /// Call wait4 with `options`. Returns the exit status and the resources used, or `None` if the
    /// program still runs.
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
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_reaped {
            kill_group(&self.child);
            let _ = self.reap(0);
        }
    }
}

/// Run a program to its end, for at most `limit`; kill it then. Fails with `Interrupted`, or if it
/// cannot be started.
pub fn run(
    command: &[OsString],
    signals: &Signals,
    scratch: &Scratch,
    limit: Duration,
) -> anyhow::Result<Ended> {
    Ok(run_counted(command, signals, scratch, limit)?.map_or(Ended::TooSlow, |exited| exited.ended))
}

/// Run a program and count the resources it uses. Returns `None` if it was killed after `limit`.
/// Fails with `Interrupted`, or if it cannot be started.
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

/// Return the line of standard error that names the error. Nearly all programs, Python included,
/// print it last. If a hint follows, as for wrong options, it is the line starting with "error: ".
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

/// Kill the process group of `leader`. It must not have been reaped: another group could have its
/// ID by then.
fn kill_group(leader: &Child) {
    if let Ok(pid) = libc::pid_t::try_from(leader.id()) {
        process::signal(-pid, Signal::SIGKILL);
    }
}

/// Processes that use all CPU time they can get. Dropping `Hogs` kills them.
pub struct Hogs(Vec<Child>);

impl Hogs {
    pub fn none() -> Hogs {
        Hogs(Vec::new())
    }

    /// Start one hog on each CPU that this process may use. `program`: the workload `sync`.
    pub fn start(program: &Path) -> anyhow::Result<Hogs> {
        let mut hogs = Hogs::none();
        for cpu in process::allowed_cpus() {
            hogs.add(program, words!["--cpu", cpu.to_string()])?;
        }
        Ok(hogs)
    }

    fn add(&mut self, program: &Path, options: Vec<OsString>) -> anyhow::Result<()> {
        let command = [words![program, "hog"], options].concat();
        let child =
            prepare(&command).stdout(Stdio::null()).spawn().context("cannot start the CPU hog")?;
        self.0.push(child);
        Ok(())
    }

    /// Start `number` hogs without pinning them. `program`: the workload `sync`.
    pub fn anywhere(program: &Path, number: u32) -> anyhow::Result<Hogs> {
        let mut hogs = Hogs::none();
        for _ in 0..number {
            hogs.add(program, vec![])?;
        }
        Ok(hogs)
    }

    /// Fail if a hog has exited, since the measurement is then invalid.
    pub fn check(&mut self) -> anyhow::Result<()> {
        for hog in &mut self.0 {
            if let Some(status) = hog.try_wait()? {
                bail!("a CPU hog ended: {}", describe(status));
            }
        }
        Ok(())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            kill_group(hog);
            let _ = hog.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ended {
        let scratch = Scratch::create().expect("a folder");
        // The test's other threads do not block SIGCHLD, and may consume it: keep the limit short.
        let signals = Signals::block();
        let command = words!["/bin/sh", "-c", script];
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
        // The grandchild keeps no pipe open, and is killed with its group.
        assert!(matches!(shell("sleep 60 & sleep 60", limit), Ended::TooSlow));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
