//! Events traced in the kernel, by bpf/record.bpf.c: exact, but loading needs privileges.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use anyhow::{Context as _, bail};
use libbpf_rs::{Link, Map, MapCore as _, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};
use memmap2::{MmapOptions, MmapRaw};

use super::{Event, Futex, Name, Wait, Waker, What};
use crate::bpf::{self, Aligned};
use os::process;

/// Layout of `struct record_event` in bpf/record.h, which documents the fields.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Raw {
    time: u64,
    futex: u64,
    kind: u32,
    thread: u32,
    cpu: u32,
    call: i32,
    operation: u32,
    value: u32,
    word: u32,
    owner: u32,
    other: u32,
    other_pid: u32,
    lost: u32,
    pad: u32,
    name: Name,
}

/// Layout of `struct record_state`.
#[repr(C)]
struct State {
    target: AtomicU32,
    lost: AtomicU32,
}

/// The variables of the BPF programs, also mapped in children until they exec.
pub struct Shared(MmapRaw);

impl Shared {
    fn state(&self) -> &State {
        // SAFETY: mapped for as long as `self` lives; State consists of atomics.
        unsafe { &*self.0.as_ptr().cast() }
    }

    /// Record the threads of this process from now on. 0: none. Async-signal-safe.
    pub fn set_target(&self, pid: u32) {
        self.state().target.store(pid, Relaxed);
    }
}

static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/record.bpf.o")));

/// Events read at once, because a program may make them faster than they are written.
const AT_ONCE: usize = 8192;

pub struct Tracing {
    ring: RingBuffer<'static>,
    queue: Rc<RefCell<Vec<Event>>>,
    /// Lost events before those that were read.
    known_lost: Rc<Cell<u32>>,
    shared: Arc<Shared>,
    _links: Vec<Link>,
    _object: Object,
}

impl Tracing {
    /// Load and attach the BPF programs. They record nothing before `Shared::set_target`.
    ///
    /// Fails without privileges, on kernels older than 5.15 or without BTF
    /// (CONFIG_DEBUG_INFO_BTF), and outside the initial PID namespace.
    pub fn load() -> anyhow::Result<Tracing> {
        bpf::prepare()?;
        let object = ObjectBuilder::default().open_memory(&OBJECT.0)?.load()?;
        let map = |name: &str| -> anyhow::Result<Map<'_>> {
            object
                .maps()
                .find(|m| m.name().to_string_lossy().ends_with(name))
                .context("the BPF object lacks a map")
        };
        let shared = MmapOptions::new()
            .len(size_of::<State>())
            .map_raw(map(".bss")?.as_fd().as_raw_fd())
            .context("cannot map a BPF map")?;
        let queue = Rc::new(RefCell::new(Vec::new()));
        let mut builder = RingBufferBuilder::new();
        let into = queue.clone();
        let events = map("events")?;
        let known_lost = Rc::new(Cell::new(0));
        let known = known_lost.clone();
        builder.add(&events, move |bytes| {
            if let Some(raw) = raw(bytes) {
                let gap = Event { time: raw.time, thread: 0, what: What::Lost };
                let is_behind_gap = known.get() < raw.lost;
                known.set(known.get().max(raw.lost));
                into.borrow_mut()
                    .extend(is_behind_gap.then_some(gap).into_iter().chain(event(&raw)));
            }
            0
        })?;
        let ring = builder.build()?;
        let links = object.progs_mut().map(|program| program.attach()).collect::<Result<_, _>>()?;
        let shared = Arc::new(Shared(shared));
        Ok(Tracing { ring, queue, known_lost, shared, _links: links, _object: object })
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Return the number of events that were lost so far, because the reader was late.
    pub fn lost(&self) -> u32 {
        self.shared.state().lost.load(Relaxed)
    }

    /// Return events since the last call, about in the order of time, and whether there are more.
    pub fn events(&self) -> anyhow::Result<(Vec<Event>, bool)> {
        let lost = self.lost();
        let read = self.ring.consume_raw_n(AT_ONCE);
        if read < 0 {
            let error = io::Error::from_raw_os_error(-read);
            bail!("cannot read the buffer of BPF events: {error}");
        }
        let (mut events, more) = (self.queue.take(), read as usize >= AT_ONCE);
        // Lost behind all that the buffer held.
        if !more && self.known_lost.get() < lost {
            self.known_lost.set(lost);
            let time = process::monotonic().as_nanos() as u64;
            events.push(Event { time, thread: 0, what: What::Lost });
        }
        Ok((events, more))
    }
}

fn raw(bytes: &[u8]) -> Option<Raw> {
    // SAFETY: as long as the structure, which is made of integers only. The address may be
    // unaligned.
    (bytes.len() >= size_of::<Raw>())
        .then(|| unsafe { bytes.as_ptr().cast::<Raw>().read_unaligned() })
}

fn event(raw: &Raw) -> Option<Event> {
    let call = u32::try_from(raw.call).ok();
    let what = match raw.kind {
        1 => What::Runs { cpu: raw.cpu, name: raw.name },
        2 => What::Ready,
        3 => What::Waits(wait(raw, call)),
        4 => What::Ends,
        5 => What::Woken(Waker { thread: raw.other, pid: raw.other_pid, name: raw.name, call }),
        _ => return None,
    };
    Some(Event { time: raw.time, thread: raw.thread, what })
}

fn wait(raw: &Raw, call: Option<u32>) -> Wait {
    let &Raw { futex: address, operation, value, word, owner, .. } = raw;
    let is_futex = call.is_some_and(|call| i64::from(call) == libc::SYS_futex);
    if is_futex && Futex::waits(operation) {
        return Futex { address, operation, value, word, owner }.wait();
    }
    Wait { call, ..Wait::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        // As in bpf/record.h.
        assert_eq!(size_of::<Raw>(), 80);
        assert!(raw(&[0; 79]).is_none() && raw(&[0; 80]).is_some());
    }

    #[test]
    fn events() {
        let blocked = Raw { kind: 3, call: 202, futex: 64, ..Raw::default() };
        let wait = |raw: &Raw| event(raw).map(|e| e.what);
        let futex = Wait { call: Some(202), futex: Some(64), holder: None };
        assert_eq!(wait(&blocked), Some(What::Waits(futex)));
        let fault = Raw { kind: 3, call: -1, futex: 64, ..Raw::default() };
        assert_eq!(wait(&fault), Some(What::Waits(Wait::default())));
        assert_eq!(event(&Raw::default()), None);
    }
}
