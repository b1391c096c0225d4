//! Types of the kernel and of KVM's modules (BTF), to check that BPF programs can attach.

use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;

use anyhow::Context as _;

pub struct Types {
    /// The kernel's table is the first: the modules' tables refer to it.
    tables: Vec<NonNull<libbpf_sys::btf>>,
}

impl Types {
    pub fn load() -> anyhow::Result<Types> {
        // SAFETY: takes no arguments; drop frees the result.
        let kernel = NonNull::new(unsafe { libbpf_sys::btf__load_vmlinux_btf() });
        let kernel = kernel.context("cannot read the kernel's types (/sys/kernel/btf/vmlinux)")?;
        let mut types = Types { tables: vec![kernel] };
        for module in ["kvm", "kvm_intel", "kvm_amd"] {
            if !Path::new("/sys/kernel/btf").join(module).exists() {
                continue;
            }
            let name = CString::new(module)?;
            // SAFETY: the name is a C string, and the kernel's table outlives the new one.
            let table = unsafe { libbpf_sys::btf__load_module_btf(name.as_ptr(), kernel.as_ptr()) };
            types.tables.extend(NonNull::new(table));
        }
        Ok(types)
    }

    /// Returns whether a type of this name and kind (`libbpf_sys::BTF_KIND_*`) exists.
    pub fn have(&self, name: &str, kind: u32) -> bool {
        let Ok(name) = CString::new(name) else { return false };
        // SAFETY: the tables live as long as `self`, and the name is a C string.
        let find = |table: &NonNull<_>| unsafe {
            libbpf_sys::btf__find_by_name_kind(table.as_ptr(), name.as_ptr(), kind)
        };
        self.tables.iter().any(|table| find(table) > 0)
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        for table in self.tables.iter().rev() {
            // SAFETY: `load` made the table, nothing uses it any more, and the kernel's is last.
            unsafe { libbpf_sys::btf__free(table.as_ptr()) };
        }
    }
}
