//! `lissom gdb`: run gdb with commands for threads that have no kernel thread at the moment.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::Context as _;
use nix::sys::memfd::{MFdFlags, memfd_create};
use ui::exit::{self, Failure};

use crate::cli::GdbArgs;

const SCRIPT: &str = include_str!("../runtime/gdb/lissom.py");

pub fn gdb(args: GdbArgs) -> anyhow::Result<i32> {
    if args.script {
        ui::output::print(SCRIPT.as_bytes())?;
        return Ok(0);
    }
    let script = script().context("cannot pass the commands to gdb")?;
    let read = format!("python exec(open('/proc/self/fd/{}').read())", script.as_raw_fd());
    let error = Command::new("gdb").args(["-ex", &read]).args(args.arguments).exec();
    let code = match error.kind() {
        io::ErrorKind::NotFound => exit::NOT_FOUND,
        _ => exit::NOT_EXECUTABLE,
    };
    let message = format!("cannot run gdb: {error}; install it (apt install gdb)");
    Err(Failure { code, message }.into())
}

/// Write the script to a memfd, which stays open for gdb to read.
fn script() -> io::Result<File> {
    let mut file = File::from(memfd_create(c"lissom.py", MFdFlags::empty())?);
    file.write_all(SCRIPT.as_bytes())?;
    Ok(file)
}
