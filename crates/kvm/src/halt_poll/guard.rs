//! Restore a parameter however this process ends: a child process outlives it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd};

use anyhow::Context as _;
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};

use super::parameters::Parameters;

/// Message from the parent: nothing is left to restore.
const DONE: u64 = u64::MAX;

pub struct Guard {
    parameters: Parameters,
    name: &'static str,
    original: u32,
    /// The value set last.
    set: Option<u32>,
    pipe: File,
    child: Pid,
}

impl Guard {
    /// Fork the child. Pre: no other thread runs, because the child continues with copies of this
    /// process's data.
    pub fn new(parameters: &Parameters, name: &'static str) -> anyhow::Result<Guard> {
        let original = parameters.read_one(name)?;
        let (theirs, ours) = io::pipe().map(|(r, w)| (OwnedFd::from(r), OwnedFd::from(w)))?;
        // SAFETY: no other thread runs.
        match unsafe { fork() }.context("cannot start the process that restores the value")? {
            ForkResult::Child => {
                drop(ours);
                guard(parameters, name, original, theirs.into());
                // SAFETY: ends the child without running the parent's exit handlers.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => {
                let (parameters, pipe) = (parameters.clone(), ours.into());
                Ok(Guard { parameters, name, original, set: None, pipe, child })
            }
        }
    }

    pub fn original(&self) -> u32 {
        self.original
    }

    /// Set the value. The child is notified first: so it knows each value that this process may
    /// have written before it ends.
    pub fn set(&mut self, value: u32) -> anyhow::Result<()> {
        self.pipe
            .write_all(&u64::from(value).to_ne_bytes())
            .context("the process that restores the value has ended")?;
        self.parameters.write(self.name, value)?;
        self.set = Some(value);
        Ok(())
    }

    /// Returns the current value if another program has set it, which then keeps it.
    pub fn changed_by_others(&self) -> anyhow::Result<Option<u32>> {
        let now = self.parameters.read_one(self.name)?;
        Ok(Some(now).filter(|now| *now != self.set.unwrap_or(self.original)))
    }

    /// Restore the original value, unless another program has changed it. Returns whether a value
    /// was restored.
    pub fn restore(&mut self) -> anyhow::Result<bool> {
        let is_ours = self.set.is_some() && self.changed_by_others()?.is_none();
        if is_ours {
            self.parameters.write(self.name, self.original)?;
        }
        self.set = None;
        Ok(is_ours)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // If this fails, do not send DONE: the child may succeed.
        if self.restore().is_ok() {
            let _ = self.pipe.write_all(&DONE.to_ne_bytes());
        }
        if let Ok(null) = File::open("/dev/null") {
            // Close the pipe by replacing it.
            self.pipe = null;
        }
        let _ = waitpid(self.child, None);
    }
}

/// The child: wait until the kernel closes the pipe, however the parent ends. Then restore the
/// value.
fn guard(parameters: &Parameters, name: &str, original: u32, mut pipe: File) {
    // Signals from a terminal or a service manager that end the parent must not end this process.
    let _ = setsid();
    for end in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE] {
        // SAFETY: the signal is ignored, without a handler.
        let _ = unsafe { signal(end, SigHandler::SigIgn) };
    }
    let _ = prctl::set_name(c"lissom-restore");
    // A reader of the parent's output must not wait for this process: drop the standard streams.
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null).and(dup2_stdout(&null)).and(dup2_stderr(&null));
        if null.as_raw_fd() <= 2 {
            let _ = null.into_raw_fd();
        }
    }
    let (mut word, mut set) = ([0; 8], Vec::new());
    while pipe.read_exact(&mut word).is_ok() {
        match u64::from_ne_bytes(word) {
            DONE => return,
            value => set.extend(u32::try_from(value)),
        }
    }
    // Restore only a value that the parent has set.
    if parameters.read_one(name).is_ok_and(|now| set.contains(&now)) {
        let _ = parameters.write(name, original);
    }
}
