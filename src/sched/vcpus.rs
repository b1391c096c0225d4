//! Threads that run a guest's CPU and spin there: whether this machine's KVM says so
//! (bpf/scx_vcpu.bpf.h).

use std::path::Path;

use crate::kvm::types::Types;
use crate::process;

/// The program, and the function that it is at.
pub const PROGRAM: &str = "guest_spins";
pub const FUNCTION: &str = "kvm_vcpu_on_spin";

pub fn is_kvm_loaded() -> bool {
    Path::new("/sys/module/kvm").exists()
}

/// Err: why such threads cannot be found here.
pub fn check() -> Result<(), String> {
    if !is_kvm_loaded() {
        return Err("KVM is not loaded".into());
    }
    // libbpf looks into no module without.
    if Path::new("/sys/module/kvm/initstate").exists() && !process::is_admin() {
        return Err("to attach to a module takes CAP_SYS_ADMIN".into());
    }
    let types = Types::load().map_err(|e| format!("{e:#}"))?;
    match types.have(FUNCTION, libbpf_sys::BTF_KIND_FUNC) {
        true => Ok(()),
        false => Err(format!("this kernel's KVM has no function {FUNCTION}, or no type of it")),
    }
}
