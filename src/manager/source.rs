//! Where activity vectors come from.

use std::time::Duration;

use clap::ValueEnum;

use super::activity::Activity;
use super::sample::{Sampler, Seen};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// BPF if it may be used, /proc if not
    Auto,
    /// What the kernel tells: exact; needs root, or CAP_BPF and CAP_PERFMON
    Bpf,
    /// What is seen by looking at the threads' states 20 times a period
    Proc,
}

pub enum Source {
    Bpf(Box<Activity>),
    Proc(Sampler),
}

impl Source {
    /// Says on standard error if it cannot be the better one, unless `quiet`.
    pub fn open(choice: Choice, quiet: bool) -> anyhow::Result<Source> {
        if choice == Choice::Proc {
            return Ok(Source::Proc(Sampler::default()));
        }
        match Activity::load() {
            Ok(activity) => Ok(Source::Bpf(Box::new(activity))),
            Err(error) if choice == Choice::Bpf => {
                Err(error.context("activity by BPF (it takes root, or CAP_BPF and CAP_PERFMON)"))
            }
            Err(error) => {
                if !quiet {
                    eprintln!(
                        "lissom: activity is sampled from /proc, which misses short bursts. BPF sees all, and takes \
                         root, or CAP_BPF and CAP_PERFMON ({error:#})"
                    );
                }
                Ok(Source::Proc(Sampler::default()))
            }
        }
    }

    /// Waits for as long as `period`, by `wait`, and says what happened in it.
    pub fn period(
        &mut self,
        period: Duration,
        wait: &mut dyn FnMut(Duration),
    ) -> anyhow::Result<Vec<Seen>> {
        match self {
            Source::Bpf(activity) => {
                wait(period);
                Ok(activity.seen())
            }
            Source::Proc(sampler) => sampler.period(period, wait),
        }
    }
}
