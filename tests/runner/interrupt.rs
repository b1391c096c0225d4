//! Cases run in sessions of their own, which a Ctrl-C does not reach: whoever ends the runner ends
//! them too.

use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

/// Sessions that are running; 0 is a free place.
static RUNNING: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

pub struct Watched(Option<&'static AtomicI32>);

/// Keeps the session on the list for as long as the result lives.
pub fn watch(session: i32) -> Watched {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let handler: extern "C" fn(libc::c_int) = end;
            // SAFETY: the handler only makes async-signal-safe calls.
            unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        }
    });
    // With more cases at a time than places, the rest is not watched.
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
            // SAFETY: plain system call. The leader's process group is the session, unless the case
            // made more.
            unsafe { libc::kill(-session, libc::SIGKILL) };
        }
    }
    // SAFETY: ends the process without running anything else.
    unsafe { libc::_exit(128 + signal) }
}
