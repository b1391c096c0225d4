//! KVM's halt-polling parameters, in /sys/module/kvm/parameters.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};

/// The parameters, in the order of the output.
pub const NAMES: [&str; 4] =
    ["halt_poll_ns", "halt_poll_ns_grow", "halt_poll_ns_grow_start", "halt_poll_ns_shrink"];

/// The folder of the parameters.
#[derive(Clone)]
pub struct Parameters(PathBuf);

impl Parameters {
    pub fn at(folder: &Path) -> anyhow::Result<Parameters> {
        let first = folder.join(NAMES[0]);
        if !first.exists() {
            let first = first.display();
            bail!("KVM is not loaded: there is no {first}; modprobe kvm_intel or kvm_amd");
        }
        Ok(Parameters(folder.to_path_buf()))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn read(&self) -> anyhow::Result<BTreeMap<&'static str, u32>> {
        NAMES.into_iter().map(|name| Ok((name, self.read_one(name)?))).collect()
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
        let before = self.read()?;
        for (i, &(name, value)) in wanted.iter().enumerate() {
            let Err(error) = self.write(name, value) else { continue };
            for (name, _) in &wanted[..i] {
                self.write(name, before[name])
                    .with_context(|| format!("{error:#}, and the old values cannot be restored"))?;
            }
            return Err(error);
        }
        Ok(())
    }
}

fn refused(path: &Path, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    if error.kind() != io::ErrorKind::PermissionDenied {
        return anyhow!("cannot write {path}: {error}");
    }
    match os::process::euid() {
        0 => anyhow!("cannot write {path}: this kernel does not permit changes"),
        _ => anyhow!("cannot write {path}: permission denied; run as root"),
    }
}
