//! Make many runs in parallel, on one thread per CPU.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::host::{Config, Host};
use super::stats::Report;

/// Make one run. progress: stores the finished part in thousandths.
pub fn run(config: Config, progress: &AtomicU64) -> Report {
    let mut host = Host::new(config);
    host.run(progress);
    host.report()
}

/// Returns the reports in the order of the configurations. On a terminal, shows the progress.
pub fn run_all(configs: Vec<Config>) -> Vec<Report> {
    let total = configs.len();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(total);
    let reports = Mutex::new(vec![None; total]);
    let progress: Vec<AtomicU64> = configs.iter().map(|_| AtomicU64::new(0)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let i = next.fetch_add(1, Relaxed);
            let Some(config) = configs.get(i) else { break };
            let report = run(config.clone(), &progress[i]);
            // The lock fails if a thread has panicked; leaving the scope then panics.
            if let Ok(mut reports) = reports.lock() {
                reports[i] = Some(report);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        if std::io::stderr().is_terminal() {
            show_progress(|| workers.iter().all(|w| w.is_finished()), &progress);
        }
    });
    reports.into_inner().unwrap_or_default().into_iter().flatten().collect()
}

/// Show the progress on one line of standard error, after the first two seconds. Returns when
/// `is_over` does.
fn show_progress(is_over: impl Fn() -> bool, progress: &[AtomicU64]) {
    let started = Instant::now();
    let mut shown = None;
    while !is_over() {
        std::thread::sleep(Duration::from_millis(20));
        if started.elapsed() > Duration::from_secs(2) {
            let done: u64 = progress.iter().map(|p| p.load(Relaxed)).sum();
            let percent = done / 10 / progress.len() as u64;
            if shown.replace(percent) != Some(percent) {
                eprint!("\rlissom: {percent} % simulated");
            }
        }
    }
    if shown.is_some() {
        eprint!("\r\x1b[K");
    }
}

/// Median, least and largest result of several seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Middle {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

pub fn middle(values: impl Iterator<Item = f64>) -> Middle {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n == 0 {
        return Middle::default();
    }
    let median = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
    Middle { median, least: values[0], most: values[n - 1] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle() {
        assert_eq!(middle([3.0, 1.0, 2.0].into_iter()).median, 2.0);
        let even = middle([4.0, 1.0, 2.0, 3.0].into_iter());
        assert_eq!((even.median, even.least, even.most), (2.5, 1.0, 4.0));
        assert_eq!(middle(std::iter::empty()).median, 0.0);
    }
}
