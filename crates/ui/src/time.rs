//! Options that take a time.

use std::time::Duration;

/// The unit of a number without one, as older versions of the option took it.
#[derive(Clone, Copy)]
pub enum Unit {
    Ns,
    Us,
    Ms,
    S,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Us => "us",
            Unit::Ms => "ms",
            Unit::S => "s",
        }
    }
}

/// Return a parser of times from `least` to `most`, such as "20us" and "1.5s".
///
/// A number without a unit counts in `unit`, with a warning on standard error that names the way to
/// write it. None: it is refused.
pub fn parser(
    unit: impl Into<Option<Unit>>,
    least: &'static str,
    most: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    let unit = unit.into();
    move |text| {
        let (time, is_bare) = within(text, unit, least, most)?;
        if let Some(unit) = unit.filter(|_| is_bare && !time.is_zero()) {
            let name = unit.name();
            crate::message!(
                "lissom: {text} has no unit and is taken as {text}{name}: write {text}{name}"
            );
        }
        Ok(time)
    }
}

/// Return a parser like `parser`, of times in seconds.
pub fn seconds(
    unit: Unit,
    least: &'static str,
    most: &'static str,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    let parse = parser(unit, least, most);
    move |text| parse(text).map(|time| time.as_secs_f64())
}

/// Parse a time from `least` to `most`. Returns also whether it had no unit.
pub fn within(
    text: &str,
    unit: Option<Unit>,
    least: &str,
    most: &str,
) -> Result<(Duration, bool), String> {
    let limit = |text| parse(text, unit).map(|(limit, _)| limit);
    parse(text, unit)
        .filter(|(time, _)| limit(least).is_some_and(|least| *time >= least))
        .filter(|(time, _)| limit(most).is_some_and(|most| *time <= most))
        .ok_or_else(|| expected(least, most))
}

fn expected(least: &str, most: &str) -> String {
    format!("expected a time with its unit (ns, us, ms, s, m, h), from {least} to {most}")
}

/// Return the time, and whether it had no unit. Zero needs none.
fn parse(text: &str, unit: Option<Unit>) -> Option<(Duration, bool)> {
    let is_bare = text.parse::<f64>().is_ok_and(f64::is_finite);
    let whole = match (is_bare, unit) {
        (true, Some(unit)) => format!("{text}{}", unit.name()),
        _ => text.to_string(),
    };
    Some((humantime::parse_duration(&whole).ok()?, is_bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> Option<u128> {
        parser(Unit::Ms, "1us", "1h")(text).ok().map(|time| time.as_nanos())
    }

    #[test]
    fn times() {
        assert_eq!(ns("1us"), Some(1000));
        assert_eq!(ns("1.5s"), Some(1_500_000_000));
        assert_eq!(ns("0.5 ms"), Some(500_000));
        assert_eq!(ns("1m 30s"), Some(90_000_000_000));
        assert_eq!(ns("0.5h"), Some(1_800_000_000_000));
        assert_eq!(ns("20"), Some(20_000_000));
        assert_eq!(ns("0.1"), Some(100_000));
    }

    #[test]
    fn no_times() {
        for text in ["", "s", "1x", "-1s", "-1", "nan", "inf", "nans", "999ns", "3601s", "1e300s"] {
            assert_eq!(ns(text), None, "{text}");
        }
    }

    #[test]
    fn limits_belong_to_the_range() {
        assert_eq!(ns("1h"), Some(3_600_000_000_000));
        assert_eq!(parser(Unit::S, "0s", "1s")("0"), Ok(Duration::ZERO));
        assert_eq!(seconds(Unit::S, "1ms", "1h")("250ms"), Ok(0.25));
        assert!(parser(None, "1us", "1h")("3").is_err() && parser(None, "0s", "1h")("0").is_ok());
    }
}
