//! Perf events for scans.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

use libbpf_sys as bpf;

/// `PERF_FLAG_FD_CLOEXEC`
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Attributes of a disabled event that counts user code only.
pub fn attributes(kind: bpf::perf_type_id, config: u64) -> bpf::perf_event_attr {
    let mut new = bpf::perf_event_attr { type_: kind, config, ..Default::default() };
    new.size = size_of_val(&new) as u32;
    new.set_disabled(1);
    new.set_exclude_kernel(1);
    new.set_exclude_hv(1);
    new
}

/// Attributes of an event that interrupts user code every `period_ns`. of_guests: interrupt the
/// kernel, too, since interrupts of a guest are handled there.
pub fn clock(period_ns: u64, of_guests: bool) -> bpf::perf_event_attr {
    let mut clock = attributes(bpf::PERF_TYPE_SOFTWARE, u64::from(bpf::PERF_COUNT_SW_CPU_CLOCK));
    clock.__bindgen_anon_1.sample_period = period_ns;
    clock.set_exclude_idle(1);
    clock.set_exclude_kernel(u64::from(!of_guests));
    clock
}

/// Open an event. thread: its ID, 0 for the calling one, -1 for any. cpu: its number, -1 for any.
/// group: the leader of the event's group, if any.
pub fn open(
    attributes: &mut bpf::perf_event_attr,
    thread: i32,
    cpu: i32,
    group: Option<RawFd>,
) -> io::Result<OwnedFd> {
    // SAFETY: the structure states its own size, and the kernel reads and writes no more than that;
    // the result is checked.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_mut(attributes),
            thread,
            cpu,
            group.unwrap_or(-1),
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
