//! Find a program as a shell does, and decide whether it can be managed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};
use object::read::ReadCache;
use ui::exit::{self, Failure};

use crate::elf::{self, Elf, Kind};
use crate::process;

/// Resolve a command name: by PATH, unless it contains a slash.
pub fn find(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Failure> {
    if name.is_empty() {
        let message = "the name of the program is empty; pass the name or the path of one".into();
        return Err(Failure { code: exit::NOT_FOUND, message });
    }
    let shown = name.to_string_lossy();
    let is_variable = is_assignment(name.as_bytes());
    let set_it = format!("to set a variable, write env in front of {shown}");
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return executable(&path).map(|()| path).map_err(|e| match e.code {
            exit::NOT_FOUND if is_variable => {
                Failure { message: format!("{shown}: not found; {set_it}"), ..e }
            }
            _ => e,
        });
    }
    // Shells have such a default if PATH is not set.
    let folders = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let mut refused = None;
    for folder in std::env::split_paths(folders) {
        // An empty entry means the current folder.
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let candidate = folder.join(name);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            // Not executable: a later folder may have another one.
            Err(e) if e.code == exit::NOT_EXECUTABLE && !candidate.is_dir() => {
                refused = refused.or(Some(e))
            }
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        let here = Path::new(".").join(name);
        let fix = if executable(&here).is_ok() {
            format!("to run the one in this folder, write ./{shown}")
        } else if is_variable {
            set_it
        } else {
            "check the spelling, install it, or give its path".to_string()
        };
        Failure { code: exit::NOT_FOUND, message: format!("{shown}: not found in PATH; {fix}") }
    }))
}

/// Return whether a shell would take the word for NAME=VALUE.
fn is_assignment(word: &[u8]) -> bool {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    word.iter().position(|b| !is_name(b)).is_some_and(|at| at > 0 && word[at] == b'=')
}

fn executable(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let refuse = |code, text: String| Err(Failure { code, message: format!("{shown}: {text}") });
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) => return Err(cannot_execute(path, &e)),
    };
    if metadata.is_dir() {
        return refuse(exit::NOT_EXECUTABLE, "is a folder, not a program; pass a program".into());
    }
    if !metadata.is_file() {
        return refuse(exit::NOT_EXECUTABLE, "is not a regular file; pass a program".into());
    }
    if !may_execute(path) {
        let fix = if metadata.permissions().mode() & 0o111 == 0 {
            format!("is not executable; run chmod +x {shown}")
        } else {
            "permission denied; check the modes of the file and its folders, and for a noexec mount"
                .into()
        };
        return refuse(exit::NOT_EXECUTABLE, fix);
    }
    Ok(())
}

fn may_execute(path: &Path) -> bool {
    faccessat(AT_FDCWD, path, AccessFlags::X_OK, AtFlags::AT_EACCESS).is_ok()
}

/// Return exit code and message for the error with which the system refused to execute `path`.
pub fn cannot_execute(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    let (code, text) = match error.raw_os_error() {
        Some(libc::ENOENT) if path.exists() => {
            let missing = interpreter_of(path)
                .map_or("its interpreter".into(), |i| format!("its interpreter {i}"));
            (
                exit::NOT_FOUND,
                format!("{missing} does not exist; install it or correct the file's first line"),
            )
        }
        Some(libc::ENOENT) => (exit::NOT_FOUND, "not found; check the path".into()),
        Some(libc::ENOTDIR) => (
            exit::NOT_FOUND,
            "not found: a part of the path is not a folder; check the path".into(),
        ),
        Some(libc::EACCES) => (
            exit::NOT_EXECUTABLE,
            "permission denied; check the modes of the file and its folders".into(),
        ),
        Some(libc::ENOEXEC) => (exit::NOT_EXECUTABLE, "is not a program for this machine".into()),
        Some(libc::E2BIG) => {
            (exit::NOT_EXECUTABLE, "arguments and environment are too long; pass less".into())
        }
        Some(libc::ETXTBSY) => {
            (exit::NOT_EXECUTABLE, "is open for writing; wait until it is complete".into())
        }
        _ => (exit::NOT_EXECUTABLE, format!("cannot be executed: {error}")),
    };
    Failure { code, message: format!("{shown}: {text}") }
}

fn interpreter_of(path: &Path) -> Option<String> {
    match kind(path).ok()? {
        Kind::Script { interpreter, .. } => Some(interpreter),
        Kind::Elf(elf) => elf.interpreter,
        _ => None,
    }
}

/// The program that a command runs, after following `#!` lines.
pub struct Program {
    /// The given file, followed by each interpreter.
    pub chain: Vec<PathBuf>,
    /// Content of the last file, if it is an ELF file of this machine.
    pub elf: Option<Elf>,
    /// Reason why it cannot be managed.
    pub native: Option<Reason>,
}

pub struct Reason {
    pub text: String,
    /// The programs that it starts can be managed, so they may inherit the runtime.
    pub children: bool,
}

/// Levels of `#!` that the kernel follows.
const SCRIPT_LEVELS: usize = 4;

/// Inspect a program without running it.
pub fn inspect(path: &Path) -> Program {
    let mut program = Program { chain: vec![path.to_path_buf()], elf: None, native: None };
    let native = |text: String, children| Some(Reason { text, children });
    loop {
        let file = program.chain.last().map_or(path, |p| p.as_path()).to_path_buf();
        let shown = file.display();
        let kind = match kind(&file) {
            Ok(kind) => kind,
            Err(e) => {
                program.native = native(format!("{shown} cannot be read ({e})"), false);
                return program;
            }
        };
        match kind {
            Kind::Script { .. } if program.chain.len() > SCRIPT_LEVELS => {
                program.native = native(format!("{shown}: too many levels of #!"), false);
            }
            Kind::Script { interpreter, argument } => {
                let next = script_target(&interpreter, argument.as_deref());
                program.chain.push(next);
                continue;
            }
            // Shells run text themselves, with sh.
            Kind::Text => {
                program.chain.push("/bin/sh".into());
                continue;
            }
            Kind::OtherMachine(what) => {
                program.native =
                    native(format!("{shown} is {what}; lissom manages x86-64 programs"), false);
            }
            Kind::Unknown => {
                program.native = native(format!("{shown} is not an ELF file or a script"), false)
            }
            Kind::Elf(elf) => {
                program.native = unsuitable(&file, &elf);
                program.elf = Some(elf);
            }
        }
        return program;
    }
}

/// Resolve `#!/usr/bin/env python3` to python3. Follows only env's simple form.
fn script_target(interpreter: &str, argument: Option<&str>) -> PathBuf {
    let simple = argument.map(|a| a.strip_prefix("-S").unwrap_or(a).trim_start());
    if Path::new(interpreter).file_name() == Some(OsStr::new("env"))
        && let Some(name) = simple.and_then(|a| a.split(' ').find(|w| !w.contains('=')))
        && !name.starts_with('-')
        && let Ok(found) = find(OsStr::new(name), std::env::var_os("PATH").as_deref())
    {
        return found;
    }
    PathBuf::from(interpreter)
}

/// Return the kind of a regular file.
pub fn kind(path: &Path) -> io::Result<Kind> {
    // A FIFO or a terminal would block here.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut file = File::open(path)?;
    if metadata.len() == 0 {
        // Some file systems report a length of 0.
        let mut data = Vec::new();
        file.read_to_end(&mut data)?;
        return Ok(elf::classify(&*data));
    }
    file.read_exact(&mut [0])?; // an error here would be taken for an empty file
    Ok(elf::classify(&ReadCache::new(file)))
}

/// glibc's loader.
const LOADER: &str = "ld-linux-x86-64.so.2";

fn unsuitable(path: &Path, elf: &Elf) -> Option<Reason> {
    let shown = path.display();
    let reason = |text: String, children| Some(Reason { text, children });
    let Some(loader) = &elf.interpreter else {
        if path.file_name() == Some(OsStr::new(LOADER)) {
            return None; // `ld-linux-x86-64.so.2 ./program` obeys LD_PRELOAD
        }
        // A static program, or a library.
        let text = if elf.needed.is_empty() {
            "is statically linked"
        } else {
            "has no program interpreter"
        };
        return reason(format!("{shown} {text}; LD_PRELOAD has no effect on it"), true);
    };
    if Path::new(loader).file_name() != Some(OsStr::new(LOADER)) {
        let libc = if loader.contains("/ld-musl-") { "musl" } else { "a libc other than glibc" };
        // The loader of another libc fails on a library made for glibc.
        return reason(format!("{shown} uses {libc} ({loader})"), false);
    }
    if let Ok(metadata) = fs::metadata(path) {
        let mode = metadata.mode();
        if mode & libc::S_ISUID != 0 && metadata.uid() != process::ruid() {
            return reason(
                format!("{shown} is setuid; the loader ignores LD_PRELOAD for it"),
                false,
            );
        }
        if mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && metadata.gid() != rgid() {
            return reason(
                format!("{shown} is setgid; the loader ignores LD_PRELOAD for it"),
                false,
            );
        }
    }
    if process::ruid() != 0 && has_capabilities(path) {
        return reason(
            format!("{shown} has file capabilities; the loader ignores LD_PRELOAD for it"),
            false,
        );
    }
    None
}

fn rgid() -> u32 {
    nix::unistd::getgid().as_raw()
}

pub fn has_capabilities(path: &Path) -> bool {
    let Ok(text) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    let name = c"security.capability";
    // SAFETY: two C strings; a length of 0 requests the size only.
    unsafe { libc::getxattr(text.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup() {
        let path = Some(OsStr::new("/nonexistent:/usr/bin:/bin"));
        assert_eq!(find(OsStr::new("/bin/sh"), path).ok(), Some("/bin/sh".into()));
        assert!(find(OsStr::new("sh"), path).is_ok());
        assert_eq!(find(OsStr::new("no-such-program"), path).unwrap_err().code, 127);
        assert_eq!(find(OsStr::new(""), path).unwrap_err().code, 127);
        assert_eq!(find(OsStr::new("/"), path).unwrap_err().code, 126);
        assert_eq!(find(OsStr::new("/etc/passwd"), path).unwrap_err().code, 126);
        assert_eq!(find(OsStr::new("/etc/passwd/x"), path).unwrap_err().code, 127);
    }

    #[test]
    fn env_lines() {
        assert_eq!(script_target("/bin/sh", Some("-e")), PathBuf::from("/bin/sh"));
        assert!(script_target("/usr/bin/env", Some("sh")).ends_with("sh"));
        assert!(script_target("/usr/bin/env", Some("-S A=1 sh -e")).ends_with("sh"));
        assert_eq!(script_target("/usr/bin/env", Some("-i sh")), PathBuf::from("/usr/bin/env"));
    }
}
