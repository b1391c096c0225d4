//! Judge the loops of tests/programs/sched_loops.c: ptrace samples each at random moments, and the
//! judge works while the thread runs.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use super::{Candidate, Verdict, judge, loop_of};

const SAMPLES: usize = 200;
/// Number of samples of a waiting loop that have to be judged as such.
const ENOUGH: usize = SAMPLES * 95 / 100;

fn build(level: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program =
        std::env::temp_dir().join(format!("lissom-sched-loops-{}{level}", std::process::id()));
    // Set these variables to test other compilers: LOOP_CC=clang-14 LOOP_FLAGS=-static.
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let compiler =
        Some(variable("LOOP_CC")).filter(|c| !c.is_empty()).unwrap_or_else(|| "gcc".into());
    let status = Command::new(compiler)
        .args(["-std=gnu11", level, "-g", "-Wall", "-pthread", "-fno-builtin"])
        .args(variable("LOOP_FLAGS").split_whitespace())
        .arg(root.join("../../tests/programs/sched_loops.c"))
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.is_ok_and(|s| s.success()), "a C compiler is needed");
    program
}

/// A process with a thread in a loop. Dropping this kills the process.
struct Loop {
    process: Child,
    thread: Pid,
    /// Addresses of code that only waits.
    waiting: std::ops::Range<u64>,
}

impl Loop {
    fn start(program: &Path, name: &str) -> Loop {
        let mut process = Command::new(program)
            .arg(name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was built");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        let hex = |w: &str| u64::from_str_radix(w, 16).expect("hexadecimal");
        Loop {
            process,
            thread: Pid::from_raw(words[0].parse().expect("a thread's number")),
            waiting: hex(words[1])..hex(words[2]),
        }
    }

    fn sample(&self) -> Candidate {
        ptrace::interrupt(self.thread).expect("it is traced");
        let stop = waitpid(self.thread, Some(WaitPidFlag::__WALL)).expect("it is traced");
        assert!(matches!(stop, WaitStatus::PtraceEvent(..)), "{stop:?}");
        let r = ptrace::getregs(self.thread).expect("it is stopped");
        ptrace::cont(self.thread, None).expect("it is stopped");
        Candidate {
            pid: self.process.id(),
            thread: self.thread.as_raw() as u32,
            ip: r.rip,
            registers: [
                r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11,
                r.r12, r.r13, r.r14, r.r15, r.rip, r.eflags,
            ],
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.process.kill();
        // Reap the traced thread before its process.
        let _ = waitpid(self.thread, Some(WaitPidFlag::__WALL));
        let _ = self.process.wait();
    }
}

/// CPU time of the calling thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every kernel has it").into()
}

/// Judge SAMPLES samples of each loop, and check that no verdict is wrong.
fn judge_all(level: &str) {
    let program = build(level);
    let list = Command::new(&program).arg("list").output().expect("it was built");
    let mut wrong = Vec::new();
    for line in String::from_utf8_lossy(&list.stdout).lines() {
        let (kind, name) = line.split_once(' ').expect("a kind and a name");
        let looped = Loop::start(&program, name);
        ptrace::seize(looped.thread, ptrace::Options::empty()).expect("a child of ours");
        std::thread::sleep(Duration::from_millis(2)); // the loop begins after its line
        let (mut spins, mut works, mut unknown, mut false_positive) = (0, 0, 0, 0);
        // All samples of one loop must have the same head.
        let mut heads = HashSet::new();
        let mut judging = Duration::ZERO;
        let mut slowest = Duration::ZERO;
        for _ in 0..SAMPLES {
            std::thread::sleep(Duration::from_micros(fastrand::u64(0..100)));
            let candidate = looped.sample();
            let begun = cpu_time();
            let found = loop_of(&candidate);
            let took = cpu_time() - begun;
            judging += took;
            slowest = slowest.max(took);
            match found {
                Ok(head) => {
                    spins += 1;
                    heads.insert(head);
                    if kind == "works" && !looped.waiting.contains(&candidate.ip) {
                        false_positive += 1;
                    }
                }
                Err(Verdict::Works) => works += 1,
                Err(_) => unknown += 1,
            }
        }
        println!(
            "{level} {kind} {name}: spins {spins}, works {works}, unknown {unknown}; \
             {} us each, {} at most, heads {}",
            judging.as_micros() / SAMPLES as u128,
            slowest.as_micros(),
            heads.len(),
        );
        if false_positive > 0 || (kind == "waits" && (spins < ENOUGH || heads.len() != 1)) {
            wrong.push(name.to_string());
        }
    }
    let _ = std::fs::remove_file(&program);
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn optimised() {
    judge_all("-O2");
}

#[test]
fn not_optimised() {
    judge_all("-O0");
}

#[test]
fn nothing_to_read() {
    let mut registers = [0; 18];
    registers[16] = 0x400000;
    let mut candidate =
        Candidate { pid: 0x3fff_ffff, thread: 0x3fff_ffff, ip: 0x400000, registers };
    assert_eq!(judge(&candidate), Verdict::Unknown);
    candidate.registers[7] = 0x7fff_0000_0000;
    assert_eq!(judge(&candidate), Verdict::Unknown);
    candidate.pid = std::process::id();
    assert_eq!(judge(&candidate), Verdict::Unknown);
}
