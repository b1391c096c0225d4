//! Run the program as a child, as if this process were the program. Signals are passed on, a stop
//! stops both, and this process ends like the child. Only `--stats` needs this.

use std::io;

use ui::exit::Failure;

/// How the child ended.
pub struct Outcome(libc::c_int);

impl Outcome {
    /// Return a description for people.
    pub fn describe(&self) -> String {
        if libc::WIFSIGNALED(self.0) {
            format!("killed by signal {}", libc::WTERMSIG(self.0))
        } else {
            format!("exit code {}", libc::WEXITSTATUS(self.0))
        }
    }

    /// End this process like the child: by the same signal, or by returning the exit code.
    pub fn pass_on(&self) -> i32 {
        if !libc::WIFSIGNALED(self.0) {
            return libc::WEXITSTATUS(self.0);
        }
        let signal = libc::WTERMSIG(self.0);
        // SAFETY: plain system calls on plain data; the signal set lives on the stack.
        unsafe {
            // The program has dumped its core if it should; a second dump, of lissom, would
            // mislead.
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            libc::prctl(libc::PR_SET_DUMPABLE, 0);
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
    let all = full_set();
    // SAFETY: sigset_t is plain data.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // Block all signals, so that none is lost between fork and wait. The child restores its mask.
    // SAFETY: both sets live on the stack.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before) };
    // An inherited SIG_IGN would reap the child, and its status would be lost. Reset it before the
    // fork, because this call also discards a pending SIGCHLD.
    // SAFETY: no handler is installed.
    let on_child = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // SAFETY: this process has one thread, so the child may use all of libc.
    let child = unsafe { libc::fork() };
    if child < 0 {
        let error = io::Error::last_os_error();
        // SAFETY: a set on the stack.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
        return Err(error);
    }
    if child == 0 {
        // SAFETY: plain system calls. If lissom is killed, the child must not continue
        // unsupervised.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::signal(libc::SIGCHLD, on_child);
            libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        }
        let refused = program();
        eprintln!("lissom: {}", refused.message);
        // SAFETY: ends the child without running the parent's exit handlers a second time.
        unsafe { libc::_exit(refused.code) };
    }
    Ok(wait(child, &all))
}

fn full_set() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, which sigfillset fills in.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        set
    }
}

fn wait(child: libc::pid_t, signals: &libc::sigset_t) -> Outcome {
    loop {
        // SAFETY: siginfo_t is plain data, which sigwaitinfo fills in.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: all signals of the set are blocked.
        let signal = unsafe { libc::sigwaitinfo(signals, &mut info) };
        match signal {
            libc::SIGCHLD => {
                if let Some(outcome) = child_changed(child) {
                    return outcome;
                }
            }
            // Interrupted by a stop and continuation of this process.
            signal if signal < 0 => {}
            signal if from_terminal(signal, &info) => {}
            // SAFETY: plain system call; the child has not been waited for, so the number is still
            // its own.
            signal => unsafe {
                libc::kill(child, signal);
            },
        }
    }
}

/// Return whether the terminal sent this signal. It sends to the whole group, so the child has it
/// already.
fn from_terminal(signal: libc::c_int, info: &libc::siginfo_t) -> bool {
    const SI_KERNEL: libc::c_int = 0x80;
    let keyboard =
        [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGWINCH];
    keyboard.contains(&signal) && info.si_code == SI_KERNEL
}

/// Wait for changes of the child. Returns its outcome if it has ended. If it has stopped, stops
/// this process too, so that the shell sees a stopped job. The caller passes on the SIGCONT that
/// continues this process.
fn child_changed(child: libc::pid_t) -> Option<Outcome> {
    loop {
        let mut status = 0;
        // SAFETY: a status on the stack.
        let pid = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG | libc::WUNTRACED) };
        if pid != child {
            return None;
        }
        if !libc::WIFSTOPPED(status) {
            return Some(Outcome(status));
        }
        // SAFETY: plain system call.
        unsafe { libc::raise(libc::SIGSTOP) };
    }
}
