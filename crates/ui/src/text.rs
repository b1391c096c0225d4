//! Lines of text for a terminal.

/// Maximum width of a line, in columns.
pub const WIDTH: usize = 80;

/// Format a count with its noun, which takes an `s`: "1 round", "2 rounds".
pub fn plural(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Round numbers so that their sum is `total`, rounded: those with the largest remainders go up.
/// Pre: `total` is the sum of `parts`, and no number is negative.
pub fn rounded_parts(total: f64, parts: &[f64]) -> Vec<u64> {
    let mut rounded: Vec<u64> = parts.iter().map(|&part| part as u64).collect();
    let missing = (total.round() as u64).saturating_sub(rounded.iter().sum());
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| parts[b].fract().total_cmp(&parts[a].fract()));
    for &i in order.iter().take(missing as usize) {
        rounded[i] += 1;
    }
    rounded
}

/// Format with separators: 1234567 -> 1,234,567.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

/// Cut the line at the last column.
pub fn cut(line: &str) -> String {
    line.chars().take(WIDTH).collect()
}

/// Wrap words into lines of at most 80 columns. The first line begins with `first`, the others with
/// `indent` spaces.
pub fn wrap(text: &str, first: &str, indent: usize) -> Vec<String> {
    wrap_at(WIDTH, text, first, indent)
}

/// Wrap like `wrap`, into lines of at most `width` columns.
pub fn wrap_at(width: usize, text: &str, first: &str, indent: usize) -> Vec<String> {
    let mut lines = vec![first.to_string()];
    let mut fresh = true;
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |l| l.chars().count());
        if !fresh && used + 1 + word.chars().count() > width {
            lines.push(" ".repeat(indent));
            fresh = true;
        }
        if let Some(line) = lines.last_mut() {
            if !fresh {
                line.push(' ');
            }
            line.push_str(word);
        }
        fresh = false;
    }
    lines.iter().map(|line| line.chars().take(width).collect()).collect()
}

/// Format a line of a table: cells of these widths, with a space between them. A negative width
/// aligns its cell to the left, and cuts it.
pub fn row<S: AsRef<str>>(widths: &[isize], cells: &[S]) -> String {
    let cells = widths.iter().zip(cells).map(|(&width, cell)| {
        let (columns, cell) = (width.unsigned_abs(), cell.as_ref());
        match width {
            0.. => format!("{cell:>columns$}"),
            _ => format!("{cell:<columns$.columns$}"),
        }
    });
    cells.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn parts_add_up() {
        assert_eq!(rounded_parts(100.0, &[33.4, 33.4, 33.2]), [34, 33, 33]);
        assert_eq!(rounded_parts(1.6, &[0.8, 0.4, 0.4]), [1, 1, 0]);
        assert_eq!(rounded_parts(0.0, &[0.0]), [0]);
    }

    #[test]
    fn rows() {
        assert_eq!(row(&[4, -3, 2], &["a", "b", "c"]), "   a b    c");
        assert_eq!(row(&[1, -3, 2], &["long", "long", "c"]), "long lon  c");
    }

    #[test]
    fn words() {
        assert_eq!(wrap("a b", "", 0), ["a b"]);
        let lines = wrap(&"word ".repeat(40), "", 0);
        assert!(lines.len() > 2 && lines.iter().all(|l| l.len() <= WIDTH), "{lines:?}");
    }
}
