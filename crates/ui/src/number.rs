//! Measured numbers and their text.

use serde::{Deserialize, Serialize};

/// Median and extremes of several values of one quantity.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// Return the spread of `values`. None: there are none, or one is not finite.
    pub fn of(values: &[f64]) -> Option<Spread> {
        if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        };
        Some(Spread { median, least: sorted[0], most: sorted[sorted.len() - 1] })
    }

    /// Return the distance of the extremes, as a part of the median.
    pub fn relative(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.most - self.least) / self.median.abs() }
    }
}

/// Format the median with the least and the most: "2.00 1.00-3.00".
pub fn spread(s: &Spread) -> String {
    // Beside a minus, a dash would be ambiguous.
    let to = if s.least < 0.0 || s.most < 0.0 { ".." } else { "-" };
    format!("{} {}{to}{}", number(s.median), number(s.least), number(s.most))
}

/// Format with three significant digits, in at most five characters (six with a sign).
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 999.5e6 => format!("{value:.0e}"),
        _ if size >= 99.95e6 => format!("{:.0}M", value / 1e6),
        _ if size >= 999.5e3 => format!("{:.1}M", value / 1e6),
        _ if size >= 99.95e3 => format!("{:.0}k", value / 1e3),
        _ if size >= 9999.5 => format!("{:.1}k", value / 1e3),
        _ if size >= 99.95 => format!("{value:.0}"),
        _ if size >= 9.995 => format!("{value:.1}"),
        _ if size >= 0.0995 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Format like `number`, without trailing zeros: 2, not 2.00.
pub fn short(value: f64) -> String {
    let text = number(value);
    if !text.contains('.') || text.ends_with(['k', 'M']) {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Format like `number`, but percentages from 99 to 100 with two decimals, never rounded up: 99.99
/// is not 100.
pub fn closely(value: f64) -> String {
    if (99.0..100.0).contains(&value) {
        format!("{:.2}", (value * 100.0 + 1e-6).floor() / 100.0)
    } else {
        number(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).map(|s| s.median), Some(2.0));
        let even = Spread { median: 2.5, least: 1.0, most: 4.0 };
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]), Some(even));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn short_numbers() {
        let numbers = [0.0, 0.25, 100.0, 32_768.0, 1.5e6].map(short);
        assert_eq!(numbers, ["0", "0.25", "100", "32.8k", "1.5M"]);
    }
}
