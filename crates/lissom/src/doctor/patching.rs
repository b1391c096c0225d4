//! Test whether and how code can be changed, with the steps of the runtime
//! (`runtime/patch/write.c`).

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use super::Finding;
use runtime::abi;

const PAGE: usize = 4096;
const CODE: i32 = libc::PROT_READ | libc::PROT_EXEC;
const OPEN: i32 = CODE | libc::PROT_WRITE;

/// A page of a file, mapped like code; or, without a file, a page like one of the runtime's stubs.
struct Page(*mut libc::c_void);

impl Page {
    fn map(file: Option<&fs::File>, protection: i32) -> io::Result<Page> {
        let (kind, fd) = file.map_or((libc::MAP_ANONYMOUS, -1), |f| (0, f.as_raw_fd()));
        // SAFETY: a new mapping; the result is checked.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), PAGE, protection, libc::MAP_PRIVATE | kind, fd, 0)
        };
        if page == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Page(page)) }
    }

    fn protect(&self, protection: i32) -> io::Result<()> {
        // SAFETY: our own page, to which nothing points.
        match unsafe { libc::mprotect(self.0, PAGE, protection) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn write(&self, memory: &fs::File) -> io::Result<()> {
        memory.write_all_at(b"lissom", self.0 as u64)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which nothing points.
        unsafe { libc::munmap(self.0, PAGE) };
    }
}

/// Results of the attempts.
struct Outcome {
    /// Make written memory executable, as for the runtime's stubs.
    stubs: io::Result<()>,
    /// Open /proc/self/mem.
    memory: io::Result<()>,
    /// Write to read-only code by /proc/self/mem.
    forced: io::Result<()>,
    /// Make code writable by mprotect, and write. None: not tried, because writes to read-only code
    /// work.
    by_mprotect: Option<io::Result<()>>,
}

fn try_all(asked_for: bool) -> io::Result<Outcome> {
    let stubs =
        Page::map(None, libc::PROT_READ | libc::PROT_WRITE).and_then(|page| page.protect(CODE));
    let file = fs::File::open("/proc/self/exe")?;
    let page = Page::map(Some(&file), CODE)?;
    let memory = match fs::OpenOptions::new().read(true).write(true).open("/proc/self/mem") {
        Ok(memory) => memory,
        Err(e) => return Ok(Outcome { stubs, memory: Err(e), forced: Ok(()), by_mprotect: None }),
    };
    let forced = page.write(&memory);
    let by_mprotect = (forced.is_err() || asked_for).then(|| {
        page.protect(OPEN)?;
        page.write(&memory)?;
        page.protect(CODE)
    });
    Ok(Outcome { stubs, memory: Ok(()), forced, by_mprotect })
}

pub fn finding() -> Finding {
    let asked_for = std::env::var(abi::ENV_PATCH).as_deref() == Ok("mprotect");
    match try_all(asked_for) {
        Ok(outcome) => judge(outcome, asked_for),
        Err(e) => Finding::off(WHAT, format!("cannot map code: {e}"), "mount /proc"),
    }
}

const WHAT: &str = "code patching";
const ALLOW: &str = "allow mprotect to make code writable (SELinux: execmem and execmod; systemd: \
                     MemoryDenyWriteExecute=no; prctl: PR_SET_MDWE; a seccomp filter)";

fn judge(outcome: Outcome, asked_for: bool) -> Finding {
    if let Err(e) = outcome.stubs {
        return Finding::off(WHAT, format!("memory cannot be made executable: {e}"), ALLOW);
    }
    if let Err(e) = outcome.memory {
        let fix = "mount /proc, and allow programs to write to /proc/self/mem";
        return Finding::off(WHAT, format!("cannot open /proc/self/mem: {e}"), fix);
    }
    match (outcome.forced, outcome.by_mprotect) {
        (Ok(()), None) => Finding::ok(WHAT, "through /proc/self/mem; no code is ever writable"),
        (forced, Some(Ok(()))) => {
            let (reason, fix) = match forced {
                Err(e) if !asked_for => (
                    format!("this kernel refuses forced writes to /proc/self/mem: {e}"),
                    "to avoid it, boot with proc_mem.force_override=always".to_string(),
                ),
                _ => {
                    let name = abi::ENV_PATCH;
                    (format!("{name} requests it"), format!("to avoid it, unset {name}"))
                }
            };
            let why = format!("pages of code are made writable by mprotect for a moment: {reason}");
            Finding { fix: Some(fix), ..Finding::ok(WHAT, why) }
        }
        (forced, by_mprotect) => {
            let reason = |r: io::Result<()>| r.err().map(|e| e.to_string()).unwrap_or_default();
            let mut why = format!(
                "mprotect does not make code writable: {}",
                reason(by_mprotect.unwrap_or(Ok(())))
            );
            if forced.is_err() {
                why += &format!("; and /proc/self/mem refuses forced writes: {}", reason(forced));
            }
            Finding::off(WHAT, why, format!("boot with proc_mem.force_override=always, or {ALLOW}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn outcome(forced: io::Result<()>, by_mprotect: Option<io::Result<()>>) -> Outcome {
        Outcome { stubs: Ok(()), memory: Ok(()), forced, by_mprotect }
    }

    fn error(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    #[test]
    fn ways() {
        let with_force = judge(outcome(Ok(()), None), false);
        assert!(with_force.state == State::Ok && with_force.fix.is_none());
        let without = judge(outcome(Err(error(libc::EIO)), Some(Ok(()))), false);
        assert!(without.state == State::Ok && without.why.contains("mprotect"));
        assert!(without.fix.is_some_and(|f| f.contains("force_override=always")));
        let asked_for = judge(outcome(Ok(()), Some(Ok(()))), true);
        assert!(asked_for.state == State::Ok && asked_for.why.contains(abi::ENV_PATCH));
    }

    #[test]
    fn refused() {
        let neither = judge(outcome(Err(error(libc::EIO)), Some(Err(error(libc::EACCES)))), false);
        assert!(
            neither.state == State::Off && neither.fix.is_some_and(|f| f.contains("PR_SET_MDWE"))
        );
        let stubs = Outcome { stubs: Err(error(libc::EACCES)), ..outcome(Ok(()), None) };
        assert!(judge(stubs, false).state == State::Off);
        let memory = Outcome { memory: Err(error(libc::ENOENT)), ..outcome(Ok(()), None) };
        assert!(judge(memory, false).state == State::Off);
    }

    #[test]
    fn both_ways_are_tried() {
        let outcome = try_all(true).expect("code can be mapped");
        assert!(outcome.stubs.is_ok() && outcome.memory.is_ok());
        assert!(outcome.by_mprotect.is_some_and(|r| r.is_ok()));
    }
}
