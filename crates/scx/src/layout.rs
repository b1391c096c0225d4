//! The structures that the tool shares with the scheduler in the kernel: a copy of
//! bpf/scx_lissom.h, which documents them. A test compares them with the types in the compiled
//! BPF object.

use serde::Serialize;

use judge::{Candidate, Verdict};

/// `SCX_LISSOM_VERSION`
pub const VERSION: u32 = 4;

/// Define a structure of 64-bit words from the names of its fields.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct $name {
            $($(#[$field_about])* pub $field: u64,)*
        }

        impl $name {
            pub const NAMES: &[&str] = &[$(stringify!($field),)*];
            pub const BYTES: usize = Self::NAMES.len() * 8;

            /// Returns None if `bytes` is too short.
            pub fn parse(bytes: &[u8]) -> Option<$name> {
                let mut words = bytes.get(..Self::BYTES)?.chunks_exact(8).map(word);
                Some($name { $($field: words.next()?,)* })
            }

            /// The values in the order of NAMES.
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$field,)*]
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

words! {
    /// `struct scx_scan`: scans of one program by the paper's rule.
    ScanCounts { tries, positives }
}

words! {
    /// `struct scx_audit`: positives at sites with a verdict.
    AuditCounts { true_positives, false_positives }
}

words! {
    /// `struct scx_trial`. `error` is a negative number as u64, or 0.
    Trial { looks, counted, quiet, full, loops, error }
}

/// `enum scx_detector`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detector {
    #[default]
    Registers,
    /// Registers, and branch records.
    Branches,
    /// Only branch records and misses, without a proof.
    Paper,
}

impl Config {
    pub fn bytes(&self) -> Vec<u8> {
        self.values().iter().flat_map(|w| w.to_ne_bytes()).collect()
    }
}

impl AuditCounts {
    pub fn bytes(&self) -> Vec<u8> {
        self.values().iter().flat_map(|w| w.to_ne_bytes()).collect()
    }
}

impl Counts {
    pub fn plus(&self, other: &Counts) -> Counts {
        self.merge(other, u64::wrapping_add)
    }

    pub fn since(&self, before: &Counts) -> Counts {
        self.merge(before, u64::saturating_sub)
    }

    fn merge(&self, other: &Counts, with: fn(u64, u64) -> u64) -> Counts {
        let words: Vec<u8> = self
            .values()
            .iter()
            .zip(other.values())
            .flat_map(|(&a, b)| with(a, b).to_ne_bytes())
            .collect();
        Counts::parse(&words).unwrap_or_default()
    }

    /// Sum the per-CPU values of a map. Values that are too short count as 0.
    pub fn sum(cpus: &[Vec<u8>]) -> Counts {
        cpus.iter()
            .filter_map(|bytes| Counts::parse(bytes))
            .fold(Counts::default(), |sum, c| sum.plus(&c))
    }
}

/// `struct scx_state`: the process that loaded the scheduler, and its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub version: u32,
    pub pid: u32,
    /// CLOCK_MONOTONIC, in ns.
    pub started: u64,
    pub detector: Detector,
    pub config: Config,
}

impl State {
    pub const BYTES: usize = 24 + Config::BYTES;

    /// Returns None if `bytes` is too short or of another version.
    pub fn parse(bytes: &[u8]) -> Option<State> {
        let version = half(bytes.get(..4)?);
        let detector = match word(bytes.get(16..24)?) {
            1 => Detector::Branches,
            2 => Detector::Paper,
            _ => Detector::Registers,
        };
        let config = Config::parse(bytes.get(24..State::BYTES)?)?;
        let (pid, started) = (half(bytes.get(4..8)?), word(bytes.get(8..16)?));
        let state = State { version, pid, started, detector, config };
        (version == VERSION).then_some(state)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let head = [self.version.to_ne_bytes(), self.pid.to_ne_bytes()].concat();
        let words = [self.started.to_ne_bytes(), (self.detector as u64).to_ne_bytes()].concat();
        [head, words, self.config.bytes()].concat()
    }
}

/// `struct scx_site`: an instruction of a process, where a scan met it or where a branch closes a
/// loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    pub ip: u64,
    pub pid: u32,
}

impl Site {
    pub const BYTES: usize = 16;

    pub fn parse(key: &[u8]) -> Option<Site> {
        Some(Site { ip: word(key.get(..8)?), pid: half(key.get(8..12)?) })
    }

    pub fn bytes(&self) -> [u8; Site::BYTES] {
        let mut bytes = [0; Site::BYTES];
        bytes[..8].copy_from_slice(&self.ip.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.pid.to_ne_bytes());
        bytes
    }
}

/// `struct scx_program`: a process, by process ID and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    pub pid: u32,
    /// Ends at the first NUL.
    comm: [u8; 16],
}

impl Program {
    pub const BYTES: usize = 24;

    /// The key for the sums over all programs.
    pub const ALL: Program = Program { pid: 0, comm: [0; 16] };

    /// A process with its current name, which is empty if the process has ended.
    pub fn of(pid: u32) -> Program {
        let text = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Program::named(pid, text.strip_suffix('\n').unwrap_or(&text))
    }

    pub fn named(pid: u32, name: &str) -> Program {
        let mut comm = [0; 16];
        comm.iter_mut().zip(name.bytes().take(15)).for_each(|(to, byte)| *to = byte);
        Program { pid, comm }
    }

    pub fn parse(key: &[u8]) -> Option<Program> {
        Some(Program { pid: half(key.get(..4)?), comm: key.get(8..24)?.try_into().ok()? })
    }

    pub fn bytes(&self) -> [u8; Program::BYTES] {
        let mut bytes = [0; Program::BYTES];
        bytes[..4].copy_from_slice(&self.pid.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.comm);
        bytes
    }

    pub fn name(&self) -> String {
        let name: Vec<u8> = self.comm.iter().copied().take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&name).into_owned()
    }
}

/// `struct scx_site_info`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteInfo {
    pub verdict: Verdict,
    pub seen: u64,
    pub kicks: u64,
}

impl SiteInfo {
    pub const BYTES: usize = 24;

    pub fn parse(value: &[u8]) -> Option<SiteInfo> {
        let verdict = match half(value.get(..4)?) {
            1 => Verdict::Spins,
            2 => Verdict::Works,
            _ => Verdict::Unknown,
        };
        Some(SiteInfo { verdict, seen: word(value.get(8..16)?), kicks: word(value.get(16..24)?) })
    }

    pub fn bytes(&self) -> [u8; SiteInfo::BYTES] {
        let mut bytes = [0; SiteInfo::BYTES];
        bytes[..4].copy_from_slice(&(self.verdict as u32).to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.seen.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.kicks.to_ne_bytes());
        bytes
    }
}

/// Size of `struct scx_candidate`.
pub const CANDIDATE_BYTES: usize = Site::BYTES + 16 + 18 * 8;

/// Returns None if `bytes` has another length.
pub fn candidate(bytes: &[u8]) -> Option<Candidate> {
    if bytes.len() != CANDIDATE_BYTES {
        return None;
    }
    let site = Site::parse(bytes)?;
    let mut words = bytes.get(Site::BYTES + 16..)?.chunks_exact(8).map(word);
    let registers = std::array::from_fn(|_| words.next().unwrap_or_default());
    let thread = half(bytes.get(Site::BYTES..Site::BYTES + 4)?);
    Some(Candidate { pid: site.pid, thread, ip: site.ip, registers })
}

/// `struct user_exit_info` of bpf/user_exit_info.bpf.h: how the scheduler ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The kernel's `enum scx_exit_kind`.
    pub kind: u64,
    pub code: i64,
    pub reason: String,
    pub message: String,
}

/// `SCX_EXIT_CODE_LIMIT`
pub const CODE_LIMIT: i64 = 1;

impl Exit {
    pub const BYTES: usize = 16 + 128 + 1024;

    /// Returns None if the scheduler has not ended.
    pub fn parse(bytes: &[u8]) -> Option<Exit> {
        let kind = u64::from(half(bytes.get(..4)?));
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim().to_string()
        };
        (kind != 0).then_some(Exit {
            kind,
            code: word(bytes.get(8..16)?) as i64,
            reason: text(bytes.get(16..144)?),
            message: text(bytes.get(144..Exit::BYTES)?),
        })
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}

fn half(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::types::{MemberAttr, Struct};
    use libbpf_rs::btf::{Btf, HasSize as _};

    use super::*;
    use crate::load;

    #[test]
    fn the_same_as_in_the_program() {
        let types =
            Btf::from_raw("lissom", load::object()).expect("an object").expect("with types");
        let check = |name: &str, bytes: usize, fields: &[(&str, usize)]| {
            let of: Struct = types.type_by_name(name).unwrap_or_else(|| panic!("no struct {name}"));
            assert_eq!(of.size(), bytes, "{name}");
            for (field, offset) in fields {
                let member = of
                    .iter()
                    .find(|m| m.name.is_some_and(|n| n == *field))
                    .unwrap_or_else(|| panic!("{name} has no {field}"));
                let MemberAttr::Normal { offset: bits } = member.attr else {
                    panic!("{name}.{field}")
                };
                assert_eq!(bits as usize, offset * 8, "{name}.{field}");
            }
        };
        let words = |names: &'static [&str]| -> Vec<(&str, usize)> {
            names.iter().enumerate().map(|(i, name)| (*name, i * 8)).collect()
        };
        check("scx_config", Config::BYTES, &words(Config::NAMES));
        check("scx_counts", Counts::BYTES, &words(Counts::NAMES));
        check("scx_trial", Trial::BYTES, &words(Trial::NAMES));
        check("scx_scan", ScanCounts::BYTES, &words(ScanCounts::NAMES));
        check("scx_audit", AuditCounts::BYTES, &words(AuditCounts::NAMES));
        check("scx_program", Program::BYTES, &[("pid", 0), ("comm", 8)]);
        check(
            "scx_state",
            State::BYTES,
            &[("version", 0), ("pid", 4), ("started", 8), ("detector", 16), ("config", 24)],
        );
        check("scx_site", Site::BYTES, &[("ip", 0), ("pid", 8)]);
        check("scx_site_info", SiteInfo::BYTES, &[("verdict", 0), ("seen", 8), ("kicks", 16)]);
        // No variable in the object has the type scx_candidate, so its BTF lacks that type.
        check(
            "user_exit_info",
            Exit::BYTES,
            &[("kind", 0), ("exit_code", 8), ("reason", 16), ("msg", 144)],
        );
    }

    #[test]
    fn there_and_back() {
        let config = Config {
            slice_ns: 3,
            sample_ns: 4,
            park_ns: 5,
            is_partial: 1,
            ignore_limits: 0,
            stall: 7,
            made_up: 8,
        };
        for detector in [Detector::Registers, Detector::Branches, Detector::Paper] {
            let state = State { version: VERSION, pid: 77, started: 123, detector, config };
            assert_eq!(State::parse(&state.bytes()), Some(state));
        }
        let state = State {
            version: VERSION,
            pid: 77,
            started: 123,
            detector: Detector::Registers,
            config,
        };
        assert_eq!(State::parse(&State { version: VERSION + 1, ..state }.bytes()), None);
        assert_eq!(State::parse(&state.bytes()[..State::BYTES - 1]), None);
        let program = Program::named(8, "a name of more than 15");
        assert_eq!(Program::parse(&program.bytes()), Some(program));
        assert_eq!(program.name(), "a name of more ");
        assert_eq!(Program::of(std::process::id()).pid, std::process::id());
        let site = Site { ip: 0x1234_5678_9abc, pid: 9 };
        assert_eq!(Site::parse(&site.bytes()), Some(site));
        for verdict in [Verdict::Unknown, Verdict::Spins, Verdict::Works] {
            let info = SiteInfo { verdict, seen: 5, kicks: 6 };
            assert_eq!(SiteInfo::parse(&info.bytes()), Some(info));
        }
    }

    #[test]
    fn candidates() {
        let mut bytes = [0; CANDIDATE_BYTES];
        bytes[..16].copy_from_slice(&Site { ip: 5, pid: 6 }.bytes());
        bytes[16] = 7;
        bytes[32] = 8;
        bytes[32 + 17 * 8] = 9;
        let found = candidate(&bytes).expect("long enough");
        assert_eq!((found.pid, found.thread, found.ip), (6, 7, 5));
        assert_eq!((found.registers[0], found.registers[17]), (8, 9));
        assert_eq!(candidate(&bytes[1..]), None);
    }

    #[test]
    fn counts() {
        let a = Counts { wakeups: 5, spin_ns: 2, ..Counts::default() };
        let b = Counts { wakeups: 7, park_ends: 1, ..Counts::default() };
        let bytes =
            |c: &Counts| c.values().iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>();
        let sum = Counts::sum(&[bytes(&a), bytes(&b)]);
        assert_eq!(sum, Counts { wakeups: 12, spin_ns: 2, park_ends: 1, ..Counts::default() });
        assert_eq!(sum.since(&a), b);
    }

    #[test]
    fn ends() {
        let mut bytes = [0; Exit::BYTES];
        assert_eq!(Exit::parse(&bytes), None);
        (bytes[0], bytes[8]) = (65, 1);
        bytes[16..20].copy_from_slice(b"why\n");
        bytes[144..147].copy_from_slice(b"how");
        let end = Exit { kind: 65, code: 1, reason: "why".into(), message: "how".into() };
        assert_eq!(Exit::parse(&bytes), Some(end));
    }
}
