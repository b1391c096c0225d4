//! Sources of activity vectors: BPF and /proc.

use std::time::Duration;

use clap::ValueEnum;

use super::bpf::Activity;
use super::sample::{Sampler, Seen};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// Measure by BPF if permitted, else sample /proc
    Auto,
    /// Count every change in the kernel: exact; needs root, or CAP_BPF and CAP_PERFMON
    Bpf,
    /// Sample the states of threads 20 times a period: misses short bursts
    Proc,
}

pub enum Source {
    Bpf(Box<Activity>),
    Proc(Sampler),
}

impl Source {
    /// Open the chosen source. Fails if `choice` is Bpf and BPF is not available. If `choice` is
    /// Auto, falls back to /proc, and reports that on standard error unless `quiet`.
    pub fn open(choice: Choice, quiet: bool) -> anyhow::Result<Source> {
        if choice == Choice::Proc {
            return Ok(Source::Proc(Sampler::default()));
        }
        match Activity::load() {
            Ok(activity) => Ok(Source::Bpf(Box::new(activity))),
            Err(error) if choice == Choice::Bpf => {
                Err(error.context("cannot measure by BPF (needs root, or CAP_BPF and CAP_PERFMON)"))
            }
            Err(error) => {
                if !quiet {
                    ui::message!(
                        "lissom: activity is sampled from /proc, which misses short bursts; BPF is \
                         exact, but needs root, or CAP_BPF and CAP_PERFMON ({error:#})"
                    );
                }
                Ok(Source::Proc(Sampler::default()))
            }
        }
    }

    /// Measure for `period`, during which it calls `wait`. Returns the activity of each process.
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
