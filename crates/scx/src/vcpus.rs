//! Check whether KVM on this machine reports vCPUs that spin (bpf/scx_vcpu.bpf.h).

use std::path::Path;

use os::btf::Types;
use os::process;

/// The BPF program, and the kernel function that it traces.
pub const PROGRAM: &str = "guest_spins";
pub const FUNCTION: &str = "kvm_vcpu_on_spin";

pub fn is_kvm_loaded() -> bool {
    Path::new("/sys/module/kvm").exists()
}

/// Err: why spinning vCPU threads cannot be detected here.
pub fn check() -> Result<(), String> {
    if !is_kvm_loaded() {
        return Err("KVM is not loaded".into());
    }
    // Without CAP_SYS_ADMIN, libbpf does not search modules.
    if Path::new("/sys/module/kvm/initstate").exists() && !process::is_admin() {
        return Err("attaching to a module needs CAP_SYS_ADMIN".into());
    }
    let types = Types::load().map_err(|e| format!("{e:#}"))?;
    match types.have(FUNCTION, libbpf_sys::BTF_KIND_FUNC) {
        true => Ok(()),
        false => Err(format!("this kernel's KVM has no function {FUNCTION}, or no type for it")),
    }
}
