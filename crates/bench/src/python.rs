//! Python for the benchmarks with libraries.

use std::path::PathBuf;

use anyhow::Context as _;

use super::command::words;
use super::{Session, ml};

/// Return the Python of --python, or the default one, if it has the modules. `lacks`: text of the
/// error, after the path.
pub fn python_with(
    session: &Session,
    asked: Option<&PathBuf>,
    modules: &str,
    lacks: &str,
) -> anyhow::Result<PathBuf> {
    let python = asked.cloned().unwrap_or_else(ml::default_python);
    session
        .output(&words![python, "-c", format!("import {modules}")])
        .with_context(|| format!("{} {lacks}", python.display()))?;
    Ok(python)
}
