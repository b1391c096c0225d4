//! Runs the commands of measurements, one after the other.

use std::io::{IsTerminal as _, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;

use super::measurements::find;
use super::store::{self, Measured, State, Study};
use crate::bench::child::{Interrupted, Scratch, Signals};
use crate::bench::machine::Machine;
use crate::bench::programs::suites::Suites;
use crate::bench::time;
use crate::version;

/// Adds to `study` and writes it after each. Post: the exit code.
pub fn run(
    needed: &[&str],
    quick: bool,
    suites: &Suites,
    study: &mut Study,
    file: &Path,
) -> anyhow::Result<i32> {
    let signals = Signals::block();
    let scratch = Scratch::create()?;
    let machine = Machine::look();
    let mut code = 0;
    for (i, name) in needed.iter().enumerate() {
        let Some(measurement) = find(name) else { continue };
        let words = measurement.arguments(quick, machine.cpus, suites);
        let shown = words.join(" ").trim_end_matches(" --json -").to_string();
        eprintln!("[{}/{}] {}: {}", i + 1, needed.len(), measurement.name, measurement.what);
        let (begun, time) = (Instant::now(), time());
        let (status, text, said, interrupted) = one(&words, &scratch, &signals)?;
        let report: Option<Value> = serde_json::from_str(&text).ok();
        let state = match (&report, interrupted, status.code()) {
            (_, Some(_), _) => State::Interrupted,
            (Some(_), _, Some(0)) => State::Ok,
            (Some(_), ..) => State::Partly,
            (None, ..) => State::Failed,
        };
        let error = report.is_none().then(|| failure(status, &said));
        if let Some(error) = &error {
            eprintln!("  {error}");
        }
        let mut report = report.unwrap_or_default();
        store::prune(&mut report);
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("  {seconds:.0} s");
        // What was complete before is better than nothing now.
        let keep = state != State::Failed
            && !(state == State::Interrupted && study.measured.contains_key(*name));
        if keep || !study.measured.contains_key(*name) {
            let machine = serde_json::to_value(&machine).context("the machine")?;
            let version = env!("CARGO_PKG_VERSION").to_string();
            let (commit, dirty) = version::built_from();
            let command = format!("lissom {shown}");
            study.measured.insert(
                (*name).into(),
                Measured {
                    command,
                    quick,
                    version,
                    commit,
                    dirty,
                    time,
                    seconds,
                    machine,
                    state,
                    error,
                    report,
                },
            );
            study.write(file)?;
        }
        if let Some(signal) = interrupted {
            return Ok(128 + signal);
        }
        if state != State::Ok {
            code = 1;
        }
    }
    Ok(code)
}

type Ran = (ExitStatus, String, String, Option<i32>);

/// How it ended, what it wrote to standard output and to standard error (if nobody saw it), and the
/// signal that ended us.
fn one(words: &[String], scratch: &Scratch, signals: &Signals) -> anyhow::Result<Ran> {
    let mut out = tempfile(scratch, "measurement.stdout")?;
    let mut err = tempfile(scratch, "measurement.stderr")?;
    let mut command = Command::new(std::env::current_exe().context("lissom's own path")?);
    command.args(words).stdin(Stdio::null()).stdout(out.try_clone()?);
    // Its progress is shown where somebody looks, and its last words kept where nobody does.
    if !std::io::stderr().is_terminal() {
        command.stderr(err.try_clone()?);
    }
    // SAFETY: system calls only, on a set on the stack, between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
    let mut child = command.spawn().context("lissom cannot be started")?;
    let (status, interrupted) = wait(&mut child, signals)?;
    Ok((status, text(&mut out)?, text(&mut err)?, interrupted))
}

fn wait(child: &mut Child, signals: &Signals) -> anyhow::Result<(ExitStatus, Option<i32>)> {
    let mut interrupted = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, interrupted));
        }
        if let Err(error) = signals.wait_for_child(Duration::from_secs(1)) {
            let Some(Interrupted(signal)) = error.downcast_ref::<Interrupted>() else {
                return Err(error);
            };
            interrupted = Some(*signal);
            // The terminal has told it as well; a second time is harmless.
            if let Ok(pid) = libc::pid_t::try_from(child.id()) {
                // SAFETY: plain system call. It has not been waited for, so the number is still its
                // own.
                unsafe { libc::kill(pid, libc::SIGTERM) };
            }
        }
    }
}

fn tempfile(scratch: &Scratch, name: &str) -> anyhow::Result<std::fs::File> {
    let path = scratch.path().join(name);
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    options.open(&path).with_context(|| path.display().to_string())
}

fn text(file: &mut std::fs::File) -> anyhow::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn failure(status: ExitStatus, said: &str) -> String {
    let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("");
    format!("it failed ({status}) {last}").trim_end().into()
}
