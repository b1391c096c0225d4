//! Rust side of runtime/abi.h: the same structures, checked against the C compiler's layout.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

/// Return whether this value of ENV_ENABLE switches lissom off. The runtime decides in the same
/// way.
pub fn switches_off(value: &std::ffi::OsStr) -> bool {
    ["0", "off", "no", "false"].iter().any(|off| value == *off)
}

/// The runtime library.
pub const RUNTIME: &[u8] = include_bytes!(env!("LISSOM_RUNTIME"));
/// Hash of `RUNTIME`.
pub const RUNTIME_HASH: &str = env!("LISSOM_RUNTIME_HASH");

#[repr(C)]
pub struct Object {
    pub name: [u8; OBJECT_NAME],
    pub patched: AtomicU32,
    pub left: AtomicU32,
}

#[repr(C)]
pub struct Loop {
    pub offset: AtomicU64,
    pub samples: AtomicU64,
    pub waits: AtomicU64,
    pub yields: AtomicU64,
    pub short_spins: AtomicU64,
    pub waited_tsc: AtomicU64,
    pub site: AtomicU32,
    pub retired: AtomicU32,
    pub path: [u8; 192],
}

#[repr(C)]
pub struct Record {
    pub pid: AtomicU32,
    pub state: AtomicU32,
    pub slots: AtomicU32,
    pub objects: AtomicU32,
    pub comm: [u8; 32],
    pub reason: [u8; 128],
    pub counter: [AtomicU64; 64],
    pub stripe: [[AtomicU64; 8]; STRIPES],
    pub pinned: [AtomicU64; 32],
    pub kept_waits: [AtomicU64; 32],
    pub object: [Object; MAX_OBJECTS],
    pub loops: AtomicU32,
    pub tsc_per_us: AtomicU32,
    pub loop_: [Loop; MAX_LOOPS],
}

#[repr(C)]
pub struct Header {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub records: AtomicU32,
    pub claimed: AtomicU32,
    pub record_bytes: AtomicU32,
    pub reserved: [AtomicU64; 4],
}

#[repr(C)]
pub struct Region {
    pub header: Header,
    pub record: [Record; MAX_RECORDS],
}

#[repr(C)]
pub struct LockProfile {
    pub address: AtomicU64,
    pub samples: AtomicU64,
    pub code: [AtomicU64; LOCK_CODE],
}

#[repr(C)]
pub struct Live {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub bytes: AtomicU32,
    pub heartbeat: AtomicU64,
    pub is_asleep: AtomicU32,
    pub is_native: AtomicU32,
    pub threads: AtomicU32,
    pub slots: AtomicU32,
    pub limit: AtomicU32,
    pub running: AtomicU32,
    pub demand: AtomicU32,
    pub lock_every: AtomicU32,
    pub lock: [LockProfile; MAX_LOCKS],
    pub record: Record,
}

#[repr(C)]
pub struct Program {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub reserved: AtomicU32,
    pub target: AtomicU64,
    pub by_manager: [AtomicU64; 5],
    pub heartbeat: AtomicU64,
    pub is_malleable: AtomicU32,
    pub slots: AtomicU32,
    pub active_threads: AtomicU32,
    pub demand: AtomicU32,
    pub threads: AtomicU32,
    pub limit: AtomicU32,
    pub waits: AtomicU64,
    pub cpus: [AtomicU64; PEER_CPUS / 64],
    pub keep_to: [AtomicU64; PEER_CPUS / 64],
}

macro_rules! same_layout {
    ($rust:ty, $size:ident, $($field:ident = $offset:ident),*) => {
        const _: () = {
            assert!(std::mem::size_of::<$rust>() == $size);
            $(assert!(std::mem::offset_of!($rust, $field) == $offset);)*
        };
    };
}
same_layout!(
    Object,
    C_SIZE_LISSOM_OBJECT,
    name = C_OFFSET_LISSOM_OBJECT_NAME,
    patched = C_OFFSET_LISSOM_OBJECT_PATCHED,
    left = C_OFFSET_LISSOM_OBJECT_LEFT
);
same_layout!(
    Loop,
    C_SIZE_LISSOM_LOOP,
    offset = C_OFFSET_LISSOM_LOOP_OFFSET,
    samples = C_OFFSET_LISSOM_LOOP_SAMPLES,
    waits = C_OFFSET_LISSOM_LOOP_WAITS,
    yields = C_OFFSET_LISSOM_LOOP_YIELDS,
    short_spins = C_OFFSET_LISSOM_LOOP_SHORT_SPINS,
    waited_tsc = C_OFFSET_LISSOM_LOOP_WAITED_TSC,
    site = C_OFFSET_LISSOM_LOOP_SITE,
    retired = C_OFFSET_LISSOM_LOOP_RETIRED,
    path = C_OFFSET_LISSOM_LOOP_PATH
);
same_layout!(
    Record,
    C_SIZE_LISSOM_RECORD,
    pid = C_OFFSET_LISSOM_RECORD_PID,
    state = C_OFFSET_LISSOM_RECORD_STATE,
    slots = C_OFFSET_LISSOM_RECORD_SLOTS,
    objects = C_OFFSET_LISSOM_RECORD_OBJECTS,
    comm = C_OFFSET_LISSOM_RECORD_COMM,
    reason = C_OFFSET_LISSOM_RECORD_REASON,
    counter = C_OFFSET_LISSOM_RECORD_COUNTER,
    stripe = C_OFFSET_LISSOM_RECORD_STRIPE,
    pinned = C_OFFSET_LISSOM_RECORD_PINNED,
    kept_waits = C_OFFSET_LISSOM_RECORD_KEPT_WAITS,
    object = C_OFFSET_LISSOM_RECORD_OBJECT,
    loops = C_OFFSET_LISSOM_RECORD_LOOPS,
    loop_ = C_OFFSET_LISSOM_RECORD_LOOP
);
same_layout!(
    Header,
    C_SIZE_LISSOM_HEADER,
    magic = C_OFFSET_LISSOM_HEADER_MAGIC,
    version = C_OFFSET_LISSOM_HEADER_VERSION,
    records = C_OFFSET_LISSOM_HEADER_RECORDS,
    claimed = C_OFFSET_LISSOM_HEADER_CLAIMED,
    record_bytes = C_OFFSET_LISSOM_HEADER_RECORD_BYTES
);
same_layout!(
    Region,
    C_SIZE_LISSOM_REGION,
    header = C_OFFSET_LISSOM_REGION_HEADER,
    record = C_OFFSET_LISSOM_REGION_RECORD
);
same_layout!(
    LockProfile,
    C_SIZE_LISSOM_LOCK_PROFILE,
    address = C_OFFSET_LISSOM_LOCK_PROFILE_ADDRESS,
    samples = C_OFFSET_LISSOM_LOCK_PROFILE_SAMPLES,
    code = C_OFFSET_LISSOM_LOCK_PROFILE_CODE
);
same_layout!(
    Live,
    C_SIZE_LISSOM_LIVE,
    magic = C_OFFSET_LISSOM_LIVE_MAGIC,
    version = C_OFFSET_LISSOM_LIVE_VERSION,
    bytes = C_OFFSET_LISSOM_LIVE_BYTES,
    heartbeat = C_OFFSET_LISSOM_LIVE_HEARTBEAT,
    is_asleep = C_OFFSET_LISSOM_LIVE_IS_ASLEEP,
    is_native = C_OFFSET_LISSOM_LIVE_IS_NATIVE,
    threads = C_OFFSET_LISSOM_LIVE_THREADS,
    slots = C_OFFSET_LISSOM_LIVE_SLOTS,
    limit = C_OFFSET_LISSOM_LIVE_LIMIT,
    running = C_OFFSET_LISSOM_LIVE_RUNNING,
    demand = C_OFFSET_LISSOM_LIVE_DEMAND,
    lock_every = C_OFFSET_LISSOM_LIVE_LOCK_EVERY,
    lock = C_OFFSET_LISSOM_LIVE_LOCK,
    record = C_OFFSET_LISSOM_LIVE_RECORD
);
same_layout!(
    Program,
    C_SIZE_LISSOM_PROGRAM,
    magic = C_OFFSET_LISSOM_PROGRAM_MAGIC,
    version = C_OFFSET_LISSOM_PROGRAM_VERSION,
    target = C_OFFSET_LISSOM_PROGRAM_TARGET,
    heartbeat = C_OFFSET_LISSOM_PROGRAM_HEARTBEAT,
    is_malleable = C_OFFSET_LISSOM_PROGRAM_IS_MALLEABLE,
    slots = C_OFFSET_LISSOM_PROGRAM_SLOTS,
    active_threads = C_OFFSET_LISSOM_PROGRAM_ACTIVE_THREADS,
    demand = C_OFFSET_LISSOM_PROGRAM_DEMAND,
    threads = C_OFFSET_LISSOM_PROGRAM_THREADS,
    limit = C_OFFSET_LISSOM_PROGRAM_LIMIT,
    waits = C_OFFSET_LISSOM_PROGRAM_WAITS,
    cpus = C_OFFSET_LISSOM_PROGRAM_CPUS,
    keep_to = C_OFFSET_LISSOM_PROGRAM_KEEP_TO
);
const _: () = assert!(std::mem::size_of::<Program>() <= PROGRAM_BYTES);
const _: () = assert!(std::mem::size_of::<Region>() == REGION_BYTES);
const _: () = assert!(COUNTERS.len() <= 64 && PIN_REASONS.len() <= 32);

impl Header {
    /// Initialise a fresh region, before the first process claims a record.
    pub fn initialise(&self) {
        self.version.store(ABI_VERSION, Relaxed);
        self.records.store(MAX_RECORDS as u32, Relaxed);
        self.record_bytes.store(C_SIZE_LISSOM_RECORD as u32, Relaxed);
        self.magic.store(ABI_MAGIC, Relaxed);
    }
}
