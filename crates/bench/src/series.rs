//! Numbers by round, and their figures.

use serde_json::Value;

use super::harness::{Cell, Compare, Spread, pairwise};

/// Numbers by round. `None` if a round lacks one.
pub type Series = Option<Vec<f64>>;

/// Reads a number from a program's output.
pub type Read = fn(&Value) -> Option<f64>;

pub fn spread(series: Series) -> Option<Spread> {
    Spread::of(&series?)
}

pub fn ratio(of: Series, base: Series) -> Option<Spread> {
    pairwise(&of?, &base?, Compare::Ratio)
}

/// Return the spread of a number from the outputs of a cell.
pub fn spread_of(cell: &Cell, read: impl Fn(&Value) -> Option<f64>) -> Option<Spread> {
    spread(cell.series(read))
}

pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0), |(sum, n), v| (sum + v.ln(), n + 1));
    (sum / f64::from(count)).exp()
}

#[cfg(test)]
pub mod tests {
    use super::super::harness::{Group, Measured, Metric, Outcome, Ran, Sample, Scenario};
    use super::super::harness::{NATIVE, Turn, measure};
    use super::*;

    /// Make a group of three rounds. `output`: the output of a scenario, whose numbers have to be
    /// multiplied by a factor. Only `NATIVE` does not run under lissom.
    pub fn measured(
        workload: &str,
        threads: u32,
        metric: Metric,
        names: impl IntoIterator<Item = &'static str>,
        output: impl Fn(&str, f64) -> Value,
    ) -> Measured {
        let switch = |name| (name != NATIVE).then_some("auto");
        let scenario = |name| Scenario::of(name, switch(name), vec![]);
        let group = Group {
            workload: workload.into(),
            threads,
            scenarios: names.into_iter().map(scenario).collect(),
            ..Group::of(metric)
        };
        let measured = measure(&group, 3, |scenario, turn, _| {
            // A spread of 2%.
            let output = output(scenario.name, if turn == Turn::Round(2) { 1.02 } else { 1.0 });
            let value = output[metric.field].as_f64().expect("a value");
            let sample = Sample { value, output, process: Default::default() };
            Ok::<_, ()>(Ran::of(Outcome::Done(sample)))
        });
        measured.expect("no errors")
    }

    pub fn near(spread: Option<Spread>, value: f64) -> bool {
        spread.is_some_and(|s| (s.median - value).abs() < 1e-9)
    }
}
