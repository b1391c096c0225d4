//! Figures beyond the papers: limits, real programs, more and more threads.

use super::super::panel::Panel;
use super::super::read::{Of, Report};
use super::Figure;
use super::View::Groups;

pub const FIGURES: &[Figure] = &[
    Figure {
        name: "own-threads",
        title: "From 2 to 1024 threads",
        measurement: "threads",
        shows: "Time of the same work with more and more threads, relative to as many threads as \
                CPUs.",
        elsewhere: "Real. The number of threads for each CPU matters: 1024 threads on 2 CPUs are \
                    512 a CPU.",
        view: Groups(to_bound),
        ..Figure::EMPTY
    },
    Figure {
        name: "own-mechanisms",
        title: "What each mechanism brings",
        measurement: "mechanisms",
        shows: "Time under lissom, and with one mechanism disabled at a time, relative to as many \
                threads as CPUs.",
        elsewhere: "Real.",
        view: Groups(mechanisms),
        ..Figure::EMPTY
    },
    Figure {
        name: "own-resize",
        title: "CPUs that come and go",
        measurement: "resize",
        shows: "CPU seconds that were available until the program ended. Every half second, the \
                number of CPUs changes between all and half of them. The bound has all CPUs all \
                the time.",
        elsewhere: "Real, between 1 and 2 CPUs. Machines with more CPUs have larger steps.",
        view: Groups(to_bound_by_workload),
        ..Figure::EMPTY
    },
    Figure {
        name: "own-quota",
        title: "Under a CPU quota",
        measurement: "quota",
        shows: "The same under a CPU quota of half of the CPUs, as a container's limit. The bound \
                has as many threads as CPUs, under the same quota.",
        elsewhere: "Real, for a quota of 1 CPU on 2. Measuring it needs root, to create a cgroup.",
        view: Groups(to_bound_by_workload),
        ..Figure::EMPTY
    },
    Figure {
        name: "own-ml",
        title: "Training with LightGBM and scikit-learn",
        measurement: "ml",
        shows: "Time of training, relative to as many threads as CPUs.",
        elsewhere: "Real.",
        view: Groups(to_bound),
        ..Figure::EMPTY
    },
    Figure {
        name: "own-postgres",
        title: "PostgreSQL",
        measurement: "server",
        shows: "SELECTs a second (more is better), and the time until 99 % are answered (less is \
                better). PostgreSQL's processes block in the kernel; lissom must not slow them \
                down.",
        elsewhere: "The load generator runs on the same machine.",
        view: Groups(postgres),
        ..Figure::EMPTY
    },
    Figure {
        name: "own-programs",
        title: "Whole programs under lissom",
        measurement: "programs",
        shows: "Time of all programs with four times as many threads as CPUs, relative to as many \
                as CPUs.",
        elsewhere: "Real.",
        view: Groups(to_bound_by_workload),
        ..Figure::EMPTY
    },
];

pub fn to_bound(report: &Report) -> Vec<Panel> {
    report.by_threads(Of::ToBound, |_| true)
}

fn to_bound_by_workload(report: &Report) -> Vec<Panel> {
    // With as many threads as CPUs, native and the bound are the same.
    let most = report.groups.iter().map(|g| g.threads).max().unwrap_or(0);
    let title = format!("{most} threads");
    vec![report.by_workload(&title, "program", Of::ToBound, |g| g.threads == most)]
}

fn mechanisms(report: &Report) -> Vec<Panel> {
    vec![report.by_workload("one off at a time", "program", Of::ToBound, |_| true)]
}

fn postgres(report: &Report) -> Vec<Panel> {
    report.by_threads(Of::Value, |w| w.starts_with("postgres"))
}
