//! The glibc that a program gets.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::program;

/// Return the version of the glibc that programs use, or why there is none. This binary may use
/// another one.
pub fn version() -> Result<String, String> {
    let (program, _) = sample().map_err(|e| e.to_string())?;
    version_for(&program)
}

/// Return the version of the glibc that this program gets, or why it has none.
pub fn version_for(file: &Path) -> Result<String, String> {
    let program = program::inspect(file);
    if let Some(reason) = program.native {
        return Err(reason.text);
    }
    let loader = program.elf.and_then(|elf| elf.interpreter).unwrap_or_default();
    let output = list(file, Path::new(&loader)).map_err(|e| format!("{loader}: {e}"))?;
    let list = String::from_utf8_lossy(&output.stdout);
    let greeting = list.lines().filter_map(listed_path).find_map(|path| greeting(&path));
    greeting
        .map(|g| number(&g).to_string())
        .ok_or_else(|| format!("{} loads no glibc of a known version", file.display()))
}

/// Return a dynamically linked program of this machine, and arguments with which it does nothing.
/// This is our own binary, or the shell if the binary contains its own libc, like that of the
/// packages.
pub fn sample() -> io::Result<(PathBuf, &'static [&'static str])> {
    if cfg!(target_feature = "crt-static") {
        return Ok(("/bin/sh".into(), &["-c", ":"]));
    }
    Ok((std::env::current_exe()?, &["--version"]))
}

pub fn list(file: &Path, loader: &Path) -> io::Result<Output> {
    let mut command = Command::new(loader);
    command.arg("--list").arg(file).stdin(Stdio::null()).env_remove("LD_PRELOAD").output()
}

/// Parse `libm.so.6 => /lib/libm.so.6 (0x...)` or `/lib64/ld-linux-x86-64.so.2 (0x...)`. The vdso
/// has no path. A library that was linked by its path is listed by it, which may be relative.
pub fn listed_path(line: &str) -> Option<PathBuf> {
    let line = line.trim();
    let path = line.split_once(" => ").map_or(line, |(_, path)| path);
    let path = path.rsplit_once(" (0x")?.0;
    path.contains('/').then(|| PathBuf::from(path))
}

/// Return the banner of libc.so.6, which ends with its version. Reads the file, and runs nothing.
pub fn greeting(path: &Path) -> Option<String> {
    if path.file_name()? != "libc.so.6" {
        return None;
    }
    let data = fs::read(path).ok()?;
    let start = data.windows(13).position(|w| w == b"GNU C Library")?;
    let line: Vec<u8> =
        data[start..].iter().copied().take_while(|&b| b != b'\n' && b != 0).collect();
    Some(String::from_utf8_lossy(&line).trim_end_matches('.').to_string())
}

pub fn number(greeting: &str) -> &str {
    greeting.rsplit(' ').next().unwrap_or_default()
}
