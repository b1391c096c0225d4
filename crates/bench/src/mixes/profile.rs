//! Each program by itself: its number of runnable threads over time, and its speedup with more
//! threads.

use std::time::Duration;

use super::super::Progress;
use super::super::background::{Bad, failed, judge};
use super::super::child::Running;
use super::super::harness::{Compare, Spread, pairwise};
use super::super::programs::Ready;
use super::super::series::geometric_mean;
use super::Bench;
use super::report::{Point, Profile, Scaling};
use watch::activity::source::{Choice, Source};

/// The interval at which the activity of a running program is read.
const PERIOD: Duration = Duration::from_millis(100);

/// Observe a process for one period. Element i is the time with i runnable threads.
fn activity(source: &mut Source, process: u32) -> anyhow::Result<Vec<Duration>> {
    let seen = source.period(PERIOD, &mut std::thread::sleep)?;
    Ok(seen
        .iter()
        .find(|s| s.id == process)
        .map(|s| s.activity.times().collect())
        .unwrap_or_default())
}

/// Return the numbers of threads to measure: up to eight CPUs all numbers, otherwise powers of two
/// and `cpus`.
fn thread_counts(cpus: u32) -> Vec<u32> {
    let mut list: Vec<u32> = (1..=cpus).filter(|n| cpus <= 8 || n.is_power_of_two()).collect();
    if list.last() != Some(&cpus) {
        list.push(cpus);
    }
    list
}

impl Bench {
    /// Measure the profile and the scaling of each program, if given a list for it. The lists keep
    /// complete results after an error.
    pub fn alone(
        &mut self,
        profile: Option<&mut Vec<Profile>>,
        scaling: Option<&mut Vec<Scaling>>,
    ) -> anyhow::Result<()> {
        let counts = thread_counts(self.options.cpus);
        let each = usize::from(profile.is_some())
            + if scaling.is_some() { self.options.runs * counts.len() } else { 0 };
        let mut progress = Progress::new(each * self.programs.len());
        if let Some(list) = profile {
            for program in &self.programs {
                progress.show_text(&format!("{}: profile", program.name));
                match judge(self.profile(program))? {
                    Ok(profile) => list.push(profile),
                    Err(bad) => self.notes.push(format!("{}: {bad}", program.name)),
                }
            }
        }
        if let Some(list) = scaling {
            for program in &self.programs {
                match judge(self.scale(program, &counts, &mut progress))? {
                    Ok(scaling) => list.push(scaling),
                    Err(bad) => self.notes.push(format!("{}, scaling: {bad}", program.name)),
                }
            }
        }
        Ok(())
    }

    /// Profile one run with a thread per CPU.
    fn profile(&self, program: &Ready) -> anyhow::Result<Profile> {
        let threads = self.options.cpus;
        let mut running =
            Running::start(&(program.command)(threads), &self.session.scratch, "part0", None)?;
        let (mut source, mut time) = (Source::open(Choice::Auto, false)?, Vec::<Duration>::new());
        let exited = loop {
            let period = activity(&mut source, running.id())?;
            // Discard the period in which the program exited.
            if let Some(exited) = running.poll()? {
                break exited;
            }
            time.resize(time.len().max(period.len()), Duration::ZERO);
            period.iter().zip(&mut time).for_each(|(more, time)| *time += *more);
            if running.seconds() > self.options.timeout {
                return Err(Bad::Timeout.into());
            }
            // Check for signals, since the source does not.
            self.session.signals.wait_for_child(Duration::ZERO)?;
        };
        exited.ended.output()?;
        let whole: Duration = time.iter().sum();
        if whole.is_zero() {
            let seconds = exited.seconds;
            return Err(failed(format!(
                "it ended before its threads were sampled, after {seconds:.2} s"
            )));
        }
        let shares = time.iter().map(|t| t.as_secs_f64() / whole.as_secs_f64()).collect();
        Ok(Profile { program: program.name.clone(), threads, seconds: exited.seconds, shares })
    }

    fn scale(
        &self,
        program: &Ready,
        counts: &[u32],
        progress: &mut Progress,
    ) -> anyhow::Result<Scaling> {
        let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); counts.len()];
        for round in 1..=self.options.runs {
            for (&threads, seconds) in counts.iter().zip(&mut seconds) {
                let name = &program.name;
                progress.show_text(&format!("{name}, {threads} threads: round {round}"));
                let (runs, _) = self.play_one(program, (program.command)(threads))?;
                seconds.push(geometric_mean(runs.iter().map(|r| r.seconds)));
            }
        }
        let point = |(&threads, of): (&u32, &Vec<f64>)| {
            let speedup = pairwise(&seconds[0], of, Compare::Ratio)?;
            Some(Point { threads, seconds: Spread::of(of)?, speedup })
        };
        let points = counts.iter().zip(&seconds).filter_map(point).collect();
        Ok(Scaling { program: program.name.clone(), points })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(3), [1, 2, 3]);
        assert_eq!(thread_counts(12), [1, 2, 4, 8, 12]);
        assert_eq!(thread_counts(16), [1, 2, 4, 8, 16]);
    }
}
