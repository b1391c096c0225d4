//! The structures that the tool shares with the scheduler in the kernel: a copy of
//! bpf/scx_lissom.h, which documents them. A test compares them with the types in the compiled
//! BPF object.

use serde::Serialize;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes, transmute};

use judge::{Candidate, Verdict};

/// `SCX_LISSOM_VERSION`
pub const VERSION: u32 = 4;

/// Define a structure of 64-bit words from the names of its fields.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($field:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        #[derive(FromBytes, IntoBytes, Immutable)]
        #[repr(C)]
        pub struct $name {
            $(pub $field: u64,)*
        }

        impl $name {
            pub const NAMES: &[&str] = &[$(stringify!($field),)*];

            /// The values in the order of NAMES.
            pub fn values(self) -> [u64; Self::NAMES.len()] {
                transmute!(self)
            }
        }
    };
}

words! {
    /// `struct scx_config`. Times are in ns.
    Config { slice_ns, sample_ns, park_ns, is_partial, ignore_limits, stall, made_up }
}

words! {
    /// `struct scx_counts`: totals since the scheduler was loaded.
    Counts {
        wakeups, idle_picks, steals, samples, spin_kicks, spin_ns, parks, unparks, park_ends,
        vcpu_kicks, branch_kicks, bulk_stays, tries, positives,
    }
}

/// `struct scx_scan`: scans of one program by the paper's rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct ScanCounts {
    pub tries: u64,
    pub positives: u64,
}

/// `struct scx_audit`: positives at sites with a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct AuditCounts {
    pub true_positives: u64,
    pub false_positives: u64,
}

words! {
    /// `struct scx_trial`. `error` is a negative number as u64, or 0.
    Trial { looks, counted, quiet, full, loops, error }
}

impl Counts {
    pub fn plus(self, other: Counts) -> Counts {
        self.merge(other, u64::wrapping_add)
    }

    pub fn since(self, before: Counts) -> Counts {
        self.merge(before, u64::saturating_sub)
    }

    fn merge(self, other: Counts, with: fn(u64, u64) -> u64) -> Counts {
        let (mut values, others) = (self.values(), other.values());
        values.iter_mut().zip(others).for_each(|(value, other)| *value = with(*value, other));
        transmute!(values)
    }
}

/// `enum scx_detector`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable)]
#[repr(u64)]
pub enum Detector {
    #[default]
    Registers,
    /// Registers, and branch records.
    Branches,
    /// Only branch records and misses, without a proof.
    Paper,
}

/// `struct scx_state`: the process that loaded the scheduler, and its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct State {
    pub version: u32,
    pub pid: u32,
    /// CLOCK_MONOTONIC, in ns.
    pub started: u64,
    pub detector: Detector,
    pub config: Config,
}

impl State {
    /// Returns None if `bytes` is of another version.
    pub fn parse(bytes: &[u8]) -> Option<State> {
        State::try_read_from_bytes(bytes).ok().filter(|state| state.version == VERSION)
    }
}

/// `struct scx_site`: an instruction of a process, where a scan met it or where a branch closes a
/// loop.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, FromBytes, IntoBytes, Immutable,
)]
#[repr(C)]
pub struct Site {
    pub ip: u64,
    pub pid: u32,
    pad: u32,
}

impl Site {
    pub fn new(pid: u32, ip: u64) -> Site {
        Site { ip, pid, pad: 0 }
    }
}

/// `struct scx_program`: a process, by process ID and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Program {
    pub pid: u32,
    pad: u32,
    /// Ends at the first NUL.
    comm: [u8; 16],
}

impl Program {
    /// The key for the sums over all programs.
    pub const ALL: Program = Program { pid: 0, pad: 0, comm: [0; 16] };

    /// A process with its current name, which is empty if the process has ended.
    pub fn of(pid: u32) -> Program {
        let text = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Program::named(pid, text.strip_suffix('\n').unwrap_or(&text))
    }

    pub fn named(pid: u32, name: &str) -> Program {
        let mut program = Program { pid, ..Program::ALL };
        program.comm.iter_mut().zip(name.bytes().take(15)).for_each(|(to, byte)| *to = byte);
        program
    }

    pub fn name(&self) -> String {
        text(&self.comm)
    }
}

/// `struct scx_site_info`
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct SiteInfo {
    pub verdict: Verdict,
    pad: u32,
    pub seen: u64,
    pub kicks: u64,
}

impl SiteInfo {
    #[cfg(test)]
    pub fn new(verdict: Verdict, seen: u64, kicks: u64) -> SiteInfo {
        SiteInfo { verdict, pad: 0, seen, kicks }
    }
}

/// `struct scx_candidate`
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct RawCandidate {
    site: Site,
    thread: u32,
    pad: u32,
    seen: u64,
    registers: [u64; 18],
}

/// Returns None if `bytes` has another length.
pub fn candidate(bytes: &[u8]) -> Option<Candidate> {
    let RawCandidate { site, thread, registers, .. } = RawCandidate::read_from_bytes(bytes).ok()?;
    Some(Candidate { pid: site.pid, thread, ip: site.ip, registers })
}

/// `struct user_exit_info` of bpf/user_exit_info.bpf.h
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct RawExit {
    kind: i32,
    pad: u32,
    exit_code: i64,
    reason: [u8; 128],
    msg: [u8; 1024],
}

/// How the scheduler ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The kernel's `enum scx_exit_kind`.
    pub kind: i32,
    pub code: i64,
    pub reason: String,
    pub message: String,
}

/// `SCX_EXIT_CODE_LIMIT`
pub const CODE_LIMIT: i64 = 1;

impl Exit {
    /// Returns None if the scheduler has not ended.
    pub fn parse(bytes: &[u8]) -> Option<Exit> {
        let raw = RawExit::read_from_bytes(bytes).ok()?;
        let (reason, message) = (text(&raw.reason), text(&raw.msg));
        (raw.kind != 0).then_some(Exit { kind: raw.kind, code: raw.exit_code, reason, message })
    }
}

/// The text up to the first NUL.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim_end_matches('\n').to_string()
}

/// `struct sched_ext_ops` of bpf/scx.h, which differs from the kernel's.
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Operations {
    functions: [u64; 19],
    pub flags: u64,
    pub timeout_ms: u32,
    name: [u8; 128],
    pad: u32,
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use libbpf_rs::btf::types::{MemberAttr, Struct};
    use libbpf_rs::btf::{Btf, HasSize as _};

    use super::*;
    use crate::load;

    /// The offset of each member of the type, by name.
    fn offsets<'a>(of: &'a Struct) -> Vec<(&'a str, usize)> {
        let offset = |attr| match attr {
            MemberAttr::Normal { offset } => offset as usize / 8,
            MemberAttr::BitField { .. } => panic!("a bit field"),
        };
        let name = |name: Option<&'a std::ffi::OsStr>| name.and_then(|n| n.to_str());
        of.iter().map(|m| (name(m.name).expect("a name"), offset(m.attr))).collect()
    }

    #[test]
    fn the_same_as_in_the_program() {
        let types =
            Btf::from_raw("lissom", load::object()).expect("an object").expect("with types");
        let of = |name: &str| -> Struct {
            types.type_by_name(name).unwrap_or_else(|| panic!("no struct {name}"))
        };
        macro_rules! check {
            ($name:literal, $type:ty, $($field:ident),*) => {
                let theirs = of($name);
                assert_eq!(theirs.size(), size_of::<$type>(), $name);
                let members = offsets(&theirs);
                for field in [$((stringify!($field), offset_of!($type, $field))),*] {
                    assert!(members.contains(&field), "{}: {field:?}", $name);
                }
            };
        }
        let check_words = |name: &str, names: &[&str]| {
            let words: Vec<_> = names.iter().enumerate().map(|(i, name)| (*name, i * 8)).collect();
            assert_eq!(offsets(&of(name)), words, "{name}");
        };
        check_words("scx_config", Config::NAMES);
        check_words("scx_counts", Counts::NAMES);
        check_words("scx_trial", Trial::NAMES);
        check!("scx_scan", ScanCounts, tries, positives);
        check!("scx_audit", AuditCounts, true_positives, false_positives);
        check!("scx_program", Program, pid, comm);
        check!("scx_state", State, version, pid, started, detector, config);
        check!("scx_site", Site, ip, pid);
        check!("scx_site_info", SiteInfo, verdict, seen, kicks);
        // No variable in the object has the type scx_candidate, so its BTF lacks that type.
        check!("user_exit_info", RawExit, kind, exit_code, reason, msg);
        check!("sched_ext_ops", Operations, flags, timeout_ms, name);
    }

    #[test]
    fn versions() {
        let (detector, config) = (Detector::Paper, Config::default());
        let state = State { version: VERSION, pid: 77, started: 123, detector, config };
        let bytes = state.as_bytes();
        assert_eq!(State::parse(bytes), Some(state));
        assert_eq!(State::parse(State { version: VERSION + 1, ..state }.as_bytes()), None);
        assert_eq!(State::parse(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn programs() {
        let program = Program::named(8, "a name of more than 15");
        assert_eq!((program.pid, program.name()), (8, "a name of more ".into()));
        let own = Program::of(std::process::id());
        assert!(own.pid == std::process::id() && !own.name().is_empty());
    }

    #[test]
    fn candidates() {
        let mut registers = [0; 18];
        (registers[0], registers[17]) = (8, 9);
        let raw = RawCandidate { site: Site::new(6, 5), thread: 7, pad: 0, seen: 3, registers };
        let found = candidate(raw.as_bytes()).expect("long enough");
        assert_eq!(found, Candidate { pid: 6, thread: 7, ip: 5, registers });
        assert_eq!(candidate(&raw.as_bytes()[1..]), None);
        assert_eq!((offset_of!(RawCandidate, thread), size_of::<RawCandidate>()), (16, 176));
    }

    #[test]
    fn counts() {
        let a = Counts { wakeups: 5, spin_ns: 2, ..Counts::default() };
        let b = Counts { wakeups: 7, park_ends: 1, ..Counts::default() };
        let sum = a.plus(b);
        assert_eq!(sum, Counts { wakeups: 12, spin_ns: 2, park_ends: 1, ..Counts::default() });
        assert_eq!(sum.since(a), b);
    }

    #[test]
    fn ends() {
        let mut raw = RawExit { kind: 0, pad: 0, exit_code: 1, reason: [0; 128], msg: [0; 1024] };
        assert_eq!(Exit::parse(raw.as_bytes()), None);
        raw.kind = 65;
        raw.reason[..4].copy_from_slice(b"why\n");
        raw.msg[..3].copy_from_slice(b"how");
        let end = Exit { kind: 65, code: 1, reason: "why".into(), message: "how".into() };
        assert_eq!(Exit::parse(raw.as_bytes()), Some(end));
    }
}
