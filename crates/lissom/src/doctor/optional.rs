//! Findings about the parts of lissom that programs do not need: the manager, the kernel scheduler,
//! BPF, KVM. If one is absent, nothing is wrong.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt,
};
use serde::Serialize;

use super::Finding;
use os::process;
use os::sched_ext::SchedExt;
use runtime::abi;

#[derive(Serialize)]
pub struct Optional {
    manager: Vec<Finding>,
    sched: Vec<Finding>,
    bpf: Vec<Finding>,
    kvm: Vec<Finding>,
}

impl Optional {
    pub fn look() -> Optional {
        Optional { manager: vec![manager()], sched: sched(SchedExt::now()), bpf: bpf(), kvm: kvm() }
    }

    /// Return the findings, with a title for each list.
    pub fn sections(&self) -> [(&'static str, &[Finding]); 4] {
        [
            ("Manager (lissom manager)", &self.manager),
            ("Kernel scheduler (lissom sched)", &self.sched),
            ("BPF (lissom sched, manager and kvm observe)", &self.bpf),
            ("KVM (lissom kvm)", &self.kvm),
        ]
    }
}

/// Return the paths where the runtime searches for the manager.
fn sockets() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os(abi::ENV_MANAGER) {
        return vec![path.into()];
    }
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = folder.filter(|f| f.is_absolute()).map(|f| f.join(abi::MANAGER_SOCKET));
    own.into_iter().chain([abi::MANAGER_SYSTEM.into()]).collect()
}

/// Connect, as a program does, and return the user and the process at the other end.
fn peer(path: &Path) -> nix::Result<(u32, i32)> {
    let own: OwnedFd = socket(
        AddressFamily::Unix,
        SockType::SeqPacket,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        None,
    )?;
    connect(own.as_raw_fd(), &UnixAddr::new(path)?)?;
    let peer = getsockopt(&own, sockopt::PeerCredentials)?;
    Ok((peer.uid(), peer.pid()))
}

fn manager() -> Finding {
    let what = "manager";
    let mut whys = Vec::new();
    for path in sockets() {
        let shown = path.display();
        whys.push(match peer(&path) {
            Ok((user, pid)) if user == 0 || user == process::euid() => {
                return Finding::ok(what, format!("process {pid} listens at {shown}"));
            }
            Ok((user, pid)) => {
                format!("process {pid} at {shown} is of user {user}: programs ignore it")
            }
            Err(Errno::ENOENT | Errno::ENOTDIR) => format!("no socket {shown}"),
            Err(Errno::ECONNREFUSED) => format!("nobody listens at {shown}"),
            Err(e) => format!("cannot connect to {shown}: {}", e.desc()),
        });
    }
    let fix = "lissom manager, if programs are to divide the CPUs of this machine";
    Finding::absent(what, whys.join("; "), fix)
}

/// `now`: None if the kernel has no sched_ext.
fn sched(now: Option<SchedExt>) -> Vec<Finding> {
    /// Name of lissom's scheduler in bpf/scx_lissom.bpf.c.
    const OURS: &str = "lissom";
    let Some(now) = now else {
        let why = "this kernel has none (CONFIG_SCHED_CLASS_EXT)";
        return vec![Finding::absent("sched_ext", why, "use a kernel with it, 6.18 or newer")];
    };
    let what = "scheduler";
    let scheduler = match now.scheduler.as_deref() {
        _ if now.is_off() => Finding::absent(what, "none is loaded", "lissom sched start, as root"),
        Some(OURS) => Finding::ok(what, "lissom's scheduler is loaded"),
        other => {
            let name = other.unwrap_or("of unknown name");
            let why = format!("another one is {}: {name}", now.state);
            Finding::absent(what, why, "end it first, then run lissom sched start")
        }
    };
    vec![Finding::ok("sched_ext", "this kernel has it"), scheduler]
}

/// Load a BPF program that returns 0, of the kind that traces the kernel, and discard it.
fn load() -> io::Result<()> {
    /// The first fields of `union bpf_attr` for BPF_PROG_LOAD.
    #[repr(C)]
    struct Load {
        kind: u32,
        instructions: u32,
        code: *const u64,
        license: *const std::ffi::c_char,
        log_level: u32,
        log_size: u32,
        log: u64,
        kernel: u32,
        flags: u32,
    }
    const BPF_PROG_LOAD: libc::c_long = 5;
    const TRACEPOINT: u32 = 5;
    // r0 = 0; exit
    let code = [0xb7_u64, 0x95];
    let load = Load {
        kind: TRACEPOINT,
        instructions: 2,
        code: code.as_ptr(),
        license: c"GPL".as_ptr(),
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel: 0,
        flags: 0,
    };
    // SAFETY: the structure is as long as its size says, and its pointers are valid.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &load, size_of::<Load>()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the new descriptor is ours.
    unsafe { libc::close(fd as i32) };
    Ok(())
}

fn bpf() -> Vec<Finding> {
    let programs = match load() {
        Ok(()) if process::is_locked_down() => Finding::absent(
            "programs",
            "the kernel is locked down (lockdown=confidentiality): they may not read its memory",
            "boot without lockdown=confidentiality",
        ),
        Ok(()) => Finding::ok("programs", "this user may load them"),
        Err(e) => Finding::absent(
            "programs",
            format!("this user may not load them: {e}"),
            "run as root, or with CAP_BPF and CAP_PERFMON, outside of seccomp filters",
        ),
    };
    let path = "/sys/kernel/btf/vmlinux";
    let types = match Path::new(path).exists() {
        true => Finding::ok("kernel types", path),
        false => Finding::absent(
            "kernel types",
            format!("there is no {path} (CONFIG_DEBUG_INFO_BTF)"),
            "use a kernel with type information, such as Debian's",
        ),
    };
    vec![programs, types]
}

fn kvm() -> Vec<Finding> {
    let entries = fs::read_dir("/sys/module").into_iter().flatten().flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    let mut modules: Vec<String> =
        names.filter(|name| name == "kvm" || name.starts_with("kvm_")).collect();
    modules.sort();
    let fix = "modprobe kvm_intel or kvm_amd, on a host of virtual machines";
    let loaded = match modules.as_slice() {
        [] => Finding::absent("modules", "neither kvm_intel nor kvm_amd is loaded", fix),
        [only] if only == "kvm" => {
            Finding::absent("modules", "only kvm is loaded, not kvm_intel or kvm_amd", fix)
        }
        _ => Finding::ok("modules", modules.join(", ")),
    };
    let ple = "insert the module of kmod/ (make kmod), for lissom kvm apple";
    vec![
        loaded,
        device("device", "/dev/kvm", "load the modules, and pass the device to containers"),
        device("apple device", "/dev/lissom_ple", ple),
    ]
}

/// Try to open a device. `fix`: what creates it.
fn device(what: &'static str, path: &str, fix: &str) -> Finding {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Finding::ok(what, path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Finding::absent(what, format!("there is no {path}"), fix)
        }
        Err(e) => Finding::absent(
            what,
            format!("cannot open {path}: {e}"),
            "run as root, or as a member of the group of this device",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn schedulers() {
        let state = |findings: Vec<Finding>| findings.last().expect("one").state;
        assert!(state(sched(None)) == State::Absent);
        let now = |state: &str, scheduler: Option<&str>| SchedExt {
            state: state.into(),
            scheduler: scheduler.map(String::from),
            switch_all: true,
            nr_rejected: 0,
            hotplug_seq: 0,
            enable_seq: 0,
        };
        assert!(state(sched(Some(now("disabled", None)))) == State::Absent);
        assert!(state(sched(Some(now("enabled", Some("lissom"))))) == State::Ok);
        let other = sched(Some(now("enabled", Some("rusty"))));
        assert!(other[0].state == State::Ok && other[1].why.contains("rusty"));
        assert!(state(other) == State::Absent);
    }

    #[test]
    fn nothing_here_is_a_failure() {
        let optional = Optional::look();
        let sections = optional.sections();
        let mut all = sections.iter().flat_map(|(_, findings)| findings.iter());
        assert!(all.all(|f| matches!(f.state, State::Ok | State::Absent)));
    }

    #[test]
    fn devices() {
        assert!(device("d", "/dev/null", "").state == State::Ok);
        let none = device("d", "/dev/lissom-none", "make it");
        assert!(none.state == State::Absent && none.fix.as_deref() == Some("make it"));
        assert!(device("d", "/dev", "").why.starts_with("cannot open /dev: "));
    }
}
