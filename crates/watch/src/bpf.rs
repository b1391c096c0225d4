//! Parts of loading BPF programs.

use anyhow::ensure;
use os::process;

/// Alignment for a BPF object, because libbpf reads structures in place.
#[repr(C, align(64))]
pub struct Aligned<T: ?Sized>(pub T);

/// Prepare to load programs that read process IDs. Fails outside the initial PID namespace.
pub fn prepare() -> anyhow::Result<()> {
    ensure!(
        process::in_first_pid_namespace(),
        "BPF sees the process IDs of the initial PID namespace, and lissom runs in another one"
    );
    if std::env::var_os("LISSOM_VERBOSE").is_none() {
        libbpf_rs::set_print(None);
    }
    Ok(())
}
