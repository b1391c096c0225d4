//! The kernel's perf events, as far as looks need them.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

use libbpf_sys as bpf;

/// `PERF_FLAG_FD_CLOEXEC`
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Of the user's code only, and not counting yet.
pub fn attributes(kind: bpf::perf_type_id, config: u64) -> bpf::perf_event_attr {
    let mut new = bpf::perf_event_attr { type_: kind, config, ..Default::default() };
    new.size = size_of_val(&new) as u32;
    new.set_disabled(1);
    new.set_exclude_kernel(1);
    new.set_exclude_hv(1);
    new
}

/// One that interrupts user code every so many ns; and the kernel, where guests are to be looked
/// at: what interrupts one is taken there.
pub fn clock(period_ns: u64, of_guests: bool) -> bpf::perf_event_attr {
    let mut clock = attributes(bpf::PERF_TYPE_SOFTWARE, u64::from(bpf::PERF_COUNT_SW_CPU_CLOCK));
    clock.__bindgen_anon_1.sample_period = period_ns;
    clock.set_exclude_idle(1);
    clock.set_exclude_kernel(u64::from(!of_guests));
    clock
}

/// thread: -1 any, 0 the calling one. cpu: -1 any. group: the event that it counts together with,
/// or not at all.
pub fn open(
    attributes: &mut bpf::perf_event_attr,
    thread: i32,
    cpu: i32,
    group: Option<RawFd>,
) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads a structure that says its own size, and writes that size at most;
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
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
