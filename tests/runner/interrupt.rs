//! Kill the sessions of running cases when the runner is interrupted: a Ctrl-C does not reach
//! them.

use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

/// Sessions of running cases; 0 marks a free entry.
static RUNNING: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

pub struct Watched(Option<&'static AtomicI32>);

/// Keep the session in RUNNING for the lifetime of the result.
pub fn watch(session: i32) -> Watched {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let handler: extern "C" fn(libc::c_int) = end;
            // SAFETY: the handler only makes async-signal-safe calls.
            unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        }
    });
    // If all entries are taken, this session is not watched.
    let free = |place: &&AtomicI32| place.compare_exchange(0, session, SeqCst, SeqCst).is_ok();
    Watched(RUNNING.iter().find(free))
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(0, SeqCst);
        }
    }
}

extern "C" fn end(signal: libc::c_int) {
    for place in &RUNNING {
        let session = place.load(SeqCst);
        if session != 0 {
            // SAFETY: plain system call. It kills the leader's process group; groups that the case
            // made are not reached.
            unsafe { libc::kill(-session, libc::SIGKILL) };
        }
    }
    // SAFETY: ends the process without running anything else.
    unsafe { libc::_exit(128 + signal) }
}
