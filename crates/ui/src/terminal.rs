//! Helpers for output on a terminal.

/// Return the height of the terminal of standard output; 24 if unknown.
pub fn rows() -> usize {
    let rows = size().ws_row;
    if rows == 0 { 24 } else { usize::from(rows) }
}

/// Return the width of the terminal of standard output; 80 if unknown.
pub fn columns() -> usize {
    let columns = size().ws_col;
    if columns == 0 { super::text::WIDTH } else { usize::from(columns) }
}

/// Return the size of the terminal of standard output. Zeroes: unknown.
fn size() -> libc::winsize {
    // SAFETY: all zeroes are a valid value; the call fills it in.
    unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size);
        size
    }
}

/// Replace control characters. Names of programs and files may contain commands to the terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Convert bytes up to the first NUL. Replaces control characters and invalid UTF-8.
pub fn c_string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    plain(&String::from_utf8_lossy(&bytes[..end]))
}

/// Format a number that is not negative in at most five characters.
pub fn short(n: f64) -> String {
    match n {
        0.0 => "0".into(),
        n if n < 9.95 => format!("{n:.1}"),
        n if n < 9999.5 => format!("{n:.0}"),
        n if n < 99_950.0 => format!("{:.1}k", n / 1e3),
        n if n < 999_500.0 => format!("{:.0}k", n / 1e3),
        n if n < 99_950_000.0 => format!("{:.1}M", n / 1e6),
        n => format!("{:.0}M", n / 1e6),
    }
}

/// Format a count in at most four characters: 12345 -> 12k.
pub fn short_count(n: u64) -> String {
    match n {
        n if n < 10_000 => n.to_string(),
        n if n < 1_000_000 => format!("{}k", n / 1000),
        n => format!("{}M", n / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_commands() {
        assert_eq!(plain("a\x1b[2Jü\n"), "a\u{fffd}[2Jü\u{fffd}");
    }

    #[test]
    fn short_counts() {
        let texts = [0, 9999, 12_345, 999_999, 4_194_304].map(short_count);
        assert_eq!(texts, ["0", "9999", "12k", "999k", "4M"]);
    }

    #[test]
    fn short_numbers() {
        let numbers =
            [0.0, 0.5, 9.94, 9.96, 999.0, 9999.0, 12_345.0, 99_960.0, 999_600.0, 12_345_678.0, 1e8];
        let texts: Vec<String> = numbers.iter().map(|&n| short(n)).collect();
        assert_eq!(
            texts,
            ["0", "0.5", "9.9", "10", "999", "9999", "12.3k", "100k", "1.0M", "12.3M", "100M"]
        );
        assert!(texts.iter().all(|t| t.len() <= 5));
    }
}
