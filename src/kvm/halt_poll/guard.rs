//! Puts a parameter back, whatever happens to this process: a child outlives it that does.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};

use anyhow::Context as _;

use super::parameters::Parameters;

/// Said by the parent: there is nothing left to do.
const DONE: u64 = u64::MAX;

pub struct Guard {
    parameters: Parameters,
    name: &'static str,
    original: u32,
    /// What was last set.
    set: Option<u32>,
    pipe: File,
    child: libc::pid_t,
}

impl Guard {
    /// Pre: no other thread runs, because the child goes on with what this one has.
    pub fn new(parameters: &Parameters, name: &'static str) -> anyhow::Result<Guard> {
        let original = parameters.read_one(name)?;
        let (ours, theirs) = io::pipe().map(|(r, w)| (OwnedFd::from(w), OwnedFd::from(r)))?;
        // SAFETY: no other thread runs.
        let child = unsafe { libc::fork() };
        match child {
            -1 => Err(io::Error::last_os_error())
                .context("no process to put the value back in the end"),
            0 => {
                drop(ours);
                guard(parameters, name, original, File::from(theirs));
                // SAFETY: ends this process without what the parent has registered for its end.
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

    /// The child is told first: if this process ends before the value is written, what the child
    /// finds is one that it was told of earlier.
    pub fn set(&mut self, value: u32) -> anyhow::Result<()> {
        self.pipe
            .write_all(&u64::from(value).to_ne_bytes())
            .context("the process that puts the value back is gone")?;
        self.parameters.write(self.name, value)?;
        self.set = Some(value);
        Ok(())
    }

    /// Whether somebody else has changed it since. Then it is theirs.
    pub fn changed_by_others(&self) -> anyhow::Result<Option<u32>> {
        let now = self.parameters.read_one(self.name)?;
        Ok(Some(now).filter(|now| *now != self.set.unwrap_or(self.original)))
    }

    /// Puts it back, unless somebody else has changed it. Returns whether there was anything to put
    /// back.
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
        // If that failed, the child may succeed: it is not told that all is done.
        if self.restore().is_ok() {
            let _ = self.pipe.write_all(&DONE.to_ne_bytes());
        }
        if let Ok(null) = File::open("/dev/null") {
            // Closes the pipe.
            self.pipe = null;
        }
        // SAFETY: waits for our own child; no result is asked for.
        unsafe { libc::waitpid(self.child, std::ptr::null_mut(), 0) };
    }
}

/// In the child: until the pipe is closed, which the kernel does however the parent ends.
fn guard(parameters: &Parameters, name: &str, original: u32, mut pipe: File) {
    // SAFETY: plain calls in a process of one thread. Signals that end the parent, from a terminal
    // or a service manager, are not to end this one.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"lissom-restore".as_ptr());
    }
    // Whoever reads what the parent prints is not to wait for this process.
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        for fd in 0..=2 {
            // SAFETY: the standard streams are not used by anybody else here.
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
    // Anything else has been set by somebody else, and is theirs.
    if parameters.read_one(name).is_ok_and(|now| set.contains(&now)) {
        let _ = parameters.write(name, original);
    }
}

/// Held as long as any copy of the file is open, the child's too. None: somebody else holds it.
pub fn lock(file: File) -> io::Result<Option<OwnedFd>> {
    // SAFETY: plain call on a descriptor that we own.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        // SAFETY: it was just given up by its former owner.
        return Ok(Some(unsafe { OwnedFd::from_raw_fd(file.into_raw_fd()) }));
    }
    match io::Error::last_os_error() {
        e if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        e => Err(e),
    }
}
