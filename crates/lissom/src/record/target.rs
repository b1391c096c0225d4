//! The process to record: one that runs, or one that is started.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command};

use anyhow::bail;
use nix::sys::signal::Signal;
use procfs::process::{Process, StatFlags};

use os::process;
use os::program;
use ui::exit::Failure;
use watch::trace::Tracing;

pub struct Target {
    pub pid: u32,
    pub name: String,
    /// In clock ticks since boot. Distinguishes processes with the same number.
    start_time: u64,
    child: Option<Child>,
}

impl Target {
    /// Find a process. Fails if there is none, or it is not a program.
    pub fn find(pid: u32) -> anyhow::Result<Target> {
        let process = Process::new(pid as i32).and_then(|p| Ok((p.stat()?, p.status()?)));
        let Ok((stat, status)) = process else {
            bail!("there is no process {pid}; pidof NAME prints the numbers of a program");
        };
        let name = ui::terminal::plain(&stat.comm);
        if status.tgid != pid as i32 {
            bail!("{pid} is a thread of process {0}: write lissom record {0}", status.tgid);
        }
        if stat.flags & StatFlags::PF_KTHREAD.bits() != 0 {
            bail!("process {pid} ({name}) is a kernel thread; pass the number of a program");
        }
        let target = Target { pid, name, start_time: stat.starttime, child: None };
        if !target.lives() {
            bail!("process {pid} ({}) has ended", target.name);
        }
        Ok(target)
    }

    /// Start a program. `tracing` records it from its first instruction on.
    pub fn start(command: &[OsString], tracing: Option<&Tracing>) -> anyhow::Result<Target> {
        let path = program::find(&command[0], std::env::var_os("PATH").as_deref())?;
        let mut child = Command::new(&path);
        child.arg0(&command[0]).args(&command[1..]);
        let shared = tracing.map(|tracing| tracing.shared().clone());
        // SAFETY: stores to mapped memory, and makes a system call: both async-signal-safe.
        unsafe {
            child.pre_exec(move || {
                if let Some(shared) = &shared {
                    shared.set_target(std::process::id());
                }
                Ok(())
            });
        }
        let child = child.spawn().map_err(|e| program::cannot_execute(&path, &e))?;
        let pid = child.id();
        let name = process::name(pid);
        let stat = Process::new(pid as i32).and_then(|p| p.stat());
        let start_time = stat.map_or(0, |stat| stat.starttime);
        Ok(Target { pid, name, start_time, child: Some(child) })
    }

    /// Return whether the process has not ended. Its first thread may have.
    pub fn lives(&self) -> bool {
        let stat = Process::new(self.pid as i32).and_then(|p| p.stat());
        stat.is_ok_and(|stat| {
            let is_dead = matches!(stat.state, 'Z' | 'X') && stat.num_threads <= 1;
            stat.starttime == self.start_time && !is_dead
        })
    }

    /// Return whether the threads have the same numbers in the process's memory as here.
    pub fn has_our_numbers(&self) -> bool {
        let status = Process::new(self.pid as i32).and_then(|p| p.status());
        status.is_ok_and(|status| status.nstgid.is_none_or(|numbers| numbers.len() == 1))
    }

    /// Return whether this process started it.
    pub fn is_started(&self) -> bool {
        self.child.is_some()
    }

    /// Return whether the process has mapped the runtime.
    pub fn is_under_lissom(&self) -> bool {
        Process::new(self.pid as i32).is_ok_and(|process| process::has_runtime(&process))
    }

    /// Wait for the end of a started program. Returns its exit code, or 128 + N for signal N. 0: it
    /// was not started here.
    ///
    /// interrupted: a signal has ended the recording, so end the program, too.
    pub fn wait(mut self, interrupted: bool) -> Result<i32, Failure> {
        let Some(child) = &mut self.child else { return Ok(0) };
        if interrupted {
            process::signal(self.pid as i32, Signal::SIGTERM);
        }
        let status = child.wait().map_err(|e| Failure {
            code: ui::exit::FAILED,
            message: format!("cannot wait for the end of {}: {e}", self.name),
        })?;
        Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
    }
}
