//! Standard output of the verbs.

use std::io::Write as _;

/// Writes to standard output. Unlike print!, an error comes back instead of ending the process.
pub fn print(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// As all verbs write a report.
pub fn json(report: &impl serde::Serialize) -> String {
    // Serializing plain numbers and strings cannot fail.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}
