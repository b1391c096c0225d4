//! Findings about this machine, its kernel and the environment.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::process::{Command, Stdio};

use super::{Finding, limits, patching, switching};
use runtime::abi;
use runtime::unpack;

const OLDEST_KERNEL: (u32, u32) = (5, 9);
const OLDEST_GLIBC: (u32, u32) = (2, 28);

pub fn findings() -> Vec<Finding> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut list = vec![
        switched_off(),
        kernel(),
        descriptors(),
        glibc(),
        switching::finding(),
        patching::finding(),
        shadow_stacks(&status),
        seccomp(&status),
        no_new_privs(&status),
        tracer(&status),
        perf_events(),
    ];
    list.extend(limits::findings());
    list.push(runtime_file());
    list.push(trial_run());
    list
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}

pub fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|p| p.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn switched_off() -> Finding {
    let what = "environment";
    if let Some(value) = std::env::var_os(abi::ENV_ENABLE).filter(|v| abi::switches_off(v)) {
        let why = format!("LISSOM={} switches everything off", value.to_string_lossy());
        return Finding::off(what, why, "unset LISSOM");
    }
    if is_switched_off() {
        return Finding::off(what, "LISSOM_SWITCH=off preloads nothing", "unset LISSOM_SWITCH");
    }
    match std::env::var("LD_PRELOAD") {
        Ok(list) if !list.is_empty() => {
            Finding::ok(what, format!("LD_PRELOAD keeps its entries: {list}"))
        }
        _ => Finding::ok(what, "no variable switches lissom off"),
    }
}

fn is_switched_off() -> bool {
    std::env::var_os(abi::ENV_SWITCH).as_deref() == Some(OsStr::new("off"))
}

fn kernel() -> Finding {
    let (machine, release) = nix::sys::utsname::uname().map_or_else(
        |_| Default::default(),
        |name| {
            let text = |part: &OsStr| part.to_string_lossy().into_owned();
            (text(name.machine()), text(name.release()))
        },
    );
    let why = format!("Linux {release} on {machine}");
    if machine != "x86_64" {
        return Finding::off("kernel", why, "use an x86-64 machine");
    }
    if version(&release) < OLDEST_KERNEL {
        let why = format!("{why}: lissom is not tested before 5.9");
        return Finding::limited("kernel", why, "use Linux 5.9 or newer");
    }
    Finding::ok("kernel", why)
}

/// Test whether the runtime's monitor can have a descriptor table of its own.
fn descriptors() -> Finding {
    let what = "descriptors";
    // SAFETY: no descriptor has this number, and this process has a table of its own already.
    let result = unsafe {
        let (none, flags) = (libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE as libc::c_int);
        libc::syscall(libc::SYS_close_range, none, none, flags)
    };
    if result == 0 {
        return Finding::ok(what, "the runtime can open files unseen by the program");
    }
    Finding::limited(
        what,
        format!(
            "close_range fails: {}: programs do not share CPUs, do not connect to the manager, and \
             have no live statistics",
            io::Error::last_os_error()
        ),
        "use Linux 5.9 or newer, and allow close_range in the sandbox",
    )
}

fn glibc() -> Finding {
    let wanted = "use glibc 2.28 or newer (Debian 10, RHEL 8)";
    match os::glibc::version() {
        Ok(text) if version(&text) < OLDEST_GLIBC => {
            Finding::off("glibc", format!("version {text}"), wanted)
        }
        Ok(text) => Finding::ok("glibc", format!("version {text}")),
        Err(reason) => Finding::off("glibc", format!("no version found: {reason}"), wanted),
    }
}

fn shadow_stacks(status: &str) -> Finding {
    let features = field(status, "x86_Thread_features").unwrap_or_default();
    if features.split_whitespace().any(|f| f == "shstk") {
        return Finding::off(
            "shadow stacks",
            "programs of this shell use user shadow stacks, which prevent stack switching",
            "export GLIBC_TUNABLES=glibc.cpu.hwcaps=-SHSTK",
        );
    }
    Finding::ok("shadow stacks", "not in use")
}

fn seccomp(status: &str) -> Finding {
    match field(status, "Seccomp") {
        Some("1") => Finding::off("seccomp", "strict mode", "start it outside the sandbox"),
        Some("2") => Finding::ok("seccomp", "a filter is installed"),
        _ => Finding::ok("seccomp", "no filter"),
    }
}

fn no_new_privs(status: &str) -> Finding {
    match field(status, "NoNewPrivs") {
        Some("1") => Finding::ok("no_new_privs", "set; lissom needs no privileges"),
        _ => Finding::ok("no_new_privs", "not set"),
    }
}

fn tracer(status: &str) -> Finding {
    match field(status, "TracerPid") {
        None | Some("0") => Finding::ok("ptrace", "not traced"),
        Some(pid) => Finding::limited(
            "ptrace",
            format!("traced by process {pid}, which sees the runtime's code and signals"),
            "attach the debugger after the program has started",
        ),
    }
}

/// Try to open a sampling event of this thread.
fn perf_events() -> Finding {
    // The first words of struct perf_event_attr, version 0: type and size, config, period,
    // sample_type, read_format, flags.
    let mut attributes = [0_u64; 8];
    const SOFTWARE: u64 = 1;
    const TASK_CLOCK: u64 = 1;
    const EXCLUDE_KERNEL_AND_HYPERVISOR: u64 = 1 << 5 | 1 << 6;
    attributes[0] = SOFTWARE | 64 << 32;
    attributes[1] = TASK_CLOCK;
    attributes[2] = 1_000_000;
    attributes[5] = EXCLUDE_KERNEL_AND_HYPERVISOR;
    // SAFETY: the attributes are as long as their size says; the result is checked.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0) };
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let paranoid = paranoid.trim();
    if fd >= 0 {
        // SAFETY: the new descriptor is ours.
        unsafe { libc::close(fd as i32) };
        return Finding::ok(
            "perf events",
            format!("a thread may sample itself (perf_event_paranoid {paranoid})"),
        );
    }
    let error = io::Error::last_os_error();
    Finding::limited(
        "perf events",
        format!("{error} (perf_event_paranoid {paranoid}); only finer sampling needs them"),
        "sysctl kernel.perf_event_paranoid=2, and allow perf_event_open in the container's seccomp profile",
    )
}

fn runtime_file() -> Finding {
    match unpack::unpack() {
        Ok(path) if path.starts_with("/proc") => Finding::limited(
            "runtime file",
            "kept in memory, because there is no private folder: children of a program that closes \
             all its descriptors run natively, and their loader reports an error",
            "set XDG_RUNTIME_DIR or XDG_CACHE_HOME to a folder that only you can write",
        ),
        Ok(path) => Finding::ok("runtime file", path.display().to_string()),
        Err(e) => Finding::off(
            "runtime file",
            e.to_string(),
            "set XDG_CACHE_HOME to a folder that only you can write",
        ),
    }
}

/// Run a program under lissom, and report the state of its runtime. The other findings give
/// reasons; this one is the fact. The variables that switch lissom off have a finding of their own,
/// so the trial does not inherit them.
fn trial_run() -> Finding {
    let what = "trial run";
    let trial = || -> io::Result<serde_json::Value> {
        let (program, arguments) = os::glibc::sample()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["run", "--stats=json", "--"]).arg(program).args(arguments);
        // By default, the runtime does not begin in a program of one thread.
        command.env(abi::ENV_START, "now");
        command.env_remove(abi::ENV_VERBOSE).env_remove(abi::ENV_ENABLE).stdin(Stdio::null());
        if is_switched_off() {
            command.env_remove(abi::ENV_SWITCH);
        }
        let output = command.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let reason = said.lines().find(|l| !l.trim().is_empty()).unwrap_or("no message");
            return Err(io::Error::other(format!("it ended with {}: {reason}", output.status)));
        }
        serde_json::from_slice(&output.stderr).map_err(io::Error::other)
    };
    let fix = "see the lines above; lissom run --verbose -- CMD prints the runtime's messages";
    let report = match trial() {
        Ok(report) => report,
        Err(e) => return Finding::off(what, format!("a trial program did not run: {e}"), fix),
    };
    let process = &report["processes"][0];
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    if process["state"] == "active" {
        let count = |name: &str| process["counters"][name].as_u64().unwrap_or(0);
        let (patched, left) = (count("sites_patched"), count("sites_left"));
        return Finding::ok(
            what,
            format!("active: {patched} system call sites redirected, {left} left alone"),
        );
    }
    let reason =
        [text(&report["command"]["native"]), text(&process["reason"]), text(&process["state"])]
            .into_iter()
            .find(|r| !r.is_empty())
            .unwrap_or_else(|| "the runtime did not report".into());
    Finding::off(what, reason, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(version("6.18.5-cloud"), (6, 18));
        assert_eq!(version("2.36"), (2, 36));
        assert_eq!(version(""), (0, 0));
    }

    #[test]
    fn status_fields() {
        let status = "Seccomp:\t2\nSeccomp_filters:\t1\nx86_Thread_features:\tshstk wrss\n";
        assert_eq!(field(status, "Seccomp"), Some("2"));
        assert!(shadow_stacks(status).state == super::super::State::Off);
    }
}
