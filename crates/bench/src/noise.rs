//! Warn about measurements that are too noisy to trust: steady values that varied, and other
//! programs that used the CPUs. Pure functions.

use super::harness::{BOUND, Compare, Measured, NATIVE};

/// Relative spread above which differences of a few percent mean nothing.
const SPREAD: f64 = 0.15;
/// Number of CPUs that other programs may use, on average over all runs. On a quiet machine,
/// /proc/stat shows 0.01 to 0.05.
const OTHERS: f64 = 0.15;
/// Share of the CPUs that other programs may use in any run.
const SHARE: f64 = 0.1;
/// Seconds that all runs together need for a valid average of `OTHERS`: /proc/stat counts in ticks
/// of 10 ms.
const KNOWN: f64 = 0.5;

/// Return warnings for people. `hog`: the benchmark itself ran a competing load.
pub fn noise(groups: &[Measured], hog: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(others) = others(groups).filter(|o| *o > OTHERS && !hog) {
        lines.push(format!(
            "Noise: something else used {others:.2} CPUs during the measurement (or the host of \
             this virtual machine did). Stop it, and measure again."
        ));
    }
    if let Some(places) = above(groups.iter().filter_map(spread), SPREAD) {
        lines.push(format!(
            "Noise: {} itself varied by {places}. Trust ratios more than values; stop other \
             programs.",
            groups.first().map_or(NATIVE, steadiest),
        ));
    }
    lines
}

/// Warn if `subject` varied by more than `SPREAD` anywhere. `list`: rows of the table, with their
/// relative spread.
pub fn varied(subject: &str, list: impl Iterator<Item = (String, f64)>) -> Option<String> {
    let places = above(list, SPREAD)?;
    Some(format!("Noise: {subject} varied by {places}. Trust ratios more than values."))
}

/// Warn if other programs used more than `SHARE` of the CPUs anywhere. `list`: rows of the table,
/// with that share.
pub fn disturbed(list: impl Iterator<Item = (String, f64)>) -> Option<String> {
    let places = above(list, SHARE)?;
    Some(format!("Noise: other programs used up to this share of the CPUs: {places}. Stop them."))
}

/// Format the rows of `list` whose noise exceeds `limit`. Returns `None` if there are none.
fn above(list: impl Iterator<Item = (String, f64)>, limit: f64) -> Option<String> {
    let noisy = list.filter(|(_, noise)| *noise > limit);
    let places: Vec<String> =
        noisy.map(|(place, noise)| format!("{:.0}% ({place})", noise * 100.0)).collect();
    (!places.is_empty()).then(|| places.join(", "))
}

/// Return the number of CPUs that other programs used, on average over all runs. Returns `None` if
/// the runs were shorter than `KNOWN` together.
fn others(groups: &[Measured]) -> Option<f64> {
    let samples = groups.iter().flat_map(|g| &g.cells).flat_map(|c| &c.samples);
    let (used, seconds) = samples.fold((0.0, 0.0), |(used, seconds), s| {
        (used + s.process.others * s.process.seconds, seconds + s.process.seconds)
    });
    (seconds >= KNOWN).then(|| used / seconds)
}

/// Return the scenario whose time should vary least. Native busy-waiting varies by nature if
/// threads outnumber CPUs, so groups with pilot runs use the bound.
fn steadiest(group: &Measured) -> &'static str {
    if group.cell(BOUND).is_some() && group.cells.iter().any(|c| c.rounds.is_some()) {
        BOUND
    } else {
        NATIVE
    }
}

/// Return the group's name and the relative spread of its steadiest scenario. Metrics that are
/// compared with nothing (fairness) vary by nature: `None`.
fn spread(group: &Measured) -> Option<(String, f64)> {
    let noise = group.cell(steadiest(group))?.value.as_ref()?.relative();
    (group.metric.compare != Compare::Nothing).then(|| (group.place(), noise))
}

#[cfg(test)]
mod tests {
    use super::super::counters::Process;
    use super::super::harness::{Cell, Metric, Sample, Spread};
    use super::*;

    fn group(values: [f64; 3], others: f64) -> Measured {
        let process = Process { seconds: 1.0, others, ..Process::default() };
        let sample = |&value: &f64| Sample { value, output: serde_json::Value::Null, process };
        let cell = Cell {
            scenario: NATIVE,
            value: Spread::of(&values),
            samples: values.iter().map(sample).collect(),
            ..Cell::default()
        };
        Measured {
            workload: "w".into(),
            threads: 8,
            metric: Metric::ratio("seconds", "s"),
            options: &[],
            environment: &[],
            cells: vec![cell],
        }
    }

    #[test]
    fn a_quiet_machine_is_not_blamed() {
        assert!(noise(&[group([1.0, 1.01, 1.02], 0.03)], false).is_empty());
        assert!(noise(&[group([1.0, 1.01, 1.02], -0.02)], false).is_empty());
        assert!(noise(&[], false).is_empty());
    }

    #[test]
    fn places_with_noise_are_named() {
        let list = |noise: f64| [("ep".to_string(), noise), ("cg".to_string(), 0.01)].into_iter();
        assert_eq!(
            varied("native itself", list(0.2)).as_deref(),
            Some("Noise: native itself varied by 20% (ep). Trust ratios more than values.")
        );
        assert!(disturbed(list(0.12)).is_some_and(|line| line.contains("CPUs: 12% (ep). Stop")));
        assert!(varied("native itself", list(0.14)).is_none() && disturbed(list(0.09)).is_none());
    }

    #[test]
    fn others_and_spread_are_told() {
        let lines = noise(&[group([1.0, 1.0, 1.0], 0.93)], false);
        assert!(lines.len() == 1 && lines[0].contains("0.93 CPUs"), "{lines:?}");
        assert!(noise(&[group([1.0, 1.0, 1.0], 0.93)], true).is_empty());
        let lines = noise(&[group([1.0, 1.0, 1.5], 0.0)], false);
        assert!(lines.len() == 1 && lines[0].contains("50% (w, 8 threads)"), "{lines:?}");
    }
}
