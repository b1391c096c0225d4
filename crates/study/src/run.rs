//! Run the commands of measurements, one after the other.

use std::io::{IsTerminal as _, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use serde_json::Value;
use signal_hook::iterator::Signals;

use super::Host;
use super::measurements::find;
use super::store::{self, Measured, State, Study};

/// Run the measurements in `needed`. Adds each result to `study`, and writes it to `file`. Returns
/// the exit code.
pub fn run(
    needed: &[&str],
    quick: bool,
    suites: &[PathBuf],
    host: &Host,
    study: &mut Study,
    file: &Path,
) -> anyhow::Result<i32> {
    // Both end a measurement instead of this process.
    let mut interrupts = Signals::new([libc::SIGINT, libc::SIGTERM])?;
    let mut code = 0;
    for (i, name) in needed.iter().enumerate() {
        let Some(measurement) = find(name) else { continue };
        let words = measurement.arguments(quick, host.cpus, suites);
        let shown = words.join(" ").trim_end_matches(" --json").to_string();
        ui::message!("[{}/{}] {}: {}", i + 1, needed.len(), measurement.name, measurement.what);
        let begun = Instant::now();
        let time =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let Ran { status, output, said, interrupted } = one(&words, &mut interrupts)?;
        let report: Option<Value> = serde_json::from_str(&output).ok();
        let state = match (&report, interrupted, status.code()) {
            (_, Some(_), _) => State::Interrupted,
            (Some(_), _, Some(0)) => State::Ok,
            (Some(_), ..) => State::Partly,
            (None, ..) => State::Failed,
        };
        let error = report.is_none().then(|| failure(status, &said));
        if let Some(error) = &error {
            ui::message!("  {error}");
        }
        let mut report = report.unwrap_or_default();
        store::prune(&mut report);
        let seconds = begun.elapsed().as_secs_f64();
        ui::message!("  {seconds:.0} s");
        // Keep earlier complete results in preference to failed or interrupted ones.
        let keep = state != State::Failed
            && !(state == State::Interrupted && study.measured.contains_key(*name));
        if keep || !study.measured.contains_key(*name) {
            study.measured.insert(
                (*name).into(),
                Measured {
                    command: format!("lissom {shown}"),
                    quick,
                    version: host.version.clone(),
                    commit: host.commit.clone(),
                    dirty: host.dirty,
                    time,
                    seconds,
                    machine: host.machine.clone(),
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

struct Ran {
    status: ExitStatus,
    output: String,
    /// Standard error, unless it is a terminal.
    said: String,
    /// Signal that has interrupted this process meanwhile.
    interrupted: Option<i32>,
}

/// Run lissom, and end it if a signal arrives here.
fn one(words: &[String], interrupts: &mut Signals) -> anyhow::Result<Ran> {
    let mut command =
        Command::new(std::env::current_exe().context("cannot find lissom's executable")?);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped());
    // On a terminal, lissom shows its progress. Otherwise keep its messages for an error.
    if !std::io::stderr().is_terminal() {
        command.stderr(Stdio::piped());
    }
    // SAFETY: a plain system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
    let mut child = command.spawn().context("cannot start lissom")?;
    let output = reader(child.stdout.take());
    let said = reader(child.stderr.take());
    let mut interrupted = None;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if let Some(signal) = interrupts.pending().next() {
            interrupted = Some(signal);
            // The terminal has sent a signal to the child, too; a second one is harmless.
            if let Ok(pid) = libc::pid_t::try_from(child.id()) {
                // SAFETY: plain system call. The child was not waited for, so the number is still
                // its own.
                unsafe { libc::kill(pid, libc::SIGTERM) };
            }
        }
        std::thread::sleep(POLL);
    };
    Ok(Ran { status, output: text(output), said: text(said), interrupted })
}

/// Interval between two checks whether a measurement has ended.
const POLL: Duration = Duration::from_millis(50);

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Keep bytes that were read before an error.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn text(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

fn failure(status: ExitStatus, said: &str) -> String {
    let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("");
    format!("it failed ({status}) {last}").trim_end().into()
}
