//! `lissom gdb`: run gdb with commands for threads that have no kernel thread at the moment.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::cli::GdbArgs;

const SCRIPT: &str = include_str!("../runtime/gdb/lissom.py");

pub fn gdb(args: GdbArgs) -> i32 {
    if args.script {
        return ui::output::print(SCRIPT.as_bytes()).map_or(1, |()| 0);
    }
    let script = match script() {
        Ok(script) => script,
        Err(e) => {
            eprintln!("lissom: cannot pass the commands to gdb: {e}");
            return 1;
        }
    };
    let read = format!("python exec(open('/proc/self/fd/{}').read())", script.as_raw_fd());
    let error = Command::new("gdb").args(["-ex", &read]).args(args.arguments).exec();
    eprintln!("lissom: cannot run gdb: {error}; install it (apt install gdb)");
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Write the script to a memfd, which stays open for gdb to read.
fn script() -> io::Result<File> {
    // SAFETY: the name is a C string; nothing else owns the descriptor.
    let mut file = unsafe {
        let fd = libc::memfd_create(c"lissom.py".as_ptr(), 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(fd)
    };
    file.write_all(SCRIPT.as_bytes())?;
    Ok(file)
}
