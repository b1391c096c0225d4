//! Waits that a signal ends.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use procfs::process::Process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub struct Stop {
    asked: Arc<AtomicBool>,
    woken: UnixStream,
}

impl Stop {
    /// Install handlers for SIGINT, SIGTERM and SIGHUP, unless it is ignored, as by nohup(1). The
    /// second signal ends the process at once.
    pub fn on_signals() -> io::Result<Stop> {
        let asked = Arc::new(AtomicBool::new(false));
        let (woken, waker) = UnixStream::pair()?;
        let status = Process::myself().and_then(|p| p.status());
        let is_ignored = |signal: i32| {
            status.as_ref().is_ok_and(|status| status.sigign >> (signal - 1) & 1 != 0)
        };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            signal_hook::flag::register_conditional_shutdown(signal, 1, asked.clone())?;
            signal_hook::flag::register(signal, asked.clone())?;
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(Stop { asked, woken })
    }

    pub fn asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// Wait until `until`, or until a signal arrives.
    pub fn wait(&self, until: Instant) {
        while !self.asked() && Instant::now() < until {
            self.wait_or_readable(until, None);
        }
    }

    /// Wait like `wait`, or until `other` is readable. May return early.
    pub fn wait_or_readable(&self, until: Instant, other: Option<BorrowedFd>) {
        let left = until.saturating_duration_since(Instant::now());
        if self.asked() || left.is_zero() {
            return;
        }
        let milliseconds = u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX);
        let mut wanted: Vec<PollFd> = [Some(self.woken.as_fd()), other]
            .into_iter()
            .flatten()
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        // An error counts as a wake-up: callers check the time.
        let _ = poll(&mut wanted, PollTimeout::from(milliseconds));
    }
}
