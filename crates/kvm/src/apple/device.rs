//! /dev/lissom_ple: read the counters of the module in kmod/, and ask it for windows.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, anyhow, bail};
use bytemuck::{Pod, Zeroable};

use crate::host::{self, AMD, INTEL, Vendor};
use crate::words::combine;

pub const PATH: &str = "/dev/lissom_ple";
const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    pub vendor: &'static Vendor,
    /// Largest window that the hardware supports.
    pub largest: u32,
    pub tsc_khz: u64,
    /// The module met an implausible vCPU, and changes nothing any more.
    pub is_refused: bool,
}

/// Counters of a VM since the module first saw it; kmod/lissom_ple.h documents them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Counters {
    pub entries: u64,
    pub applied: u64,
    pub ple: u64,
    pub spun: u64,
    pub before: u64,
    pub switches: u64,
    pub guest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    pub pid: i32,
    pub vcpus: u32,
    /// The window that was asked for, or None if KVM's own is in use.
    pub window: Option<u32>,
    /// KVM's own window, which KVM may adapt: the mean over the vCPUs.
    pub own: u32,
    pub counters: Counters,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub module: Module,
    /// One entry per process: it sums up the VMs of the process.
    pub vms: Vec<Vm>,
}

pub struct Device {
    file: File,
    path: PathBuf,
}

impl Device {
    pub fn open(path: &Path, to_change: bool) -> anyhow::Result<Device> {
        // Never create a file. Each request is one write.
        match OpenOptions::new().read(true).write(to_change).open(path) {
            Ok(file) => Ok(Device { file, path: path.into() }),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                bail!("cannot open {}: permission denied; run as root", path.display())
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound && path == Path::new(PATH) => {
                Err(why_absent(Path::new("/")))
            }
            Err(e) => Err(e).context(format!("{}", path.display())),
        }
    }

    pub fn read(&mut self) -> anyhow::Result<Snapshot> {
        let mut text = String::new();
        self.file
            .rewind()
            .and_then(|()| self.file.read_to_string(&mut text))
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        parse(&text).with_context(|| format!("{}", self.path.display()))
    }

    /// Ask for a window for the VMs of a process, until the device is closed. Errors: ESRCH if
    /// there is no VM, EBUSY if another open file has asked for a window, EOPNOTSUPP if
    /// `Module::is_refused` is true.
    pub fn ask(&mut self, pid: i32, window: u32) -> io::Result<()> {
        self.file.write_all(format!("vm {pid} window {window}").as_bytes())
    }
}

fn parse(text: &str) -> anyhow::Result<Snapshot> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let version: u32 =
        value(first, "lissom_ple").context("this is not the format of lissom_ple")?;
    if version != VERSION {
        bail!(
            "lissom_ple has version {version}, but this lissom has {VERSION}: build both from the same source"
        );
    }
    let vendor: String = value(first, "vendor")?;
    let vendor = match vendor.as_str() {
        "intel" => INTEL,
        "amd" => AMD,
        _ => {
            bail!("lissom_ple reports the unknown vendor {vendor}: build both from the same source")
        }
    };
    let module = Module {
        vendor,
        largest: value(first, "largest")?,
        tsc_khz: value(first, "tsc_khz")?,
        is_refused: value::<u32>(first, "refused")? != 0,
    };
    let mut vms: Vec<Vm> = Vec::new();
    for line in lines {
        let vm = vm(line)?;
        match vms.iter_mut().find(|v| v.pid == vm.pid) {
            Some(other) => join(other, &vm),
            None => vms.push(vm),
        }
    }
    Ok(Snapshot { module, vms })
}

fn vm(line: &str) -> anyhow::Result<Vm> {
    let window = value(line, "window")?;
    Ok(Vm {
        pid: value(line, "vm")?,
        vcpus: value(line, "vcpus")?,
        window: (window > 0).then_some(window),
        own: value(line, "own")?,
        counters: Counters {
            entries: value(line, "entries")?,
            applied: value(line, "applied")?,
            ple: value(line, "ple")?,
            spun: value(line, "spun")?,
            before: value(line, "before")?,
            switches: value(line, "switches")?,
            guest: value(line, "guest")?,
        },
    })
}

/// Merge b into a, another VM of the same process.
fn join(a: &mut Vm, b: &Vm) {
    let vcpus = u64::from(a.vcpus) + u64::from(b.vcpus);
    let own = u64::from(a.own) * u64::from(a.vcpus) + u64::from(b.own) * u64::from(b.vcpus);
    a.own = (own / vcpus.max(1)) as u32;
    a.vcpus = vcpus as u32;
    a.window = a.window.or(b.window);
    a.counters = combine(&a.counters, &b.counters, u64::wrapping_add);
}

/// The value of `key=value` in a line of words. Later modules may add other keys.
fn value<T: FromStr>(line: &str, key: &str) -> anyhow::Result<T> {
    let found = line.split(' ').filter_map(|word| word.split_once('=')).find(|(k, _)| *k == key);
    let (_, text) = found.ok_or_else(|| anyhow!("no `{key}` in `{line}`"))?;
    text.parse().map_err(|_| anyhow!("`{key}` is not a number in `{line}`"))
}

/// Returns why the device is missing. root: the root of the file system.
fn why_absent(root: &Path) -> anyhow::Error {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    if !root.join("sys/module/kvm").exists() {
        return anyhow!("KVM is not loaded: modprobe kvm_intel or kvm_amd");
    }
    if let Some(reason) = host::why_off(&root.join("sys/module")) {
        return anyhow!(reason);
    }
    let how = "make kmod && insmod target/kmod/lissom_ple.ko; docs/operate/kvm-apple.md has more";
    let is_locked = read("sys/kernel/security/lockdown")
        .is_some_and(|t| t.contains('[') && !t.contains("[none]"));
    let enforces =
        read("sys/module/module/parameters/sig_enforce").is_some_and(|text| text.starts_with('Y'));
    if is_locked || enforces {
        let what = if is_locked { "its lockdown" } else { "module.sig_enforce" };
        return anyhow!(
            "the module lissom_ple is not loaded, and this kernel ({what}) takes only signed modules: \
             sign it with an enrolled key ({how})"
        );
    }
    anyhow!(
        "the module lissom_ple is not loaded; if it was refused, the kernel's log says why ({how})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::folder;

    const FIRST: &str =
        "lissom_ple=1 vendor=amd default=3000 largest=65535 tsc_khz=2445425 refused=0 missed=0";
    const VM: &str = "vm=188 id=1 vcpus=2 window=777 own=6000 entries=42 applied=28 ple=40 spun=3 before=10 switches=19 guest=24";

    #[test]
    fn what_the_module_writes() {
        let snapshot = parse(&format!("{FIRST}\n{VM}\n")).unwrap();
        assert_eq!((snapshot.module.vendor, snapshot.module.tsc_khz), (AMD, 2_445_425));
        let counters = Counters {
            entries: 42,
            applied: 28,
            ple: 40,
            spun: 3,
            before: 10,
            switches: 19,
            guest: 24,
        };
        assert_eq!(
            snapshot.vms,
            vec![Vm { pid: 188, vcpus: 2, window: Some(777), own: 6000, counters }]
        );
    }

    #[test]
    fn the_vms_of_one_process_are_one() {
        let other = VM
            .replace("id=1", "id=2")
            .replace("own=6000", "own=3000")
            .replace("vcpus=2", "vcpus=1");
        let snapshot = parse(&format!("{FIRST}\n{VM}\n{other}\n")).unwrap();
        assert_eq!(snapshot.vms.len(), 1);
        let vm = &snapshot.vms[0];
        assert_eq!((vm.vcpus, vm.own, vm.counters.ple, vm.counters.guest), (3, 5000, 80, 48));
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, why) in [
            ("", "not the format of lissom_ple"),
            (&FIRST.replace("ple=1", "ple=2"), "version 2"),
            (&FIRST.replace("amd", "via"), "unknown vendor via"),
            (&format!("{FIRST}\n{}", VM.replace("ple=40 ", "")), "no `ple`"),
            (&format!("{FIRST}\n{}", VM.replace("ple=40 ", "ple=-1 ")), "not a number"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn reasons_why_it_is_absent() {
        let mut files = vec![];
        let mut said = |file, expected: &str| {
            files.extend(file);
            let why = why_absent(folder(&files).path()).to_string();
            assert!(why.contains(expected), "{why}");
        };
        let lockdown = "sys/kernel/security/lockdown";
        let count = "sys/module/kvm_amd/parameters/pause_filter_count";
        said(None, "KVM is not loaded");
        said(Some(("sys/module/kvm/x", "")), "the kernel's log says why");
        said(Some((lockdown, "[none] integrity confidentiality\n")), "the kernel's log says why");
        said(Some((lockdown, "none [integrity] confidentiality\n")), "lockdown");
        said(Some((count, "3000\n")), "lockdown");
        said(Some((count, "0\n")), "kvm_amd.pause_filter_count=0");
    }
}
