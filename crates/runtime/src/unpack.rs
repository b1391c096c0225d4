//! Put the runtime where the program's dynamic loader finds it, and no other user can change it.
//!
//! Tried in this order: the installed copy beside this binary, a private folder of the user, a
//! sealed memfd. The memfd comes last, because a program that closes all its descriptors takes it
//! away from its children. Their loader then complains, and continues without it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use nix::fcntl::SealFlag;
use nix::sys::statvfs::{FsFlags, fstatvfs};

use crate::abi::{RUNTIME, RUNTIME_HASH};
use os::process;

/// Age of unused copies that are removed when a new one is written.
const STALE: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);

/// Number of bytes at the end of the runtime that are compared with those of a copy.
const END: usize = 4096;

/// Return the path to preload. It stays valid in the program that this process becomes.
pub fn unpack() -> io::Result<PathBuf> {
    let name = file_name();
    if let Some(installed) = installed(&name) {
        // Create the folder where the runtime keeps its knowledge of library code.
        let _ = private_bases().any(|(base, mode)| private_folder(&base, mode).is_ok());
        return Ok(installed);
    }
    for (base, mode) in private_bases() {
        if let Ok(path) = in_folder(&base, mode, &name) {
            return Ok(path);
        }
    }
    in_memory()
}

/// Return the runtime's file name. It contains the content's hash, so that versions do not collide.
pub fn file_name() -> String {
    format!("liblissom-{RUNTIME_HASH}.so")
}

/// Find the copy that `make install` puts into PREFIX/lib/lissom, readable for every user.
fn installed(name: &str) -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let path = exe.parent()?.parent()?.join("lib/lissom").join(name);
    let folder = trusted_folder(path.parent()?).ok()?;
    let path = folder.join(name);
    (preloadable(&path) && is_ours(&path)).then_some(path)
}

/// Write the runtime into `folder`, as for an installation.
pub fn install(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    write(folder, &folder.join(file_name()))
}

/// Iterate over folders that may contain a `lissom` folder, with the mode of that folder.
fn private_bases() -> impl Iterator<Item = (PathBuf, u32)> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    // Readable for others, so that a service that drops its privileges still finds it.
    let run = (process::euid() == 0).then(|| (PathBuf::from("/run"), 0o755));
    let runtime = variable("XDG_RUNTIME_DIR").map(|p| (p, 0o700));
    // Evaluated last: this one may create a folder.
    let cache = std::iter::once_with(move || {
        variable("XDG_CACHE_HOME").or_else(|| {
            let cache = variable("HOME")?.join(".cache");
            // A new account has no .cache: this is the only base folder that is created.
            let _ = fs::DirBuilder::new().mode(0o700).create(&cache);
            Some(cache)
        })
    });
    run.into_iter().chain(runtime).chain(cache.flatten().map(|p| (p, 0o700)))
}

/// Return the `lissom` folder in `base`, and create it if necessary. Fails if others can write to
/// it.
fn private_folder(base: &Path, mode: u32) -> io::Result<PathBuf> {
    let base = trusted_folder(base)?;
    let folder = base.join("lissom");
    match fs::DirBuilder::new().mode(mode).create(&folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let metadata = fs::symlink_metadata(&folder)?;
    if !metadata.is_dir()
        || metadata.uid() != process::euid()
        || metadata.mode() & 0o7777 & !mode != 0
    {
        return Err(io::Error::other("not a private folder"));
    }
    Ok(folder)
}

fn in_folder(base: &Path, mode: u32, name: &str) -> io::Result<PathBuf> {
    let folder = private_folder(base, mode)?;
    let path = folder.join(name);
    if !preloadable(&path) || forbids_execution(&folder)? {
        return Err(io::Error::other("not suitable to preload from"));
    }
    if !is_ours(&path) {
        remove_stale(&folder);
        write(&folder, &path)?;
    }
    Ok(path)
}

/// Return the folder's real path. Fails unless only root and this user can change anything on the
/// way to it. A sticky parent such as /tmp may be writable for all: others cannot replace there
/// what this user owns.
pub fn trusted_folder(folder: &Path) -> io::Result<PathBuf> {
    let real = folder.canonicalize()?;
    for part in real.ancestors() {
        let metadata = fs::symlink_metadata(part)?;
        let owner = metadata.uid();
        let writable = metadata.mode() & 0o022 != 0;
        let sticky = metadata.mode() & 0o1000 != 0;
        let last = part == real;
        if !metadata.is_dir()
            || (owner != 0 && owner != process::euid())
            || (writable && (last || !sticky))
        {
            return Err(io::Error::other("other users can write to it or to a parent folder"));
        }
    }
    Ok(real)
}

/// Return whether LD_PRELOAD can contain the path. The loader splits it at spaces and colons, and
/// expands `$`.
fn preloadable(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|b| b" \t\n:;$".contains(b))
}

/// Return whether the file system is mounted with `noexec`: its libraries cannot be mapped.
fn forbids_execution(folder: &Path) -> io::Result<bool> {
    let folder = File::open(folder)?;
    Ok(fstatvfs(&folder)?.flags().contains(FsFlags::ST_NOEXEC))
}

/// Return whether the file exists, others cannot change it, and it is this runtime. Its name
/// contains the hash of its content, and it gets that name only when it is complete (`write`). So
/// only the end is compared, which a truncated file lacks. Comparing all of it would take 1.2 ms.
fn is_ours(path: &Path) -> bool {
    let check = || -> io::Result<bool> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
        let metadata = file.metadata()?;
        let trusted = metadata.uid() == 0 || metadata.uid() == process::euid();
        if !metadata.is_file()
            || !trusted
            || metadata.mode() & 0o022 != 0
            || metadata.len() != RUNTIME.len() as u64
        {
            return Ok(false);
        }
        let at = RUNTIME.len().saturating_sub(END);
        let mut end = [0; END];
        let end = &mut end[..RUNTIME.len() - at];
        file.read_exact_at(end, at as u64)?;
        Ok(end == &RUNTIME[at..])
    };
    check().unwrap_or(false)
}

/// Write the runtime to `path`. It has a temporary name until it is complete and on the disk, so
/// that no process sees half a file.
fn write(folder: &Path, path: &Path) -> io::Result<()> {
    let temporary = folder.join(format!(".{}.{}", file_name(), std::process::id()));
    let result = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&temporary)?;
        file.write_all(RUNTIME)?;
        // Override the umask: the folder decides whether others have access.
        file.set_permissions(fs::Permissions::from_mode(0o755))?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let stale = || -> io::Result<bool> {
            let metadata = entry.metadata()?;
            // Loading a copy updates its access time, at least once a day.
            let used = metadata.accessed()?.max(metadata.modified()?);
            Ok(used.elapsed().is_ok_and(|age| age > STALE))
        };
        let ours = [&b"liblissom-"[..], b"sites-"]
            .iter()
            .any(|prefix| entry.file_name().as_bytes().starts_with(prefix));
        if ours && stale().unwrap_or(false) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn in_memory() -> io::Result<PathBuf> {
    let fd = process::inherited_memfd("liblissom.so")?;
    let mut file = File::from(fd);
    file.write_all(RUNTIME)?;
    let fd = file.into();
    process::seal(&fd, SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    // Keep it open: the program inherits it.
    std::mem::forget(fd);
    Ok(path)
}

/// Return whether an entry of LD_PRELOAD is a runtime that lissom put there. It may be in memory of
/// another process, whose descriptor this one lacks.
pub fn is_runtime(entry: &OsStr) -> bool {
    let path = Path::new(entry);
    let named = |p: &Path| {
        p.file_name().is_some_and(|n| {
            n.as_bytes().starts_with(b"liblissom-") && n.as_bytes().ends_with(b".so")
        })
    };
    named(path)
        || match fs::read_link(path) {
            Ok(to) => to.as_os_str().as_bytes().starts_with(b"/memfd:liblissom.so"),
            Err(_) => path.starts_with("/proc/self/fd"),
        }
}
