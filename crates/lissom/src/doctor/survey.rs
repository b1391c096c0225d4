//! Find the system calls of a file that the runtime does not redirect. Uses the runtime's own
//! search: survey.c, linked into this binary with `runtime/patch`.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;

/// A `syscall` instruction that is not redirected.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    /// Offset from the load address of the object.
    pub offset: u64,
    /// System call number, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    pub why: String,
}

/// `struct left_alone`
#[repr(C)]
struct Found {
    offset: u64,
    number: i64,
    why: *const c_char,
}

unsafe extern "C" {
    fn lissom_survey(
        path: *const c_char,
        found: extern "C" fn(*mut c_void, *const Found),
        to: *mut c_void,
    ) -> isize;
}

extern "C" fn found(to: *mut c_void, found: *const Found) {
    // SAFETY: survey.c passes on the pointer from `left_alone`, and a structure of its own.
    let (to, found) = unsafe { (&mut *to.cast::<Vec<LeftAlone>>(), &*found) };
    // SAFETY: a string literal of the runtime.
    let why = unsafe { CStr::from_ptr(found.why) };
    to.push(LeftAlone {
        offset: found.offset,
        number: u32::try_from(found.number).ok(),
        why: why.to_string_lossy().into_owned(),
    });
}

/// Return the system calls that are not redirected. None: the file cannot be parsed.
pub fn left_alone(path: &Path) -> Option<Vec<LeftAlone>> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut left: Vec<LeftAlone> = Vec::new();
    // SAFETY: `found` uses the vector during the call only.
    let all = unsafe { lissom_survey(path.as_ptr(), found, (&raw mut left).cast()) };
    (all >= 0).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_ourselves() {
        let own = std::env::current_exe().expect("a path");
        assert!(left_alone(&own).is_some());
        assert_eq!(left_alone(Path::new("/etc/passwd")), None);
        assert_eq!(left_alone(Path::new("/nonexistent")), None);
    }
}
