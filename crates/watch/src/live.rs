//! Read the statistics that the runtime of a running process publishes (runtime/monitor/publish.c).
//! They are under /proc, so every user who may inspect the process can read them.
//!
//! Any process of its user may have written the bytes. So treat them as arbitrary numbers, and
//! bound those that count our own work.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use runtime::abi;

/// Bytes with the alignment of `abi::Live`.
pub struct Copy(Vec<u64>);

const WORDS: usize = size_of::<abi::Live>().div_ceil(8);

impl Copy {
    pub fn get(&self) -> &abi::Live {
        // SAFETY: as long as the structure, aligned for u64, and made of integers only, for which
        // all bits are valid.
        unsafe { &*self.0.as_ptr().cast() }
    }

    /// Check and copy statistics. Fails if they are too short, invalid, or of another version.
    pub fn parse(bytes: &[u8]) -> Result<Copy, Trouble> {
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        let words: Vec<u64> = bytes.chunks_exact(8).take(WORDS).map(word).collect();
        let version = words.get(1).map_or(0, |&word| word as u32);
        match words.first() {
            // The file exists, but nothing was written yet.
            None | Some(0) => Err(Trouble::NotThere),
            // The file of another release may have another size.
            Some(&abi::LIVE_MAGIC) if version != abi::LIVE_VERSION => {
                Err(Trouble::Version(version))
            }
            Some(&abi::LIVE_MAGIC) if words.len() == WORDS => {
                let copy = Copy(words);
                let is_as_long = copy.get().bytes.load(Relaxed) as usize == size_of::<abi::Live>();
                if is_as_long { Ok(copy) } else { Err(Trouble::Garbage) }
            }
            Some(_) => Err(Trouble::Garbage),
        }
    }
}

/// Why the statistics cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Layout version of another release of lissom.
    Version(u32),
    Garbage,
    /// The process has ended, or executed another program.
    Gone,
    NotAllowed,
    /// None exist: the process has had one thread so far, runs natively, or may not make files.
    NotThere,
}

impl Trouble {
    pub fn text(self) -> String {
        match self {
            Trouble::Version(version) => {
                let ours = abi::LIVE_VERSION;
                format!(
                    "its runtime is of another release of lissom (layout {version}, not {ours})"
                )
            }
            Trouble::Garbage => "its statistics are invalid".into(),
            Trouble::Gone => "it has ended".into(),
            Trouble::NotAllowed => {
                "it belongs to another user, or may not be inspected; run as root".into()
            }
            Trouble::NotThere => {
                "it publishes no statistics: no two threads have run at once yet, or it runs \
                 natively (LISSOM_VERBOSE=1 prints the reason)"
                    .into()
            }
        }
    }
}

/// The open file with a process's statistics.
pub struct Live(File);

impl Live {
    /// Find the file among the descriptors of the process's monitor.
    pub fn find(pid: u32) -> Result<Live, Trouble> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| Trouble::Gone)?;
        let monitor = tasks.flatten().map(|t| t.path()).find(|task| is_monitor(task));
        let descriptors = match monitor.map(|task| fs::read_dir(task.join("fd"))) {
            Some(Ok(descriptors)) => descriptors,
            Some(Err(e)) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(Trouble::NotAllowed);
            }
            Some(Err(_)) => return Err(Trouble::Gone),
            None => return Err(Trouble::NotThere),
        };
        let path: Option<PathBuf> = descriptors
            .flatten()
            .map(|d| d.path())
            .find(|path| fs::read_link(path).is_ok_and(|to| is_live(&to.to_string_lossy())));
        let file = File::open(path.ok_or(Trouble::NotThere)?).map_err(|_| Trouble::NotAllowed)?;
        Ok(Live(file))
    }

    pub fn read(&self) -> Result<Copy, Trouble> {
        let size = self.0.metadata().map_err(|_| Trouble::Gone)?.size().min(1 << 20);
        let mut bytes = vec![0; size as usize];
        self.0.read_exact_at(&mut bytes, 0).map_err(|_| Trouble::Garbage)?;
        Copy::parse(&bytes)
    }
}

pub fn is_monitor(task: &Path) -> bool {
    fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == abi::MONITOR_NAME)
}

/// Return whether `link` is like `/memfd:lissom-live (deleted)`.
fn is_live(link: &str) -> bool {
    link.strip_prefix("/memfd:")
        .and_then(|l| l.strip_prefix(abi::LIVE_NAME))
        .is_some_and(|rest| rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> Vec<u8> {
        let copy = Copy(vec![0; WORDS]);
        let live = copy.get();
        live.magic.store(abi::LIVE_MAGIC, Relaxed);
        live.version.store(abi::LIVE_VERSION, Relaxed);
        live.bytes.store(size_of::<abi::Live>() as u32, Relaxed);
        live.threads.store(7, Relaxed);
        copy.0.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    #[test]
    fn only_what_is_whole_and_of_this_release() {
        let good = bytes();
        assert_eq!(Copy::parse(&good).map(|c| c.get().threads.load(Relaxed)), Ok(7));
        assert_eq!(Copy::parse(&good[..good.len() - 8]).err(), Some(Trouble::Garbage));
        let mut other = good.clone();
        other[8] += 1;
        assert_eq!(Copy::parse(&other).err(), Some(Trouble::Version(abi::LIVE_VERSION + 1)));
        let mut nonsense = good;
        nonsense[0] ^= 1;
        assert_eq!(Copy::parse(&nonsense).err(), Some(Trouble::Garbage));
        assert_eq!(Live::find(u32::MAX >> 1).err(), Some(Trouble::Gone));
        assert_eq!(Live::find(std::process::id()).err(), Some(Trouble::NotThere));
    }

    #[test]
    fn names_of_links() {
        assert!(is_live("/memfd:lissom-live (deleted)"));
        assert!(
            !is_live("/memfd:lissom-lively (deleted)") && !is_live("/tmp/lissom-live (deleted)")
        );
    }
}
