//! KVM's halt-polling parameters, in /sys/module/kvm/parameters.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;

/// The parameters, in the order of the output.
pub const NAMES: [&str; 4] =
    ["halt_poll_ns", "halt_poll_ns_grow", "halt_poll_ns_grow_start", "halt_poll_ns_shrink"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Values {
    pub halt_poll_ns: u32,
    pub halt_poll_ns_grow: u32,
    pub halt_poll_ns_grow_start: u32,
    pub halt_poll_ns_shrink: u32,
}

impl Values {
    pub fn array(self) -> [u32; 4] {
        [
            self.halt_poll_ns,
            self.halt_poll_ns_grow,
            self.halt_poll_ns_grow_start,
            self.halt_poll_ns_shrink,
        ]
    }
}

/// The folder of the parameters.
#[derive(Clone)]
pub struct Parameters(PathBuf);

impl Parameters {
    pub fn at(folder: &Path) -> anyhow::Result<Parameters> {
        if !folder.join(NAMES[0]).exists() {
            bail!(
                "KVM is not loaded: there is no {}; modprobe kvm_intel or kvm_amd",
                folder.join(NAMES[0]).display()
            );
        }
        Ok(Parameters(folder.to_path_buf()))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn read(&self) -> anyhow::Result<Values> {
        let [ns, grow, start, shrink] = NAMES.map(|name| self.read_one(name));
        Ok(Values {
            halt_poll_ns: ns?,
            halt_poll_ns_grow: grow?,
            halt_poll_ns_grow_start: start?,
            halt_poll_ns_shrink: shrink?,
        })
    }

    pub fn read_one(&self, name: &str) -> anyhow::Result<u32> {
        let path = self.path(name);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        text.trim().parse().with_context(|| format!("{} does not hold a number", path.display()))
    }

    /// Write a value, and check that the kernel has accepted it.
    pub fn write(&self, name: &str, value: u32) -> anyhow::Result<()> {
        let path = self.path(name);
        fs::write(&path, format!("{value}\n")).map_err(|e| refused(&path, &e))?;
        let now = self.read_one(name)?;
        if now != value {
            bail!("{} was set to {value}, but is {now}", path.display());
        }
        Ok(())
    }

    /// Check that the parameter can be written, without changing it.
    pub fn check_writable(&self, name: &str) -> anyhow::Result<()> {
        let path = self.path(name);
        File::options().write(true).open(&path).map_err(|e| refused(&path, &e))?;
        Ok(())
    }

    /// Write all values, or none: after a failure, restore those already written.
    pub fn write_all(&self, wanted: &[(&'static str, u32)]) -> anyhow::Result<()> {
        let mut written = Vec::new();
        for &(name, value) in wanted {
            let before = self.read_one(name)?;
            if let Err(error) = self.write(name, value) {
                for (name, before) in written {
                    self.write(name, before).with_context(|| {
                        format!("{error:#}, and the old values cannot be restored")
                    })?;
                }
                return Err(error);
            }
            written.push((name, before));
        }
        Ok(())
    }
}

fn refused(path: &Path, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied if os::process::euid() != 0 => {
            anyhow::anyhow!("cannot write {path}: permission denied; run as root")
        }
        io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!("cannot write {path}: this kernel does not permit changes")
        }
        _ => anyhow::anyhow!("cannot write {path}: {error}"),
    }
}
