//! The socket to which programs under lissom connect, and the page of memory that each of them
//! receives (runtime/abi.h, struct lissom_program).
//!
//! Programs are not trusted. The manager bounds the numbers that it reads from a page, and never
//! waits for a program. So a program can do harm only to itself by its page or its connection.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use memmap2::MmapMut;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, FlockArg, SealFlag, fcntl};
use nix::poll::{self, PollFd, PollFlags, PollTimeout};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{
    self, AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr,
    UnixCredentials, sockopt,
};

use os::process;
use runtime::abi;
use watch::activity::Id;

/// Maximum number of connected programs of one user. Each costs a descriptor and a page.
const MAX_PROGRAMS_OF_A_USER: usize = 1024;
/// Maximum number of connected programs of all users.
const MAX_PROGRAMS: usize = 8192;

/// The remedy for a path that cannot be used.
const ELSEWHERE: &str = "--socket=PATH names another path";

/// Return the default path of the socket: LISSOM_MANAGER if set, otherwise a path to which the
/// programs of this user connect, for root those of all users. Fails without XDG_RUNTIME_DIR.
pub fn default_socket() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os(abi::ENV_MANAGER) {
        return Ok(path.into());
    }
    if process::euid() == 0 {
        return Ok(abi::MANAGER_SYSTEM.into());
    }
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|f| Path::new(f).is_absolute());
    let folder = folder.with_context(|| {
        format!(
            "XDG_RUNTIME_DIR is not set, so there is no folder for the socket; set {} to a path, for the manager and the programs",
            abi::ENV_MANAGER
        )
    })?;
    Ok(Path::new(&folder).join(abi::MANAGER_SOCKET))
}

struct Program {
    user: u32,
    connection: OwnedFd,
    page: MmapMut,
}

impl Program {
    fn page(&self) -> &abi::Program {
        // SAFETY: the mapping is a page, aligned, as long as the structure and more; all of its
        // fields are atomics, for which any bits are a value; the memory is sealed, so it cannot
        // shrink.
        unsafe { &*self.page.as_ptr().cast() }
    }
}

/// Read the program's fields of a page, and bound them.
pub fn report(page: &abi::Program) -> Report {
    let word = |i: usize| page.cpus[i / 64].load(Relaxed);
    Report {
        is_malleable: page.is_malleable.load(Relaxed) != 0,
        slots: page.slots.load(Relaxed).min(abi::MAX_SLOTS as u32),
        limit: page.limit.load(Relaxed).clamp(1, abi::MAX_SLOTS as u32),
        cpus: (0..abi::PEER_CPUS).filter(|&i| word(i) >> (i % 64) & 1 != 0).collect(),
        heartbeat: page.heartbeat.load(Relaxed),
        waits: page.waits.load(Relaxed),
    }
}

/// The state that a program reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether it follows its target. False if it runs natively.
    pub is_malleable: bool,
    /// Maximum number of threads running at once, at most MAX_SLOTS.
    pub slots: u32,
    /// Slots that it would have alone, at least 1. More CPUs are useless to it.
    pub limit: u32,
    /// CPUs that it may use.
    pub cpus: Vec<usize>,
    /// Time of its last check, in ns of CLOCK_MONOTONIC. 0: it has not checked its page yet.
    pub heartbeat: u64,
    /// Ended waits of its threads for each other: its progress.
    pub waits: u64,
}

/// The share of the CPUs that a program receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Maximum number of threads running at once, 1 to MAX_SLOTS.
    pub threads: u32,
    /// CPUs to which the program binds its threads. It binds none if it may use fewer of them than
    /// it has slots.
    pub cpus: Vec<usize>,
}

pub struct Server {
    listener: OwnedFd,
    path: PathBuf,
    user: u32,
    programs: HashMap<Id, Program>,
    /// Target for programs that connect, and how long it holds.
    first: Option<(Target, Duration)>,
    /// Whether to report refused programs of other users.
    tells_refused: bool,
    /// The last one that was reported.
    refused: Option<Id>,
    /// Ensures that only one manager listens at the path.
    _lock: Flock<File>,
}

impl Server {
    /// Listen at `path`, and create its folder. If this process is root, all users may connect,
    /// otherwise only the same user. Fails if another manager listens there.
    pub fn listen(path: &Path) -> anyhow::Result<Server> {
        let user = process::euid();
        let is_root = user == 0;
        if let Some(folder) = path.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(if is_root { 0o755 } else { 0o700 });
            builder
                .create(folder)
                .with_context(|| format!("cannot create {} ({ELSEWHERE})", folder.display()))?;
        }
        let lock = lock(path)?;
        // We hold the lock, so a manager that has ended left this socket.
        match fs::symlink_metadata(path) {
            Ok(about) if about.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => bail!(
                "{} exists and is not a socket; remove it, or name another path by --socket",
                path.display()
            ),
            Err(_) => {}
        }
        let listener = socket::socket(
            AddressFamily::Unix,
            SockType::SeqPacket,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            None,
        )?;
        let bound =
            UnixAddr::new(path).and_then(|address| socket::bind(listener.as_raw_fd(), &address));
        bound.with_context(|| format!("cannot listen at {} ({ELSEWHERE})", path.display()))?;
        fs::set_permissions(path, Permissions::from_mode(if is_root { 0o666 } else { 0o600 }))?;
        socket::listen(&listener, Backlog::new(1024)?)?;
        Ok(Server {
            listener,
            path: path.into(),
            user,
            programs: HashMap::new(),
            first: None,
            tells_refused: false,
            refused: None,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Report refused programs of other users on standard error from now on.
    pub fn tell_refused(&mut self) {
        self.tells_refused = true;
    }

    /// Accept connections for `time`. Returns early after a signal.
    pub fn wait(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        loop {
            // Round up: with a timeout of 0, poll would busy-wait for the last millisecond.
            let left = end.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
            let left = PollTimeout::try_from(left.as_millis()).unwrap_or(PollTimeout::MAX);
            match poll::poll(&mut [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)], left) {
                Ok(0) => return Ok(()),
                // Out of descriptors: pending connections would keep the listener ready.
                Ok(_) if !self.admit_all()? => {
                    std::thread::sleep(end.saturating_duration_since(Instant::now()));
                    return Ok(());
                }
                Ok(_) => {}
                // A signal, which may have set the flag to end.
                Err(Errno::EINTR) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
            if Instant::now() >= end {
                return Ok(());
            }
        }
    }

    /// Accept all pending connections without blocking. Returns false if descriptors or memory ran
    /// out, so that some remain pending. Nothing reads from connections.
    fn admit_all(&mut self) -> io::Result<bool> {
        loop {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            match socket::accept4(self.listener.as_raw_fd(), flags) {
                // SAFETY: accept4 has just created this descriptor; nothing else owns it.
                Ok(fd) => self.admit(unsafe { OwnedFd::from_raw_fd(fd) }),
                Err(Errno::EAGAIN) => return Ok(true),
                Err(Errno::ECONNABORTED | Errno::EINTR) => {}
                Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => {
                    return Ok(false);
                }
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Remove programs that have closed their connection.
    pub fn forget_closed(&mut self) {
        let ids: Vec<Id> = self.programs.keys().copied().collect();
        let poll = |id| PollFd::new(self.programs[id].connection.as_fd(), PollFlags::empty());
        let mut polled: Vec<PollFd> = ids.iter().map(poll).collect();
        if poll::poll(&mut polled, PollTimeout::ZERO).is_err() {
            return;
        }
        let open: Vec<bool> =
            polled.iter().map(|p| p.revents().is_some_and(|e| e.is_empty())).collect();
        for (id, _) in ids.iter().zip(open).filter(|&(_, open)| !open) {
            self.programs.remove(id);
        }
    }

    /// Admit a program, and send it a page and the first target. Closes the connection if the
    /// program is refused.
    fn admit(&mut self, connection: OwnedFd) {
        let Ok(peer) = socket::getsockopt(&connection, sockopt::PeerCredentials) else { return };
        // 0: its PID namespace is not visible from this one.
        let (Ok(id @ 1..), user) = (Id::try_from(peer.pid()), peer.uid()) else { return };
        let of_user = self.programs.values().filter(|p| p.user == user).count();
        let is_known = self.programs.contains_key(&id);
        if !may_connect(&peer, self.user) {
            // The program retries every second: report it once.
            if self.tells_refused && self.refused.replace(id) != Some(id) {
                ui::message!(
                    "lissom: refused process {id} of user {user}: this manager serves user {}; \
                     run it as root to serve all users",
                    self.user
                );
            }
            return;
        }
        if !is_known && (of_user >= MAX_PROGRAMS_OF_A_USER || self.programs.len() >= MAX_PROGRAMS) {
            return;
        }
        // A known program connects again if it has changed its user, or restarted its monitor. The
        // new page replaces the old one.
        if let Ok(page) = hand_over(&connection) {
            self.programs.insert(id, Program { user, connection, page });
            if let Some((target, lasting)) = &self.first {
                self.set_target(id, target, *lasting);
            }
        }
    }

    /// Return the reports of connected programs that have checked their page at least once.
    pub fn reports(&self) -> BTreeMap<Id, Report> {
        let looked =
            self.programs.iter().filter(|(_, program)| program.page().heartbeat.load(Relaxed) != 0);
        looked.map(|(&id, program)| (id, report(program.page()))).collect()
    }

    /// Set the target that programs receive when they connect, so that they need not wait for the
    /// next decision. It holds for `lasting` from then.
    pub fn set_first_target(&mut self, target: Target, lasting: Duration) {
        self.first = Some((target, lasting));
    }

    /// Set the target of a program. It holds for `lasting` from now. Does nothing if the program is
    /// not connected.
    pub fn set_target(&self, id: Id, target: &Target, lasting: Duration) {
        let Some(program) = self.programs.get(&id) else { return };
        let until = (process::monotonic() + lasting).as_millis() as u64;
        let threads = u64::from(target.threads.clamp(1, abi::MAX_SLOTS as u32));
        // A program that sees only one of these writes sees both at its next check, a few
        // milliseconds later.
        for (i, word) in program.page().keep_to.iter().enumerate() {
            let bits = target.cpus.iter().filter(|&cpu| cpu / 64 == i).map(|cpu| 1 << (cpu % 64));
            word.store(bits.fold(0, |all: u64, bit| all | bit), Relaxed);
        }
        program.page().target.store(until << 16 | threads, Relaxed);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Take the lock of the manager at `path`, a file beside it. Fails if another manager holds it.
fn lock(path: &Path) -> anyhow::Result<Flock<File>> {
    let path = path.with_extension("lock");
    // A user who can open the file, even only for reading, could hold the lock.
    let file = File::options().create(true).append(true).mode(0o600).open(&path);
    let file = file.with_context(|| format!("cannot open {} ({ELSEWHERE})", path.display()))?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| match e {
        Errno::EWOULDBLOCK => {
            anyhow::anyhow!("another manager is running: it holds {}", path.display())
        }
        e => anyhow::anyhow!("cannot lock {}: {e}", path.display()),
    })
}

fn may_connect(peer: &UnixCredentials, own_user: u32) -> bool {
    own_user == 0 || peer.uid() == own_user
}

/// Create a program's page, and send its descriptor. Does not block.
fn hand_over(connection: &OwnedFd) -> io::Result<MmapMut> {
    let fd = memfd_create("lissom-program", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
    let file = File::from(fd);
    file.set_len(abi::PROGRAM_BYTES as u64)?;
    fcntl(
        &file,
        FcntlArg::F_ADD_SEALS(
            SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL,
        ),
    )?;
    // SAFETY: the file is ours, as long as a page, and sealed against shrinking. The program writes
    // to it by design; we access it through atomics only.
    let page = unsafe { MmapMut::map_mut(&file)? };
    // SAFETY: as in Program::page.
    let program: &abi::Program = unsafe { &*page.as_ptr().cast() };
    program.version.store(abi::PROGRAM_VERSION, Relaxed);
    program.magic.store(abi::PROGRAM_MAGIC, Relaxed);
    let hello = abi::PROGRAM_MAGIC.to_ne_bytes();
    let descriptors = [file.as_fd().as_raw_fd()];
    socket::sendmsg::<()>(
        connection.as_raw_fd(),
        &[IoSlice::new(&hello)],
        &[ControlMessage::ScmRights(&descriptors)],
        MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    Ok(page)
}
