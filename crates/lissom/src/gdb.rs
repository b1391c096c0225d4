//! `lissom gdb`: run gdb with commands for threads that have no kernel thread at the moment.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::Context as _;
use clap::Args;
use nix::sys::memfd::{MFdFlags, memfd_create};
use ui::exit::{self, Failure};

const SCRIPT: &str = include_str!("../../../runtime/gdb/lissom.py");

/// Run gdb with commands that show application threads
///
/// gdb alone does not show threads that wait in user space, because they have no kernel thread.
/// `lissom threads` lists all threads of a process or a core file, and `lissom bt [TID|all]` shows
/// their frames. The runtime's library must have the same path as when the program ran.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: gdb's own. 127 if it is not installed.

Examples:
  lissom gdb -p $(pidof solver)
  lissom gdb ./solver core -batch -ex 'lissom bt all'
  lissom gdb --script > ~/.lissom.py    # for `source` in ~/.gdbinit")]
pub struct GdbArgs {
    /// Print the commands as a Python script for gdb 12 or newer, instead of running gdb
    #[arg(long, exclusive = true)]
    pub script: bool,

    /// Arguments of gdb: a program and a core file, -p PID, or any of its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<OsString>,
}

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
