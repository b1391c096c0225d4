//! Checks of programs' outputs.

use std::cell::OnceCell;
use std::rc::Rc;

use serde_json::Value;

use super::super::harness::Check;

/// Check that an output has a property; otherwise `why` is wrong.
pub fn holds(property: impl Fn(&str) -> bool + 'static, why: impl Into<String>) -> Check {
    let why = why.into();
    Rc::new(move |output| (!property(output)).then(|| why.clone()))
}

/// Check that a program of workloads/ has verified its result.
pub fn verified() -> Check {
    holds(|output| output.contains("\"verified\": true"), "its verification failed")
}

/// Check that the answer that `read` finds is that of the first run. Numbers may differ by
/// `tolerance`, a fraction. The error of `read` says why there is no answer.
pub fn same(read: impl Fn(&str) -> Result<String, String> + 'static, tolerance: f64) -> Check {
    let first = OnceCell::new();
    Rc::new(move |output| {
        let answer = match read(output) {
            Ok(answer) => answer,
            Err(why) => return Some(why),
        };
        let known: &String = first.get_or_init(|| answer.clone());
        let is_near = match (answer.parse::<f64>(), known.parse::<f64>()) {
            (Ok(answer), Ok(known)) => (answer - known).abs() <= tolerance * known.abs(),
            _ => false,
        };
        let shown = |text: &str| text.chars().take(40).collect::<String>();
        (!is_near && answer != *known)
            .then(|| format!("the result is {}, but was {} before", shown(&answer), shown(known)))
    })
}

/// Return a reader of a field in the JSON of the last line.
pub fn field(name: &'static str) -> impl Fn(&str) -> Result<String, String> {
    move |output| {
        let line = output.lines().last().unwrap_or_default();
        match serde_json::from_str::<Value>(line).map(|v| v[name].clone()) {
            Ok(Value::String(text)) => Ok(text),
            Ok(Value::Number(number)) => Ok(number.to_string()),
            _ => Err(format!("its output has no {name}: {line}")),
        }
    }
}

/// Read the whole output.
pub fn whole(output: &str) -> Result<String, String> {
    match output.trim() {
        "" => Err("it printed no result".into()),
        text => Ok(text.into()),
    }
}

/// Read an output that is a number above 0.
pub fn number(output: &str) -> Result<String, String> {
    let text = output.trim();
    let is_number = text.parse::<f64>().is_ok_and(|n| n > 0.0);
    if is_number { Ok(text.into()) } else { Err("it printed no number".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_must_be_the_same() {
        let exact = same(field("checksum"), 0.0);
        assert_eq!(exact("a warning\n{\"checksum\": \"ab\"}\n"), None);
        assert_eq!(exact("{\"checksum\": \"ab\", \"seconds\": 2}"), None);
        assert_eq!(
            exact("{\"checksum\": \"cd\"}"),
            Some("the result is cd, but was ab before".into())
        );
        assert!(exact("{}").is_some() && exact("").is_some() && exact("x").is_some());
        assert_eq!(verified()("{\"verified\": true}"), None);
        assert!(verified()("{\"verified\": false}").is_some());
        assert!(same(whole, 0.0)("\n").is_some());
    }

    #[test]
    fn numbers_may_differ_a_little() {
        let near = same(field("error"), 0.05);
        assert_eq!(near("{\"error\": 0.5}"), None);
        assert_eq!(near("{\"error\": 0.51}"), None);
        assert!(near("{\"error\": 0.6}").is_some());
        let size = same(number, 0.05);
        assert_eq!(size("1000\n"), None);
        assert_eq!(size("1040\n"), None);
        assert!(size("1060\n").is_some() && size("").is_some() && size("0").is_some());
    }
}
