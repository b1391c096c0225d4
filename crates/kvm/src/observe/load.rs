//! Load the programs of bpf/kvm.bpf.c, and read their counts.

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use bytemuck::{Pod, Zeroable, bytes_of, cast_slice, pod_read_unaligned};
use libbpf_rs::{Link, MapCore as _, MapFlags, Object, ObjectBuilder};

use super::counts::Counts;
use super::name;
use crate::host::{self, Pauses};
use os::btf::Types;
use os::process::exists;

/// Aligned for libbpf, which reads structures in place.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/kvm.bpf.o")));

/// The optional program of bpf/kvm.bpf.c, and the kernel function that it traces.
const YIELD: (&str, &str) = ("yielded", "yield_to");

/// `struct kvm_vm` of bpf/kvm.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Vm {
    /// Kernel address of the VM: a process may have several VMs.
    kvm: u64,
    /// Process of the VMM.
    pub pid: u32,
    pad: u32,
}

pub struct Seen {
    pub vm: Vm,
    pub name: String,
    /// Number among the VMs of its process, from 1.
    pub number: usize,
    /// Counts between the last two updates.
    pub counts: Counts,
    /// Counts since loading.
    pub total: Counts,
    has_ended: bool,
}

impl Seen {
    fn new(vm: Vm, number: usize) -> Seen {
        let none = Counts::zeroed();
        Seen { vm, name: name(vm.pid), number, counts: none, total: none, has_ended: false }
    }
}

pub struct Observer {
    object: Object,
    _links: Vec<Link>,
    /// Err: why PAUSE exits are not counted.
    pub pauses: Result<Pauses, String>,
    /// Err: why directed yields are not counted.
    pub yields: Result<(), String>,
    /// VMs as the last update found them, by process.
    pub seen: Vec<Seen>,
}

impl Observer {
    /// Start counting, until this process ends. Changes nothing else. Fails with the reason if the
    /// programs cannot be loaded.
    pub fn load() -> anyhow::Result<Observer> {
        check()?;
        if std::env::var_os("LISSOM_VERBOSE").is_none() {
            libbpf_rs::set_print(None);
        }
        let types = Types::load()?;
        if !types.have("btf_trace_kvm_entry", libbpf_sys::BTF_KIND_TYPEDEF) {
            bail!(
                "this kernel's KVM has no tracepoint kvm_entry, or no types for it (CONFIG_DEBUG_INFO_BTF_MODULES)"
            );
        }
        let function = |name: &str| match types.have(name, libbpf_sys::BTF_KIND_FUNC) {
            true => Ok(()),
            false => Err(format!("this kernel has no function {name}, or no type for it")),
        };
        let mut pauses = host::pauses(Path::new("/sys/module"));
        let mut yields = function(YIELD.1);
        let mut started = start(&pauses, &mut yields);
        // The kernel may not support tracing the function: start without it.
        if yields.is_ok()
            && let Err(error) = &started
        {
            yields = Err(format!("this kernel cannot trace {}: {error:#}", YIELD.1));
            started = start(&pauses, &mut yields);
        }
        // The kernel may keep an exit's reason elsewhere: start without PAUSE exits.
        if pauses.is_ok()
            && let Err(error) = &started
        {
            pauses = Err(format!("cannot distinguish this kernel's exits: {error:#}"));
            started = start(&pauses, &mut yields);
        }
        let (object, links) = started?;
        Ok(Observer { object, _links: links, pauses, yields, seen: Vec::new() })
    }

    /// Read the counts of all VMs that have run, or of those of the `wanted` processes.
    pub fn update(&mut self, wanted: &[u32]) -> anyhow::Result<()> {
        let map = self.object.maps().find(|m| m.name() == "vms").context("a map is missing")?;
        // Make room: the last call has read all counts of VMs that had ended before it.
        for ended in self.seen.extract_if(.., |s| s.has_ended) {
            // A failure means that the counts are gone already.
            let _ = map.delete(bytes_of(&ended.vm));
        }
        // Check before reading the counts: a VM that ends later may still add to them.
        self.seen.iter_mut().for_each(|s| s.has_ended = !exists(s.vm.pid));
        let mut vms: Vec<Vm> = map.keys().map(|key| pod_read_unaligned(&key)).collect();
        vms.retain(|vm| wanted.is_empty() || wanted.contains(&vm.pid));
        vms.sort_unstable_by_key(|vm| (vm.pid, vm.kvm));
        for vm in vms {
            let Some(cpus) = map.lookup_percpu(bytes_of(&vm), MapFlags::ANY)? else { continue };
            let counts = cpus.iter().map(|bytes| pod_read_unaligned(bytes));
            let total = counts.fold(Counts::zeroed(), |sum, c| sum.plus(&c));
            let i = self.seen.iter().position(|s| s.vm == vm).unwrap_or_else(|| {
                let number = 1 + self.seen.iter().filter(|s| s.vm.pid == vm.pid).count();
                self.seen.push(Seen::new(vm, number));
                self.seen.len() - 1
            });
            let seen = &mut self.seen[i];
            (seen.counts, seen.total) = (total.since(&seen.total), total);
        }
        self.seen.sort_unstable_by_key(|s| (s.vm.pid, s.vm.kvm));
        Ok(())
    }

    /// Number of events that were not counted. Either memory or room was lacking, or an event of
    /// the same kind was being counted on the same CPU. The latter happens only to directed yields.
    pub fn lost(&self) -> u64 {
        let map = self.object.maps().find(|m| m.name().to_string_lossy().ends_with(".bss"));
        let bytes = map.and_then(|m| m.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        let lost: u64 = bytes.map_or(0, |state| pod_read_unaligned(&state[..8]));
        let missed = |program: &libbpf_rs::Program| {
            // SAFETY: zeroes are a valid value; the kernel fills in the members that it knows.
            unsafe {
                let mut info: libbpf_sys::bpf_prog_info = std::mem::zeroed();
                let mut size = size_of_val(&info) as u32;
                let fd = program.as_fd().as_raw_fd();
                libbpf_sys::bpf_prog_get_info_by_fd(fd, &mut info, &mut size);
                info.recursion_misses
            }
        };
        lost + self.object.progs().filter(|p| p.autoload()).map(|p| missed(&p)).sum::<u64>()
    }
}

/// Load and attach the programs. If only the one for yields cannot attach, notes why in `yields`.
fn start(
    pauses: &Result<Pauses, String>,
    yields: &mut Result<(), String>,
) -> anyhow::Result<(Object, Vec<Link>)> {
    let mut object = ObjectBuilder::default().open_memory(&OBJECT.0)?;
    for mut map in object.maps_mut() {
        if map.name().to_string_lossy().ends_with("config") {
            let unit = |p: &Pauses| (p.ns_per_unit * f64::from(1 << 20)) as u64;
            // `struct kvm_config`
            let config = pauses.as_ref().map_or([0, 0], |p| [p.vendor.code, unit(p)]);
            let value = map.initial_value_mut().context("a map is missing")?;
            value[..16].copy_from_slice(cast_slice(&config));
        }
    }
    for mut program in object.progs_mut() {
        let is_wanted = program.name() != YIELD.0 || yields.is_ok();
        program.set_autoload(is_wanted);
    }
    let object =
        object.load().map_err(|e| anyhow::anyhow!("the kernel rejected the BPF programs: {e}"))?;
    let mut links = Vec::new();
    for program in object.progs_mut() {
        if !program.autoload() {
            continue;
        }
        let name = program.name().to_string_lossy().into_owned();
        match program.attach() {
            Ok(link) => links.push(link),
            Err(e) if name == YIELD.0 => {
                *yields = Err(format!("this kernel cannot trace {}: {e}", YIELD.1))
            }
            Err(e) => bail!("cannot attach {name}: {e}"),
        }
    }
    Ok((object, links))
}

/// Check conditions for which loading would give less clear errors.
fn check() -> anyhow::Result<()> {
    const LOAD: &str = "modprobe kvm_intel or kvm_amd (the firmware must enable virtualization)";
    let exists = |path: &str| Path::new(path).exists();
    if !exists("/sys/module/kvm") {
        bail!("KVM is not loaded: {LOAD}");
    }
    if !exists("/dev/kvm") {
        bail!("there is no /dev/kvm: {LOAD}");
    }
    if !os::process::may_trace_by_bpf() {
        bail!("cannot load BPF programs: run as root, or with CAP_BPF and CAP_PERFMON");
    }
    if os::process::is_locked_down() {
        bail!("the kernel is locked down (lockdown=confidentiality): BPF may not read its memory");
    }
    if !exists("/sys/kernel/btf/vmlinux") {
        bail!("this kernel has no type information (CONFIG_DEBUG_INFO_BTF)");
    }
    if exists("/sys/module/kvm/initstate") && !exists("/sys/kernel/btf/kvm") {
        bail!("the module kvm has no type information (CONFIG_DEBUG_INFO_BTF_MODULES)");
    }
    Ok(())
}
