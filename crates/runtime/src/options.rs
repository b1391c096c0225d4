//! Options of the runtime: their values on the command line and in the environment.

use clap::ValueEnum;
use ui::time::Unit;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Switch in user space: the kernel thread of a waiting thread runs another thread.
    /// Pinned threads (--stats prints the reasons) switch as with `kernel`
    Auto,
    /// Same as `auto`
    User,
    /// Switch by a system call, with each thread on its own kernel thread: for programs that
    /// depend on their kernel threads in ways that lissom cannot detect; slower
    Kernel,
    /// Do not preload the runtime
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SpinThreshold {
    Auto,
    Nanoseconds(u32),
}

impl std::str::FromStr for SpinThreshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(SpinThreshold::Auto);
        }
        // The variable, which the runtime reads, has no unit.
        match ui::time::within(text, Some(Unit::Ns), "0s", "1ms") {
            Ok((time, _)) => Ok(SpinThreshold::Nanoseconds(time.subsec_nanos())),
            Err(e) => Err(format!("{e}, or auto")),
        }
    }
}

impl std::fmt::Display for SpinThreshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SpinThreshold::Auto => f.write_str("auto"),
            SpinThreshold::Nanoseconds(ns) => ns.fmt(f),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Idle {
    /// Poll for work for up to 200 us (3 ms in place of OpenMP's own spinning), then release the
    /// CPU; the time grows after short waits, and shrinks after long ones
    Haltpoll,
    /// Release the CPU at once: least CPU time, but each wake-up takes 5 to 50 us
    Sleep,
    /// Poll until there is work: fastest wake-up, but a program that waits for long keeps its
    /// CPUs busy
    Poll,
}

impl Idle {
    pub fn name(self) -> &'static str {
        match self {
            Idle::Haltpoll => "haltpoll",
            Idle::Sleep => "sleep",
            Idle::Poll => "poll",
        }
    }
}

impl Switch {
    pub fn name(self) -> &'static str {
        match self {
            Switch::Auto => "auto",
            Switch::User => "user",
            Switch::Kernel => "kernel",
            Switch::Off => "off",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Spin {
    /// Run another thread instead of one that provably waits for another thread's store, while
    /// threads outnumber CPUs. Costs up to 1 %; changes one byte of such a loop
    Auto,
    /// Detect and count busy-waiting for --stats, but do not act on it. Costs 1 to 10 %: each
    /// running thread is scanned every millisecond
    Observe,
    /// Do not detect busy-waiting
    Off,
}

impl Spin {
    pub fn name(self) -> &'static str {
        match self {
            Spin::Auto => "auto",
            Spin::Observe => "observe",
            Spin::Off => "off",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Share {
    /// Run as many threads at once as there are CPUs, together with this user's other programs
    /// under lissom on the same CPUs. They coordinate through a file in /dev/shm. Beside programs
    /// outside lissom, the number follows the CPU time that those leave
    Auto,
    /// Ignore other programs: together they run more threads than there are CPUs
    Off,
}

impl Share {
    pub fn name(self) -> &'static str {
        match self {
            Share::Auto => "auto",
            Share::Off => "off",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VisibleCpus {
    /// All CPUs of its affinity mask, as natively
    Machine,
    /// As many as it may use at once: CPU quota (rounded up) and --cpus count too. Programs then
    /// start as many threads as that, but do not start more when they may use more CPUs
    Slots,
    /// Same as `slots`, with the quota rounded down, but at least one
    Floor,
}

impl VisibleCpus {
    pub fn name(self) -> &'static str {
        match self {
            VisibleCpus::Machine => "machine",
            VisibleCpus::Slots => "slots",
            VisibleCpus::Floor => "floor",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Team {
    /// As many threads as the program requests
    Program,
    /// At most as many threads as the program has CPUs when the parallel region begins: faster
    /// for short regions. DANGER: a program that depends on the number that it requested, such as
    /// llama.cpp, hangs or computes wrong results
    Slots,
}

impl Team {
    pub fn name(self) -> &'static str {
        match self {
            Team::Program => "program",
            Team::Slots => "slots",
        }
    }
}
