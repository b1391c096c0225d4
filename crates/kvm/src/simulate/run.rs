//! Make many runs in parallel, on one thread per CPU.

use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use ui::number::Spread;

use super::host::{Config, Host};
use super::stats::Report;

/// Returns the reports in the order of the configurations. On a terminal, shows the progress.
pub fn run_all(configs: Vec<Config>) -> Vec<Report> {
    let style = ProgressStyle::with_template("lissom: {percent} % simulated");
    let bar =
        ProgressBar::new(1000 * configs.len() as u64).with_style(style.expect("a valid template"));
    let reports = configs.into_par_iter().map(|config| run(config, &bar)).collect();
    bar.finish_and_clear();
    reports
}

/// Make one run, which advances the bar by 1000.
pub fn run(config: Config, bar: &ProgressBar) -> Report {
    let mut host = Host::new(config);
    host.run(bar);
    host.report()
}

/// Median, least and largest result of several seeds.
pub fn spread(values: impl Iterator<Item = f64>) -> Spread {
    Spread::of(&values.collect::<Vec<_>>()).expect("one seed or more, and finite results")
}
