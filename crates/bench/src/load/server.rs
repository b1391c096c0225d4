//! The server process under load, and its CPU time.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::signal::Signal;
use procfs::process::Stat;

use os::process;

/// Maximum time until a server accepts connections, and until it ends.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Server {
    child: Child,
    output: File,
}

impl Server {
    /// Start the server on all CPUs of this process. Then binds this process to the CPUs after the
    /// first `beside`.
    pub fn start(command: &[OsString], beside: usize) -> anyhow::Result<Server> {
        // Use a file, not a pipe: nothing has to read it while the server runs.
        let output = File::from(os::process::inherited_memfd("output").context("memfd")?);
        let mut prepared = Command::new(&command[0]);
        prepared.args(&command[1..]).stdin(Stdio::null()).stdout(output.try_clone()?);
        // SAFETY: one system call between fork and exec. It ends the server if this process is
        // killed.
        unsafe {
            prepared.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, Signal::SIGTERM);
                Ok(())
            });
        }
        let child = prepared.spawn().with_context(|| command[0].to_string_lossy().into_owned())?;
        keep_to_cpus_after(beside);
        Ok(Server { child, output })
    }

    /// Poll until `ready` returns true. Fails if the server ends, or after `PATIENCE`.
    pub fn wait_until(&mut self, mut ready: impl FnMut() -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !ready() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server has ended: {status}");
            }
            if Instant::now() > deadline {
                bail!("the server accepts no connections");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Return the CPU time of the server and its descendants, in seconds.
    pub fn cpu_time(&self) -> f64 {
        descendants_time(self.child.id()) as f64 / procfs::ticks_per_second() as f64
    }

    /// End the server. Returns its output.
    pub fn end(mut self) -> anyhow::Result<String> {
        self.signal(Signal::SIGTERM);
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("the server does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut said = String::new();
        self.output.rewind()?;
        self.output.read_to_string(&mut said)?;
        Ok(said)
    }

    fn signal(&self, signal: Signal) {
        if let Ok(pid) = libc::pid_t::try_from(self.child.id()) {
            // The child has not been waited for, so its number is still its own.
            process::signal(pid, signal);
        }
    }
}

impl Drop for Server {
    /// End the server after an error. SIGTERM comes first, so that it can end its own children.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::SIGTERM);
            std::thread::sleep(Duration::from_millis(200));
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Return the CPU time of `root` and its descendants in ticks: utime, stime, cutime and cstime of
/// proc(5). The time of a child that was waited for is in its parent's.
fn descendants_time(root: u32) -> u64 {
    let stats = procfs::process::all_processes().into_iter().flatten().flatten();
    let stats = stats.filter_map(|process| process.stat().ok());
    let time = |s: &Stat| s.utime + s.stime + s.cutime.max(0) as u64 + s.cstime.max(0) as u64;
    let processes: HashMap<u32, (u32, u64)> =
        stats.map(|s| (s.pid as u32, (s.ppid as u32, time(&s)))).collect();
    let belongs = |mut pid: u32| {
        while pid != root {
            match processes.get(&pid) {
                Some((parent, _)) if *parent != 0 => pid = *parent,
                _ => return false,
            }
        }
        true
    };
    processes.iter().filter(|(pid, _)| belongs(**pid)).map(|(_, (_, time))| time).sum()
}

fn keep_to_cpus_after(beside: usize) {
    let cpus = process::allowed_cpus();
    let mine = cpus.get(beside..).unwrap_or_default();
    if beside == 0 || mine.is_empty() {
        return;
    }
    let _ = process::set_affinity(&process::cpu_set(mine));
}
