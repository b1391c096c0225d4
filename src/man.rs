//! The manual: a page for lissom, and one for each verb with its options.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use clap::CommandFactory as _;

use crate::cli;

/// Return all pages, one after the other.
pub fn all() -> io::Result<Vec<u8>> {
    let mut roff = Vec::new();
    for_each(&command(), &mut |_, page| page.render(&mut roff))?;
    Ok(roff)
}

/// Write `folder/lissom-run.1` and so on, where `man` finds them.
pub fn write(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    for_each(&command(), &mut |name, page| {
        let mut roff = Vec::new();
        page.render(&mut roff)?;
        fs::write(folder.join(format!("{name}.1")), roff)
    })
}

fn command() -> clap::Command {
    let mut command = cli::Cli::command();
    command.build();
    command
}

fn for_each(
    verb: &clap::Command,
    page: &mut impl FnMut(&str, &clap_mangen::Man) -> io::Result<()>,
) -> io::Result<()> {
    let name = verb.get_display_name().unwrap_or("lissom");
    let source = concat!("lissom ", env!("CARGO_PKG_VERSION"));
    page(name, &clap_mangen::Man::new(verb.clone()).title(name).source(source))?;
    for inner in verb.get_subcommands().filter(|v| v.get_name() != "help" && !v.is_hide_set()) {
        for_each(inner, page)?;
    }
    Ok(())
}
