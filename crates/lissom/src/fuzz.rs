//! Fuzz tests: arbitrary data in everything that lissom's tools read from programs. A quick run is
//! part of the tests; `make fuzz` gives each test 10 million inputs.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use runtime::abi;

/// Return the number of inputs of each test: LISSOM_FUZZ_INPUTS, or 20,000.
pub fn inputs() -> u64 {
    std::env::var("LISSOM_FUZZ_INPUTS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

/// Create a generator with the seed LISSOM_FUZZ_SEED, or a random one. Prints the seed.
pub fn random(name: &str) -> fastrand::Rng {
    let seed = std::env::var("LISSOM_FUZZ_SEED")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("{name}: LISSOM_FUZZ_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Return a number that code tends to handle wrongly.
pub fn value(random: &mut fastrand::Rng) -> u64 {
    match random.u8(..8) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => 1 << random.u32(..64),
        4 => (1 << random.u32(..64)) - 1,
        5 => random.u64(..100),
        6 => u64::from_ne_bytes([random.u8(..); 8]),
        _ => random.u64(..),
    }
}

/// Overwrite some words of a structure that consists of integers only.
fn scribble(words: &mut [u64], random: &mut fastrand::Rng) {
    for _ in 0..random.usize(..12) {
        let at = random.usize(..words.len());
        words[at] = value(random);
    }
}

/// The statistics that `lissom stat` and `top` read.
#[test]
fn what_programs_say_of_themselves() {
    use watch::live::Copy;
    use watch::told::Told;
    let mut random = random("live");
    let length = size_of::<abi::Live>() / 8;
    let mut words = vec![0u64; length];
    let mut told = 0;
    for i in 0..inputs() {
        if i % 64 == 0 {
            words.fill(if random.bool() { 0 } else { random.u64(..) });
        }
        scribble(&mut words, &mut random);
        if random.u8(..8) != 0 {
            words[0] = abi::LIVE_MAGIC;
            words[1] = u64::from(abi::LIVE_VERSION) | (size_of::<abi::Live>() as u64) << 32;
        }
        let bytes: &[u8] =
            // SAFETY: the same memory, seen as bytes.
            unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), length * 8) };
        let cut = if random.u8(..16) == 0 { random.usize(..bytes.len()) } else { bytes.len() };
        let Ok(copy) = Copy::parse(&bytes[..cut]) else { continue };
        let of = Told::new(&copy);
        told += 1;
        assert!(of.locks.len() <= abi::MAX_LOCKS && of.loops.len() <= abi::MAX_LOOPS);
        assert!(of.locks.iter().all(|l| l.code.len() <= abi::LOCK_CODE));
        assert!(u64::from(of.ready) + u64::from(of.running) <= 1 << 23);
    }
    assert!(told > inputs() / 2);
}

/// The region that `lissom run --stats` reads after all processes have ended. Names of files are
/// not part of it: symbol.rs opens regular ones only.
#[test]
fn what_is_left_of_programs() {
    use watch::stats::{Region, Report};
    let mut random = random("region");
    let region = Region::create().expect("a memfd");
    for i in 0..inputs() / 20 {
        let map = region.get();
        // SAFETY: the memory of a region that only this test uses; all of it is integers.
        let words: &mut [u64] = unsafe {
            std::slice::from_raw_parts_mut(
                std::ptr::from_ref(map).cast_mut().cast(),
                abi::REGION_BYTES / 8,
            )
        };
        let record = size_of::<abi::Record>() / 8;
        let header = size_of::<abi::Header>() / 8;
        scribble(&mut words[..header + 3 * record], &mut random);
        map.header.claimed.store(if i % 3 == 0 { value(&mut random) as u32 } else { 3 }, Relaxed);
        for record in &map.record[..3] {
            // Loops have files, which take time to read.
            record.loops.store(0, Relaxed);
        }
        let report = Report::new(&region, None, Duration::ZERO, "exit code 0".into());
        assert!(report.table().lines().all(|l| l.chars().count() <= 80));
        ui::output::json(&report);
    }
}

/// The page of a program that the manager reads, and the allocation from it.
#[test]
fn what_is_in_a_page() {
    use crate::manager::allocation::{Application, Kind, allocate};
    use crate::manager::packing::Packing;
    use crate::manager::server::report;
    let mut random = random("page");
    let mut pages = vec![vec![0u64; size_of::<abi::Program>() / 8]; 3];
    let cpus: Vec<usize> = (0..8).collect();
    for i in 0..inputs() {
        let mut applications = Vec::new();
        for (id, page) in pages.iter_mut().enumerate() {
            if i % 64 == 0 {
                page.fill(0);
            }
            scribble(page, &mut random);
            // SAFETY: as long as the structure, aligned for u64, and made of integers only.
            let report = report(unsafe { &*page.as_ptr().cast::<abi::Program>() });
            assert!(
                report.slots <= abi::MAX_SLOTS as u32
                    && (1..=abi::MAX_SLOTS as u32).contains(&report.limit)
            );
            let kind = Kind::Malleable { max_threads: report.slots.max(1) };
            let may_use = Some(report.cpus).filter(|c| !c.is_empty());
            applications.push(Application {
                may_use,
                cap: Some(report.limit),
                ..Application::new(id as u32 + 1, kind)
            });
        }
        for (id, share) in allocate(&applications, &cpus, &Packing::Number) {
            // A program that may use none of the CPUs gets no target.
            let Some(told) = share.target_threads else { continue };
            assert!((1..=8).contains(&told), "{id} is told {told}");
            assert!(share.cpus.iter().all(|c| cpus.contains(c)));
        }
    }
}

/// The manager's socket: an input is a connection, or a message on one.
#[test]
fn what_is_sent_to_the_manager() {
    use crate::manager::server::{Server, Target};
    use nix::sys::socket::{
        self, AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr,
    };
    use std::io::IoSlice;
    use std::os::fd::AsRawFd as _;
    let mut random = random("socket");
    let folder = std::env::temp_dir().join(format!("lissom-fuzz-{}", std::process::id()));
    let path = folder.join("s");
    let mut server = Server::listen(&path).expect("a socket");
    let address = UnixAddr::new(&path).expect("a short path");
    let mut connections = Vec::new();
    for _ in 0..inputs() {
        match random.u8(..10) {
            0 | 1 => {
                let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
                let made = socket::socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)
                    .expect("a socket");
                if socket::connect(made.as_raw_fd(), &address).is_ok() {
                    connections.push(made);
                }
            }
            2 if !connections.is_empty() => {
                drop(connections.swap_remove(random.usize(..connections.len())))
            }
            3 => {
                server.wait(Duration::ZERO).expect("it goes on");
                server.forget_closed();
                for id in server.reports().into_keys() {
                    server.set_target(
                        id,
                        &Target { threads: random.u32(..), cpus: vec![0, 5000] },
                        Duration::from_secs(1),
                    );
                }
                // Nothing reads the connections, so they would fill their buffers.
                if connections.len() > 20 {
                    connections.clear();
                }
            }
            _ if !connections.is_empty() => {
                let to = &connections[random.usize(..connections.len())];
                let text: Vec<u8> = (0..random.usize(..300)).map(|_| random.u8(..)).collect();
                let files = [to.as_raw_fd(), 0];
                let control = [ControlMessage::ScmRights(&files[..random.usize(1..3)])];
                let control = if random.bool() { &control[..] } else { &[] };
                let _ = socket::sendmsg::<()>(
                    to.as_raw_fd(),
                    &[IoSlice::new(&text)],
                    control,
                    MsgFlags::MSG_NOSIGNAL,
                    None,
                );
            }
            _ => {}
        }
    }
    server.wait(Duration::ZERO).expect("it goes on");
    drop(server);
    let _ = std::fs::remove_dir_all(folder);
}
