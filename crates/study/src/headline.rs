//! The few figures that README.md quotes, from the measurements.

use anyhow::Context as _;

use super::read::{Group, Report};
use super::shown::{day, machine};
use super::store::{Measured, Study};
use crate::format::{BOUND, NATIVE};
use ui::markdown::{head, line};
use ui::number::number;

const BEGIN: &str = "<!-- figures -->\n";
const END: &str = "<!-- end of figures -->\n";

/// Return `text` with the figures between its two marker lines replaced.
pub fn update(text: &str, study: &Study) -> anyhow::Result<String> {
    let missing = || format!("no line `{}` is followed by a line `{}`", BEGIN.trim(), END.trim());
    let (before, rest) = text.split_once(BEGIN).with_context(missing)?;
    let (_, after) = rest.split_once(END).with_context(missing)?;
    let measured = study
        .measured
        .get("ml")
        .context("no numbers of training: run `lissom study run own-ml` first")?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", training(measured)?))
}

/// Return a table of training with the largest number of threads that was measured.
fn training(measured: &Measured) -> anyhow::Result<String> {
    let report = Report::of(&measured.report)?;
    let most = report.groups.iter().map(|g| g.threads).max().context("no rows")?;
    let cpus = &measured.machine["cpus"];
    let of = |group: &Group, scenario: &str| {
        let value = group.cell(scenario).and_then(|c| c.value);
        value.map_or("-".into(), |v| format!("{} s", number(v.median)))
    };
    let bound = format!("{cpus} threads, natively");
    let title = format!("training with {most} threads on {cpus} CPUs");
    let mut text = String::from("\n");
    text += &head(&[&title, "natively", "under lissom", &bound]);
    for group in report.groups.iter().filter(|g| g.threads == most) {
        let name = match group.workload.as_str() {
            "histgb" => "scikit-learn, HistGradientBoosting",
            "lightgbm" => "LightGBM",
            other => other,
        };
        text += &line(&[name.into(), of(group, NATIVE), of(group, "auto"), of(group, BOUND)]);
    }
    text += &format!("\n{}, {}.\n\n", machine(&measured.machine), day(measured.time));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::shown::tests::measured;
    use super::*;

    #[test]
    fn only_the_figures_change() {
        let mut study = Study::empty();
        let text = format!("before\n{BEGIN}old\n{END}after\n");
        assert!(update(&text, &study).is_err());
        let report = super::super::read::tests::report(&["histgb"], &[2, 32]);
        study.measured.insert("ml".into(), measured(report));
        let new = update(&text, &study).expect("figures");
        assert!(new.starts_with("before\n") && new.ends_with("after\n") && !new.contains("old"));
        assert!(
            new.contains("| scikit-learn, HistGradientBoosting | 4.00 s | - | 1.00 s |"),
            "{new}"
        );
        assert_eq!(update(&new, &study).expect("the same"), new);
        assert!(update("no lines", &study).is_err());
    }
}
