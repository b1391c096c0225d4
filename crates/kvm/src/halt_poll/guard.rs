//! Restore a parameter however this process ends: a child process outlives it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};

use anyhow::Context as _;

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
    child: libc::pid_t,
}

impl Guard {
    /// Fork the child. Pre: no other thread runs, because the child continues with copies of this
    /// process's data.
    pub fn new(parameters: &Parameters, name: &'static str) -> anyhow::Result<Guard> {
        let original = parameters.read_one(name)?;
        let (ours, theirs) = io::pipe().map(|(r, w)| (OwnedFd::from(w), OwnedFd::from(r)))?;
        // SAFETY: no other thread runs.
        let child = unsafe { libc::fork() };
        match child {
            -1 => Err(io::Error::last_os_error())
                .context("cannot start the process that restores the value"),
            0 => {
                drop(ours);
                guard(parameters, name, original, File::from(theirs));
                // SAFETY: ends the child without running the parent's exit handlers.
                unsafe { libc::_exit(0) }
            }
            _ => Ok(Guard {
                parameters: parameters.clone(),
                name,
                original,
                set: None,
                pipe: File::from(ours),
                child,
            }),
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
        // SAFETY: waits for our own child; a null status pointer is allowed.
        unsafe { libc::waitpid(self.child, std::ptr::null_mut(), 0) };
    }
}

/// The child: wait until the kernel closes the pipe, however the parent ends. Then restore the
/// value.
fn guard(parameters: &Parameters, name: &str, original: u32, mut pipe: File) {
    // SAFETY: plain calls in a process with one thread. Signals from a terminal or a service
    // manager that end the parent must not end this process.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"lissom-restore".as_ptr());
    }
    // A reader of the parent's output must not wait for this process: drop the standard streams.
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        for fd in 0..=2 {
            // SAFETY: nothing else uses the standard streams in this process.
            unsafe { libc::dup2(null.as_raw_fd(), fd) };
        }
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

/// Lock a file until all its descriptors are closed, including the child's. Returns None if another
/// process holds the lock.
pub fn lock(file: File) -> io::Result<Option<OwnedFd>> {
    // SAFETY: plain call on a descriptor that we own.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        // SAFETY: into_raw_fd gives up the ownership of the descriptor.
        return Ok(Some(unsafe { OwnedFd::from_raw_fd(file.into_raw_fd()) }));
    }
    match io::Error::last_os_error() {
        e if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        e => Err(e),
    }
}
