//! Read the memory of another process for the judge: by page, each page at most once per attempt.

use std::cell::RefCell;
use std::ffi::{c_long, c_uint, c_void};
use std::io::IoSliceMut;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

const PAGE: usize = 4096;
/// Bounds the time of an attempt. A loop that waits reads few pages: code, stack and its words.
const MOST_PAGES: usize = 48;

#[derive(Default)]
struct Pages(Vec<(usize, Option<Box<[u8; PAGE]>>)>);

impl Pages {
    /// Returns None if the page is not readable, or after MOST_PAGES pages.
    fn page(&mut self, pid: Pid, number: usize) -> Option<&[u8; PAGE]> {
        let at = match self.0.iter().position(|p| p.0 == number) {
            Some(at) => at,
            None if self.0.len() == MOST_PAGES => return None,
            None => {
                let mut page = Box::new([0; PAGE]);
                let is_whole = read(pid, number * PAGE, &mut page[..]);
                self.0.push((number, is_whole.then_some(page)));
                self.0.len() - 1
            }
        };
        self.0[at].1.as_deref()
    }

    fn copy(&mut self, pid: Pid, address: usize, to: &mut [u8]) -> bool {
        let mut done = 0;
        while done < to.len() {
            let at = address + done;
            let Some(page) = self.page(pid, at / PAGE) else { return false };
            let n = (PAGE - at % PAGE).min(to.len() - done);
            to[done..done + n].copy_from_slice(&page[at % PAGE..at % PAGE + n]);
            done += n;
        }
        true
    }
}

/// Read the current contents. Returns false unless all bytes could be read.
fn read(pid: Pid, address: usize, to: &mut [u8]) -> bool {
    let len = to.len();
    process_vm_readv(pid, &mut [IoSliceMut::new(to)], &[RemoteIoVec { base: address, len }])
        == Ok(len)
}

struct View {
    pid: Pid,
    data: Pages,
    code: Pages,
}

thread_local! {
    /// The process that the interpreter's callbacks read: they get only an address.
    static VIEW: RefCell<Option<View>> = const { RefCell::new(None) };
}

/// Sets the process that this thread's callbacks read. Dropping it unsets the process.
pub struct Looking(());

impl Looking {
    pub fn at(pid: u32) -> Looking {
        let pid = Pid::from_raw(pid as i32);
        VIEW.set(Some(View { pid, data: Pages::default(), code: Pages::default() }));
        Looking(())
    }

    /// Read data anew from now on. Code is kept.
    pub fn anew(&self) {
        VIEW.with_borrow_mut(|v| v.iter_mut().for_each(|v| v.data = Pages::default()));
    }

    /// Returns a word of the snapshot, or None if it is not readable.
    pub fn word(&self, address: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        copy::<SNAPSHOT>(address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        VIEW.set(None);
    }
}

/// Kinds of reads: of the snapshot, of code, and of the current contents.
pub const SNAPSHOT: u8 = 0;
pub const CODE: u8 = 1;
pub const NOW: u8 = 2;

fn copy<const KIND: u8>(address: usize, to: &mut [u8]) -> bool {
    if address >= (1 << 47) - to.len() {
        return false;
    }
    VIEW.with_borrow_mut(|view| {
        view.as_mut().is_some_and(|v| match KIND {
            SNAPSHOT => v.data.copy(v.pid, address, to),
            CODE => v.code.copy(v.pid, address, to),
            _ => read(v.pid, address, to),
        })
    })
}

/// A function of struct orbit_memory. Returns 0 or -EFAULT.
///
/// # Safety
/// `to` has room for `bytes`.
pub unsafe extern "C" fn callback<const KIND: u8>(
    address: usize,
    to: *mut c_void,
    bytes: c_uint,
) -> c_long {
    // SAFETY: as the caller guarantees; the interpreter passes a variable that outlives the call.
    let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes as usize) };
    if copy::<KIND>(address, to) { 0 } else { -libc::EFAULT as c_long }
}
