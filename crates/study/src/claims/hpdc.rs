//! The claims of the paper on virtual blocking and busy-waiting detection.

use super::super::panel::{Panel, Side};
use super::{
    Claim, Judgement, all, at_least, at_most, closely, geometric, judged, least, mean_ratio, most,
    near_bound, number, ratios, series, titled, value, values,
};
use ui::number::Spread;

/// Return the gain of Fig. 10 with one CPU and with all of them, if they were measured.
fn gains(panels: &[Panel], primitive: &str) -> Vec<(&'static str, f64)> {
    let of = |suffix: &'static str| {
        let panel = panels.iter().find(|p| p.title.ends_with(suffix))?;
        Some((suffix, value(panel, "lissom", primitive)?))
    };
    ["one CPU", "all CPUs"].into_iter().filter_map(of).collect()
}

fn gain(panels: &[Panel], primitive: &str, holds: impl Fn(f64) -> bool) -> Option<Judgement> {
    let all = gains(panels, primitive);
    if all.is_empty() {
        return None;
    }
    let seen: Vec<String> = all.iter().map(|(w, g)| format!("{} x with {w}", number(*g))).collect();
    judged(all.iter().all(|g| holds(g.1)), seen.join(", "))
}

/// Judge claim 15. `panels` are those over numbers of CPUs. A program that crashed has no point.
fn pinning(panels: &[&Panel]) -> Option<Judgement> {
    let of = |p: &&Panel| ratios(p, "pinned", "lissom");
    let times: Vec<f64> = panels.iter().filter_map(of).flatten().collect();
    let count = |name| panels.iter().filter_map(|p| series(p, name)).flatten().count();
    let crashed = count("lissom").saturating_sub(count("pinned"));
    let Spread { least, most, .. } = Spread::of(&times)?;
    let seen = format!("{} to {} x lissom's time, {crashed} crashes", number(least), number(most));
    judged(least > 1.0 && crashed > 0, seen)
}

pub const CLAIMS: &[Claim] = &[
    Claim {
        number: 1,
        text: "The cost of a switch does not depend on the number of threads",
        figure: "hpdc-fig2",
        judge: |panels| {
            let values = series(titled(panels, "yield")?, "native")?;
            let several: Vec<f64> = values.iter().filter(|v| v.0 != "1").map(|v| v.1).collect();
            let Spread { least, most, .. } = Spread::of(&several)?;
            judged(most / least <= 1.25, format!("{} to {} us", number(least), number(most)))
        },
        why: "",
    },
    Claim {
        number: 2,
        text: "A shared atomic adds nothing to the cost of a switch",
        figure: "hpdc-fig2",
        judge: |panels| {
            let values = values(titled(panels, "atomic")?, "native")?;
            let growth = most(&values)? / values.first()?;
            at_most(Some(growth), 1.05, "at most {} x with several threads")
        },
        why: "",
    },
    Claim {
        number: 3,
        text: "The indirect cost of a switch is below 6 % of the time at worst, 1 ms at 128 MiB",
        figure: "hpdc-fig4",
        judge: |panels| {
            let values = values(titled(panels, "sequential-read")?, "native")?;
            at_most(most(&values), 1000.0, "sequential reads: at most {} us a switch")
        },
        why: "",
    },
    Claim {
        number: 4,
        text: "Switches make random access faster",
        figure: "hpdc-fig4",
        judge: |panels| {
            let random = panels.iter().filter(|p| p.title.starts_with("random"));
            let all: Vec<f64> = random.filter_map(|p| values(p, "native")).flatten().collect();
            let least = least(&all)?;
            judged(least < 0.0, format!("at best {} us a switch", number(least)))
        },
        why: "",
    },
    Claim {
        number: 5,
        text: "Most programs do not suffer from more threads than CPUs",
        figure: "hpdc-fig1",
        judge: |panels| {
            let values = all(panels, "native");
            let fine = values.iter().filter(|v| **v <= 1.1).count();
            let seen = format!("{fine} of {} programs within 10 %", values.len());
            judged(fine * 2 > values.len(), seen).filter(|_| !values.is_empty())
        },
        why: "OpenMP's threads spin before they block.",
    },
    Claim {
        number: 6,
        text: "Some programs get up to 25 times slower",
        figure: "hpdc-fig1",
        judge: |panels| {
            let native = panels.iter().flat_map(|p| &p.series).filter(|s| s.name == "native");
            let points = native.flat_map(|s| &s.points);
            let worst = points.max_by(|a, b| a.median.total_cmp(&b.median))?;
            // A run that exceeded the limit gives only a lower bound.
            let is_known = worst.side == Side::Exact || worst.median >= 25.0;
            is_known.then(|| at_least(Some(worst.median), 25.0, "up to {} x"))?
        },
        why: "npb-lu takes at least 8 times as long: it exceeds the limit of 20 s.",
    },
    Claim {
        number: 7,
        text: "Virtual blocking makes a barrier 1.5 to 3 times as fast",
        figure: "hpdc-fig10",
        judge: |panels| gain(panels, "barrier", |g| g >= 1.5),
        why: "",
    },
    Claim {
        number: 8,
        text: "Virtual blocking makes a condition variable 2.3 to 5 times as fast",
        figure: "hpdc-fig10",
        judge: |panels| gain(panels, "cond", |g| g >= 2.3),
        why: "",
    },
    Claim {
        number: 9,
        text: "Virtual blocking does not speed up a mutex, and does no harm",
        figure: "hpdc-fig10",
        judge: |panels| gain(panels, "mutex", |g| g >= 0.95),
        why: "Any running thread can take glibc's mutex, so natively it is as fast as its bound.",
    },
    Claim {
        number: 10,
        text: "With virtual blocking, programs are near the baseline of as many threads as CPUs",
        figure: "hpdc-fig9",
        judge: |panels| near_bound(panels, 1.1),
        why: "Programs that wait some 100,000 times a second pay for each wait \
              (docs/design/virtual-blocking.md).",
    },
    Claim {
        number: 11,
        text: "Where virtual blocking cannot help, it costs at most 0.5 %",
        figure: "hpdc-fig9",
        judge: |panels| {
            let panel = titled(panels, "programs that hardly synchronize")?;
            let ratio = mean_ratio(panel, "lissom", "native");
            at_most(ratio, 1.005, "{} x native, geometric mean")
        },
        why: "Scans and the ends of slices interrupt each slot some 300 times a second: 1.5 %. \
              When threads end one by one, a CPU is idle for up to a slice: 1 to 3 % of runs of \
              0.13 s.",
    },
    Claim {
        number: 12,
        text: "Virtual blocking cuts migrations by orders of magnitude",
        figure: "hpdc-table1",
        judge: |panels| {
            let panel = titled(panels, "migrations")?;
            let ratio = mean_ratio(panel, "native", "lissom");
            at_least(ratio, 10.0, "{} x fewer, geometric mean")
        },
        why: "Programs that migrate most natively (pathfinder, ocean, streamcluster, bt) migrate \
              20 to 200 times less. With 2 CPUs, the kernel migrates few threads of the others.",
    },
    Claim {
        number: 13,
        text: "Virtual blocking raises CPU use",
        figure: "hpdc-table1",
        judge: |panels| {
            let panel = titled(panels, "CPU utilization")?;
            let ratio = mean_ratio(panel, "lissom", "native");
            at_least(ratio, 1.0, "{} x native, geometric mean")
        },
        why: "Both CPUs are busy natively as well. lissom saves switches, not idle time.",
    },
    Claim {
        number: 14,
        text: "Oversubscribed programs use CPUs that are added (ep +51 %, facesim +34 %)",
        figure: "hpdc-fig11",
        judge: |panels| {
            let panel = titled(panels, "speed against few threads, more CPUs")?;
            let what = "ep {} x as fast as with few threads";
            at_least(value(panel, "lissom", "npb-ep"), 1.51, what)
        },
        why: "The number of CPUs doubles here, and quadruples in the paper.",
    },
    Claim {
        number: 15,
        text: "Pinning is always worse than virtual blocking, and crashes if CPUs are removed",
        figure: "hpdc-fig11",
        judge: |panels| pinning(&panels.iter().filter(|p| p.x == "CPUs").collect::<Vec<_>>()),
        why: "Linux moves a thread that is bound to a removed CPU to a remaining one.",
    },
    Claim {
        number: 16,
        text: "Virtual blocking cuts memcached's p95 and p99 by 92 % and 60 %",
        figure: "hpdc-fig12",
        judge: |panels| {
            let with_16 = |name: &str| {
                let of = |p: &Panel| Some(value(p, "lissom", "16")? / value(p, "native", "16")?);
                let wanted = panels.iter().filter(|p| p.title.starts_with("memcached-max"));
                let named = wanted.filter(|p| p.title.ends_with(name));
                geometric(&named.filter_map(of).collect::<Vec<_>>())
            };
            let (p95, p99) = (with_16("p95")?, with_16("p99")?);
            let seen = format!("p95 {}, p99 {} x native, 16 workers", number(p95), number(p99));
            judged(p95 <= 0.08 && p99 <= 0.4, seen)
        },
        why: "Here, p95 and p99 rise less natively.",
    },
    Claim {
        number: 17,
        text: "With busy-waiting detection, ten locks are near the baseline",
        figure: "hpdc-fig13",
        judge: |panels| near_bound(panels, 1.2),
        why: "A hand-over to a parked thread takes 0.5 to 1.2 us longer than one between two \
              spinning CPUs, which takes 2.6 to 3 us here. A waiter at the head of aqs's queue \
              writes to its own node, so most scans of it prove nothing.",
    },
    Claim {
        number: 18,
        text: "Pause-loop exiting does not help",
        figure: "",
        judge: |_| None,
        why: "No figure runs in a guest: that needs a host with kvm_intel or kvm_amd.",
    },
    Claim {
        number: 19,
        text: "lu and volrend are near the baseline, a little worse with more threads",
        figure: "hpdc-fig14",
        judge: |panels| near_bound(panels, 1.25),
        why: "A hand-over costs more than the work between two hand-overs.",
    },
    Claim {
        number: 20,
        text: "Sensitivity is at least 99.76 %",
        figure: "hpdc-table2",
        judge: |panels| {
            let all = series(titled(panels, "scans of waiting threads")?, "sensitivity %")?;
            let of = |bare: bool| {
                let kind = all.iter().filter(|l| l.0.ends_with("-bare") == bare);
                least(&kind.map(|l| l.1).collect::<Vec<_>>())
            };
            // The locks of the paper contain `pause`.
            let bare = of(true).map(|p| format!(", {} % without `pause`", closely(p)));
            let seen = format!("at least {{}} %{}", bare.unwrap_or_default());
            at_least(of(false), 99.76, &seen)
        },
        why: "Scans before and after the wait count as misses.",
    },
    Claim {
        number: 21,
        text: "Specificity is at least 99.38 %",
        figure: "hpdc-table3",
        judge: |panels| {
            let values = values(titled(panels, "scans of working threads")?, "specificity %")?;
            at_least(least(&values), 99.38, "at least {} %")
        },
        why: "",
    },
    Claim {
        number: 22,
        text: "Both mechanisms beat spin-then-park locks, by up to 5.4 times",
        figure: "hpdc-fig15",
        judge: |panels| {
            let panel = titled(panels, "programs")?;
            let of = |name| ratios(panel, name, "lissom");
            let others = ["mutexee", "mcs-tp", "shfllock"].into_iter().filter_map(of).flatten();
            let Spread { least, most, .. } = Spread::of(&others.collect::<Vec<_>>())?;
            judged(least >= 1.0, format!("{} to {} x as fast", number(least), number(most)))
        },
        why: "A mutex that spins in user space is cheap while its holder runs.",
    },
];
