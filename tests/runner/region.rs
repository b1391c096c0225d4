//! The statistics region that a case's processes write into (runtime/abi.h), and its records.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::fs::FileExt as _;

use runtime::abi;

/// Maximum number of process records in a region.
pub const MAX_RECORDS: usize = abi::MAX_RECORDS;

/// Lowest descriptor number of the region: the case may use all those below.
const LOWEST_DESCRIPTOR: libc::c_int = 500;

/// A sealed memfd like that of `lissom run --stats`. Its descriptor is closed on exec.
pub struct Region(File);

/// One process of the case, as recorded by its runtime.
pub struct Process {
    pub pid: u32,
    pub name: String,
    pub state: &'static str,
    /// Reason for running natively; empty otherwise.
    pub reason: String,
    pub slots: u64,
    counters: Vec<(&'static str, u64)>,
    pins: Vec<(&'static str, u64)>,
}

impl Region {
    /// Errors: those of memfd_create, fcntl and write.
    pub fn create() -> io::Result<Region> {
        let name = CString::new("lissom-stats")?;
        let flags = libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC;
        // SAFETY: `name` is a C string; the result is checked by `owned`.
        let low = owned(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
        // SAFETY: a descriptor that we own.
        let file = owned(unsafe {
            libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR)
        })?;
        file.set_len(abi::REGION_BYTES as u64)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: a descriptor that we own.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let put = |bytes: &[u8], offset: usize| file.write_all_at(bytes, offset as u64);
        put(&abi::ABI_VERSION.to_ne_bytes(), abi::C_OFFSET_LISSOM_HEADER_VERSION)?;
        put(&(abi::MAX_RECORDS as u32).to_ne_bytes(), abi::C_OFFSET_LISSOM_HEADER_RECORDS)?;
        put(
            &(abi::C_SIZE_LISSOM_RECORD as u32).to_ne_bytes(),
            abi::C_OFFSET_LISSOM_HEADER_RECORD_BYTES,
        )?;
        put(&abi::ABI_MAGIC.to_ne_bytes(), abi::C_OFFSET_LISSOM_HEADER_MAGIC)?;
        Ok(Region(file))
    }

    /// Return the environment variable that passes the region on, and its value.
    pub fn variable(&self) -> (&'static str, String) {
        (abi::ENV_STATS_FD, self.0.as_raw_fd().to_string())
    }

    /// Make the descriptor survive exec. Async-signal-safe: callable between fork and exec.
    pub fn keep_on_exec(descriptor: libc::c_int) {
        // SAFETY: plain system call; an invalid descriptor only makes it fail.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) };
    }

    pub fn descriptor(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }

    /// Return the processes in the order in which they started, with one entry for each program
    /// executed. Processes beyond the region's capacity are missing.
    pub fn processes(&self) -> io::Result<Vec<Process>> {
        let mut word = [0; 4];
        self.0.read_exact_at(&mut word, abi::C_OFFSET_LISSOM_HEADER_CLAIMED as u64)?;
        let claimed = (u32::from_ne_bytes(word) as usize).min(MAX_RECORDS);
        let mut record = vec![0; abi::C_SIZE_LISSOM_RECORD];
        (0..claimed)
            .map(|i| {
                let offset = abi::C_OFFSET_LISSOM_REGION_RECORD + i * abi::C_SIZE_LISSOM_RECORD;
                self.0.read_exact_at(&mut record, offset as u64)?;
                Ok(Process::read(&record))
            })
            .collect()
    }
}

fn owned(descriptor: libc::c_int) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just created and has no other owner.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

impl Process {
    fn read(record: &[u8]) -> Process {
        let u32_at = |offset: usize| {
            u32::from_ne_bytes(record[offset..offset + 4].try_into().unwrap_or_default())
        };
        let u64_at = |offset: usize| {
            u64::from_ne_bytes(record[offset..offset + 8].try_into().unwrap_or_default())
        };
        let text_at = |offset: usize, length: usize| {
            let bytes = &record[offset..offset + length];
            let end = bytes.iter().position(|&b| b == 0).unwrap_or(length);
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        let counter = |i: usize| {
            let striped = (0..abi::STRIPES).filter(|_| i < 8);
            let stripe = |s: usize| u64_at(abi::C_OFFSET_LISSOM_RECORD_STRIPE + (s * 8 + i) * 8);
            u64_at(abi::C_OFFSET_LISSOM_RECORD_COUNTER + i * 8) + striped.map(stripe).sum::<u64>()
        };
        let state = u32_at(abi::C_OFFSET_LISSOM_RECORD_STATE) as usize;
        let pinned = |i: usize| u64_at(abi::C_OFFSET_LISSOM_RECORD_PINNED + i * 8);
        Process {
            pid: u32_at(abi::C_OFFSET_LISSOM_RECORD_PID),
            name: text_at(abi::C_OFFSET_LISSOM_RECORD_COMM, 16),
            state: abi::STATES.get(state).map_or("unknown", |s| s.0),
            reason: text_at(abi::C_OFFSET_LISSOM_RECORD_REASON, 128),
            slots: u32_at(abi::C_OFFSET_LISSOM_RECORD_SLOTS).into(),
            counters: abi::COUNTERS.iter().enumerate().map(|(i, c)| (c.0, counter(i))).collect(),
            pins: abi::PIN_REASONS.iter().enumerate().map(|(i, p)| (p.0, pinned(i))).collect(),
        }
    }

    /// Value of a counter; `pinned.REASON` and `pinned.*` count pinned threads. None: no such
    /// counter.
    pub fn counter(&self, name: &str) -> Option<u64> {
        let find =
            |list: &[(&str, u64)], name: &str| list.iter().find(|c| c.0 == name).map(|c| c.1);
        match name.strip_prefix("pinned.") {
            Some("*") => Some(self.pins.iter().map(|p| p.1).sum()),
            Some(reason) => find(&self.pins, reason),
            None => find(&self.counters, name),
        }
    }

    /// Reasons for which threads are pinned, with the number of threads.
    pub fn pins(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.pins.iter().copied().filter(|pin| pin.1 > 0)
    }

    /// Whether a counter of this name exists.
    pub fn knows(name: &str) -> bool {
        let within = |list: &[(&str, &str)], name: &str| list.iter().any(|c| c.0 == name);
        match name.strip_prefix("pinned.") {
            Some(reason) => reason == "*" || within(abi::PIN_REASONS, reason),
            None => within(abi::COUNTERS, name),
        }
    }
}
