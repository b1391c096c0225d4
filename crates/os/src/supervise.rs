//! Run the program as a child, as if this process were the program. Signals are passed on, a stop
//! stops both, and this process ends like the child. Only `--stats` needs this.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, raise, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::unistd::{ForkResult, Pid, fork};

use ui::exit::Failure;

/// How the child ended.
pub struct Outcome(ExitStatus);

impl Outcome {
    /// Return a description for people.
    pub fn describe(&self) -> String {
        match self.0.signal() {
            Some(signal) => format!("killed by signal {signal}"),
            None => format!("exit code {}", self.0.code().unwrap_or_default()),
        }
    }

    /// End this process like the child: by the same signal, or by returning the exit code.
    pub fn pass_on(&self) -> i32 {
        let Some(signal) = self.0.signal() else { return self.0.code().unwrap_or_default() };
        // The program has dumped its core if it should; a second dump, of lissom, would mislead.
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
        let _ = prctl::set_dumpable(false);
        // SAFETY: plain system calls on plain data; the signal set lives on the stack.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal);
            libc::raise(signal);
            libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        }
        // Not reached if the signal kills.
        128 + signal
    }
}

/// Fork. The child calls `program`, which returns only if the program cannot be executed. Returns
/// how the child ended.
pub fn supervise(program: impl FnOnce() -> Failure) -> io::Result<Outcome> {
    let all = SigSet::all();
    let signals = SignalFd::with_flags(&all, SfdFlags::SFD_CLOEXEC)?;
    // Block all signals, so that none is lost between fork and wait. The child restores its mask.
    let before = all.thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    // An inherited SIG_IGN would reap the child, and its status would be lost. Reset it before the
    // fork, because this call also discards a pending SIGCHLD.
    // SAFETY: no handler is installed.
    let on_child = unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    // SAFETY: this process has one thread, so the child may use all of libc.
    match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => Ok(wait(child, &signals)),
        Ok(ForkResult::Child) => {
            // If lissom is killed, the child must not continue unsupervised.
            let _ = prctl::set_pdeathsig(Signal::SIGKILL);
            // SAFETY: restores what was there.
            let _ = unsafe { signal(Signal::SIGCHLD, on_child) };
            let _ = before.thread_set_mask();
            let refused = program();
            ui::message!("lissom: {}", refused.message);
            // SAFETY: ends the child without running the parent's exit handlers a second time.
            unsafe { libc::_exit(refused.code) };
        }
        Err(error) => {
            let _ = before.thread_set_mask();
            Err(error.into())
        }
    }
}

/// Wait for the end of the child, and pass on all signals to it.
fn wait(child: Pid, signals: &SignalFd) -> Outcome {
    loop {
        // Reading fails if a stop and continuation of this process interrupts it.
        let Ok(Some(info)) = signals.read_signal() else { continue };
        match info.ssi_signo as libc::c_int {
            libc::SIGCHLD => {
                if let Some(outcome) = child_changed(child) {
                    return outcome;
                }
            }
            signal if from_terminal(signal, &info) => {}
            // SAFETY: plain system call; the child has not been waited for, so the number is still
            // its own.
            signal => unsafe {
                libc::kill(child.as_raw(), signal);
            },
        }
    }
}

/// Return whether the terminal sent this signal. It sends to the whole group, so the child has it
/// already.
fn from_terminal(signal: libc::c_int, info: &siginfo) -> bool {
    const SI_KERNEL: libc::c_int = 0x80;
    let keyboard =
        [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGWINCH];
    keyboard.contains(&signal) && info.ssi_code == SI_KERNEL
}

/// Wait for changes of the child. Returns its outcome if it has ended. If it has stopped, stops
/// this process too, so that the shell sees a stopped job. The caller passes on the SIGCONT that
/// continues this process.
fn child_changed(child: Pid) -> Option<Outcome> {
    loop {
        let mut status = 0;
        // SAFETY: a status on the stack.
        let pid =
            unsafe { libc::waitpid(child.as_raw(), &mut status, libc::WNOHANG | libc::WUNTRACED) };
        if pid != child.as_raw() {
            return None;
        }
        if !libc::WIFSTOPPED(status) {
            return Some(Outcome(ExitStatus::from_raw(status)));
        }
        let _ = raise(Signal::SIGSTOP);
    }
}
