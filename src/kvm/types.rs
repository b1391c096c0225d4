//! The kernel's types, and those of KVM's modules: whether it has what a program wants to be
//! attached to.

use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;

use anyhow::Context as _;

pub struct Types {
    /// The kernel's first: the others need it.
    tables: Vec<NonNull<libbpf_sys::btf>>,
}

impl Types {
    pub fn load() -> anyhow::Result<Types> {
        // SAFETY: takes nothing; what it makes is freed in drop.
        let kernel = NonNull::new(unsafe { libbpf_sys::btf__load_vmlinux_btf() });
        let kernel =
            kernel.context("the kernel's types (/sys/kernel/btf/vmlinux) cannot be read")?;
        let mut types = Types { tables: vec![kernel] };
        for module in ["kvm", "kvm_intel", "kvm_amd"] {
            if !Path::new("/sys/kernel/btf").join(module).exists() {
                continue;
            }
            let name = CString::new(module)?;
            // SAFETY: a C string, and a table that lives longer than what is made from it.
            let table = unsafe { libbpf_sys::btf__load_module_btf(name.as_ptr(), kernel.as_ptr()) };
            types.tables.extend(NonNull::new(table));
        }
        Ok(types)
    }

    /// kind: `libbpf_sys::BTF_KIND_*`
    pub fn have(&self, name: &str, kind: u32) -> bool {
        let Ok(name) = CString::new(name) else { return false };
        // SAFETY: tables that live as long as `self`, and a C string.
        let find = |table: &NonNull<_>| unsafe {
            libbpf_sys::btf__find_by_name_kind(table.as_ptr(), name.as_ptr(), kind)
        };
        self.tables.iter().any(|table| find(table) > 0)
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        for table in self.tables.iter().rev() {
            // SAFETY: made in `load`, and not used any more; the modules' first.
            unsafe { libbpf_sys::btf__free(table.as_ptr()) };
        }
    }
}
