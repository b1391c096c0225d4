//! Standard output of the verbs.

use std::io::Write as _;

/// Write to standard output. Unlike print!, returns an error instead of ending the process.
pub fn print(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Format a report as JSON, as all verbs do.
pub fn json(report: &impl serde::Serialize) -> String {
    // Serializing plain numbers and strings cannot fail.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}
