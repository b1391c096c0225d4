//! The papers' claims, judged by the numbers of our figures: a later measurement may change a
//! verdict.

use super::figures::Source;
use super::panel::{Panel, Places, Side};
use super::shown::Shown;
use ui::number::{closely, number};

pub struct Claim {
    pub number: u32,
    pub source: Source,
    pub text: &'static str,
    /// The figure whose numbers decide. Empty: no figure of ours can.
    pub figure: &'static str,
    judge: fn(&[Panel]) -> Option<Judgement>,
    /// Why it was not reproduced, or cannot be decided here.
    pub why: &'static str,
}

/// Whether the claim holds, and the numbers that say so.
pub struct Judgement {
    pub holds: bool,
    pub seen: String,
}

pub enum Verdict {
    Yes(String),
    No(String),
    /// The figure was not measured, or lacks the numbers that decide.
    Open,
}

impl Claim {
    pub fn verdict(&self, list: &[Shown]) -> Verdict {
        let panels = list.iter().find(|s| s.figure.name == self.figure).map(|s| &s.panels[..]);
        match panels.and_then(self.judge) {
            Some(Judgement { holds: true, seen }) => Verdict::Yes(seen),
            Some(Judgement { holds: false, seen }) => Verdict::No(seen),
            None => Verdict::Open,
        }
    }
}

/// The claims that a figure decides.
pub fn of(figure: &str) -> impl Iterator<Item = &'static Claim> {
    CLAIMS.iter().filter(move |c| c.figure == figure)
}

/// The ways of running that stand for lissom at its default, in order of preference.
const LISSOM: [&str; 2] = ["auto", "user"];

/// Medians of the series `name`, by place. `lissom`: the first of `LISSOM` that the panel has.
fn series<'a>(panel: &'a Panel, name: &str) -> Option<Vec<(&'a str, f64)>> {
    let Places::Names(names) = &panel.places else { return None };
    let wanted: &[&str] = if name == "lissom" { &LISSOM } else { &[name] };
    let series = wanted.iter().find_map(|w| panel.series.iter().find(|s| s.name == *w))?;
    let point = |p: &super::panel::Point| Some((names.get(p.x as usize)?.as_str(), p.median));
    Some(series.points.iter().filter_map(point).collect())
}

fn titled<'a>(panels: &'a [Panel], title: &str) -> Option<&'a Panel> {
    panels.iter().find(|p| p.title.starts_with(title))
}

fn value(panel: &Panel, name: &str, place: &str) -> Option<f64> {
    series(panel, name)?.into_iter().find(|(n, _)| *n == place).map(|(_, v)| v)
}

/// Medians of the series `name` in all panels.
fn all(panels: &[Panel], name: &str) -> Vec<f64> {
    panels.iter().filter_map(|p| series(p, name)).flatten().map(|(_, v)| v).collect()
}

fn geometric(values: &[f64]) -> Option<f64> {
    let positive: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
    (!positive.is_empty())
        .then(|| (positive.iter().map(|v| v.ln()).sum::<f64>() / positive.len() as f64).exp())
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().max_by(f64::total_cmp)
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().min_by(f64::total_cmp)
}

fn judged(holds: bool, seen: String) -> Option<Judgement> {
    Some(Judgement { holds, seen })
}

/// One series over another, where both have a point.
fn ratios(panel: &Panel, name: &str, base: &str) -> Option<Vec<f64>> {
    let base = series(panel, base)?;
    let of = |(place, value): &(&str, f64)| {
        base.iter().find(|b| b.0 == *place && b.1 > 0.0).map(|b| value / b.1)
    };
    Some(series(panel, name)?.iter().filter_map(of).collect())
}

/// The gain of Fig. 10 with one CPU and with all of them, if both were measured.
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

fn at_most(of: Option<f64>, limit: f64, what: &str) -> Option<Judgement> {
    let of = of?;
    judged(of <= limit, what.replace("{}", &number(of)))
}

fn at_least(of: Option<f64>, limit: f64, what: &str) -> Option<Judgement> {
    let of = of?;
    judged(of >= limit, what.replace("{}", &closely(of)))
}

/// Judges claim 15. `panels`: those over numbers of CPUs. A program that crashed has no point.
fn pinning(panels: &[&Panel]) -> Option<Judgement> {
    let of = |p: &&Panel| ratios(p, "pinned", "lissom");
    let times: Vec<f64> = panels.iter().filter_map(of).flatten().collect();
    let count = |name| panels.iter().filter_map(|p| series(p, name)).flatten().count();
    let crashed = count("lissom").saturating_sub(count("pinned"));
    let (least, most) = (least(&times)?, most(&times)?);
    judged(
        least > 1.0 && crashed > 0,
        format!("{} to {} x lissom's time, {crashed} crashes", number(least), number(most)),
    )
}

pub const CLAIMS: &[Claim] = &[
    Claim {
        number: 1,
        source: Source::Hpdc,
        text: "The cost of a switch does not depend on the number of threads",
        figure: "hpdc-fig2",
        judge: |panels| {
            let values = series(titled(panels, "yield")?, "native")?;
            let several: Vec<f64> = values.iter().filter(|v| v.0 != "1").map(|v| v.1).collect();
            let ratio = most(&several)? / least(&several)?;
            judged(
                ratio <= 1.25,
                format!("{} to {} us", number(least(&several)?), number(most(&several)?)),
            )
        },
        why: "",
    },
    Claim {
        number: 2,
        source: Source::Hpdc,
        text: "A shared atomic adds nothing to the cost of a switch",
        figure: "hpdc-fig2",
        judge: |panels| {
            let values: Vec<f64> =
                series(titled(panels, "atomic")?, "native")?.iter().map(|v| v.1).collect();
            at_most(
                Some(most(&values)? / values.first()?),
                1.05,
                "at most {} x with several threads",
            )
        },
        why: "",
    },
    Claim {
        number: 3,
        source: Source::Hpdc,
        text: "The indirect cost of a switch is below 6 % at worst: 180 us in a slice of 3 ms, 1 \
               ms at 128 MiB",
        figure: "hpdc-fig4",
        judge: |panels| {
            let sequential = |p: &&Panel| p.title.starts_with("sequential-read");
            let values = all(panels.iter().find(sequential).map(std::slice::from_ref)?, "native");
            at_most(most(&values), 1000.0, "sequential reads: at most {} us a switch")
        },
        why: "",
    },
    Claim {
        number: 4,
        source: Source::Hpdc,
        text: "Switches make random access faster",
        figure: "hpdc-fig4",
        judge: |panels| {
            let random: Vec<f64> = panels
                .iter()
                .filter(|p| p.title.starts_with("random"))
                .filter_map(|p| series(p, "native"))
                .flatten()
                .map(|v| v.1)
                .collect();
            let least = least(&random)?;
            judged(least < 0.0, format!("at best {} us a switch", number(least)))
        },
        why: "",
    },
    Claim {
        number: 5,
        source: Source::Hpdc,
        text: "Most programs do not suffer from more threads than CPUs",
        figure: "hpdc-fig1",
        judge: |panels| {
            let values = all(panels, "native");
            let fine = values.iter().filter(|v| **v <= 1.1).count();
            (!values.is_empty()).then(|| Judgement {
                holds: fine * 2 > values.len(),
                seen: format!("{fine} of {} programs within 10 %", values.len()),
            })
        },
        why: "OpenMP's threads spin before they block.",
    },
    Claim {
        number: 6,
        source: Source::Hpdc,
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
        source: Source::Hpdc,
        text: "Virtual blocking makes a barrier 1.5 to 3 times as fast",
        figure: "hpdc-fig10",
        judge: |panels| gain(panels, "barrier", |g| g >= 1.5),
        why: "",
    },
    Claim {
        number: 8,
        source: Source::Hpdc,
        text: "Virtual blocking makes a condition variable 2.3 to 5 times as fast",
        figure: "hpdc-fig10",
        judge: |panels| gain(panels, "cond", |g| g >= 2.3),
        why: "",
    },
    Claim {
        number: 9,
        source: Source::Hpdc,
        text: "Virtual blocking does not speed up a mutex, and does no harm",
        figure: "hpdc-fig10",
        judge: |panels| gain(panels, "mutex", |g| g >= 0.95),
        why: "Any running thread can take glibc's mutex, so natively it is as fast as its bound.",
    },
    Claim {
        number: 10,
        source: Source::Hpdc,
        text: "With virtual blocking, programs are near the baseline of as many threads as CPUs",
        figure: "hpdc-fig9",
        judge: |panels| {
            at_most(geometric(&all(panels, "lissom")), 1.1, "{} x bound, geometric mean")
        },
        why: "Programs that wait some 100,000 times a second pay for each wait \
              (docs/design/switch.md).",
    },
    Claim {
        number: 11,
        source: Source::Hpdc,
        text: "Where virtual blocking cannot help, it costs at most 0.5 %",
        figure: "hpdc-fig9",
        judge: |panels| {
            let panel = titled(panels, "programs that hardly synchronize")?;
            at_most(
                geometric(&ratios(panel, "lissom", "native")?),
                1.005,
                "{} x native, geometric mean",
            )
        },
        why: "Not explained yet. It is seen with blackscholes, 8 threads, in runs of 0.15 s.",
    },
    Claim {
        number: 12,
        source: Source::Hpdc,
        text: "Virtual blocking cuts migrations by orders of magnitude",
        figure: "hpdc-table1",
        judge: |panels| {
            let panel = titled(panels, "migrations")?;
            at_least(
                geometric(&ratios(panel, "native", "lissom")?),
                10.0,
                "{} x fewer, geometric mean",
            )
        },
        why: "Not explained yet. With 2 CPUs, the kernel migrates few threads natively.",
    },
    Claim {
        number: 13,
        source: Source::Hpdc,
        text: "Virtual blocking raises CPU use",
        figure: "hpdc-table1",
        judge: |panels| {
            let panel = titled(panels, "CPU utilization")?;
            at_least(
                geometric(&ratios(panel, "lissom", "native")?),
                1.0,
                "{} x native, geometric mean",
            )
        },
        why: "Both CPUs are busy natively as well. lissom saves switches, not idle time.",
    },
    Claim {
        number: 14,
        source: Source::Hpdc,
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
        source: Source::Hpdc,
        text: "Pinning is always worse than virtual blocking, and crashes if CPUs are removed",
        figure: "hpdc-fig11",
        judge: |panels| pinning(&panels.iter().filter(|p| p.x == "CPUs").collect::<Vec<_>>()),
        why: "Linux moves a thread that is bound to a removed CPU to a remaining one.",
    },
    Claim {
        number: 16,
        source: Source::Hpdc,
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
        source: Source::Hpdc,
        text: "With busy-waiting detection, ten locks are near the baseline",
        figure: "hpdc-fig13",
        judge: |panels| {
            at_most(geometric(&all(panels, "lissom")), 1.2, "{} x bound, geometric mean")
        },
        why: "",
    },
    Claim {
        number: 18,
        source: Source::Hpdc,
        text: "Pause-loop exiting does not help",
        figure: "",
        judge: |_| None,
        why: "No figure runs in a guest: that needs a host with kvm_intel or kvm_amd.",
    },
    Claim {
        number: 19,
        source: Source::Hpdc,
        text: "lu and volrend are near the baseline, a little worse with more threads",
        figure: "hpdc-fig14",
        judge: |panels| {
            at_most(geometric(&all(panels, "lissom")), 1.25, "{} x bound, geometric mean")
        },
        why: "A hand-over costs more than the work between two hand-overs.",
    },
    Claim {
        number: 20,
        source: Source::Hpdc,
        text: "Sensitivity is at least 99.76 %",
        figure: "hpdc-table2",
        judge: |panels| {
            let all = series(titled(panels, "scans of waiting threads")?, "sensitivity %")?;
            let of = |bare: bool| {
                let kind = all.iter().filter(|l| l.0.ends_with("-bare") == bare);
                least(&kind.map(|l| l.1).collect::<Vec<_>>())
            };
            // The paper's locks pause.
            let bare = of(true).map(|p| format!(", {} % without `pause`", closely(p)));
            let seen = format!("at least {{}} %{}", bare.unwrap_or_default());
            at_least(of(false), 99.76, &seen)
        },
        why: "Scans before and after the wait count as misses.",
    },
    Claim {
        number: 21,
        source: Source::Hpdc,
        text: "Specificity is at least 99.38 %",
        figure: "hpdc-table3",
        judge: |panels| {
            let panel = titled(panels, "scans of working threads")?;
            let all = all(std::slice::from_ref(panel), "specificity %");
            at_least(least(&all), 99.38, "at least {} %")
        },
        why: "",
    },
    Claim {
        number: 22,
        source: Source::Hpdc,
        text: "Both mechanisms beat spin-then-park locks, by up to 5.4 times",
        figure: "hpdc-fig15",
        judge: |panels| {
            let best = |panel: &Panel| {
                let of = |name| ratios(panel, name, "lissom");
                let others: Vec<f64> = ["mutexee", "mcs-tp", "shfllock"]
                    .into_iter()
                    .filter_map(of)
                    .flatten()
                    .collect();
                Some((least(&others)?, most(&others)?))
            };
            let (least, most) = best(titled(panels, "programs")?)?;
            judged(least >= 1.0, format!("{} to {} x as fast", number(least), number(most)))
        },
        why: "A mutex that spins in user space is cheap while its holder runs.",
    },
    Claim {
        number: 23,
        source: Source::Apple,
        text: "The best window depends on the program",
        figure: "apple-fig1",
        judge: |panels| {
            let panel = panels.first()?;
            let best = |name: &str| {
                let values = series(panel, name)?;
                values.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|v| v.0)
            };
            let (a, b) = (best("dbench")?, best("streamcluster")?);
            judged(a != b, format!("dbench {a}, streamcluster {b}"))
        },
        why: "",
    },
    Claim {
        number: 24,
        source: Source::Apple,
        text: "APPLE is within 2 % of the best fixed window with two VMs",
        figure: "apple-fig3",
        judge: |panels| {
            let panel = panels.first()?;
            let mean = |name| value(panel, name, "geometric mean");
            let part = 100.0 * mean("APPLE")? / mean("best fixed")?;
            at_least(Some(part), 98.0, "{} % of the best, geometric mean")
        },
        why: "The best windows of dedup and dbench are far from 8192, where APPLE starts.",
    },
    Claim {
        number: 25,
        source: Source::Apple,
        text: "APPLE halves dbench's inefficiency against KVM's default",
        figure: "apple-fig5",
        judge: |panels| {
            let panel = panels.first()?;
            let ratio = value(panel, "dbench", "APPLE")? / value(panel, "dbench", "default")?;
            at_most(Some(ratio), 0.55, "{} x the default's")
        },
        why: "In the model, even the best fixed window has 0.65 times the default's inefficiency. \
              The default's window swings less than in the paper.",
    },
    Claim {
        number: 26,
        source: Source::Apple,
        text: "With one VM, APPLE and the default are within 2 %",
        figure: "own-ple-one-vm",
        judge: |panels| {
            let least = least(&ratios(panels.first()?, "apple", "kvm")?)?;
            at_least(Some(100.0 * least), 98.0, "at least {} % of the default's")
        },
        why: "Only `ticket` is outside of 2 %. All its 16 vCPUs wait for one lock, and its best \
              window is above APPLE's upper bound of 32768.",
    },
    Claim {
        number: 27,
        source: Source::Smt,
        text: "HaltPoll cuts context switches by 25 to 78 %",
        figure: "smt-table2",
        judge: |panels| {
            let panel = titled(panels, "against vanilla")?;
            let ratios: Vec<f64> = series(panel, "haltpoll")?.iter().map(|r| r.1).collect();
            at_most(geometric(&ratios), 0.75, "{} x vanilla's, geometric mean")
        },
        why: "",
    },
    Claim {
        number: 28,
        source: Source::Smt,
        text: "IdlePoll hurts neighbours that compute",
        figure: "smt-fig3",
        judge: |panels| {
            let panel = titled(panels, "the one that computes")?;
            at_most(
                geometric(&ratios(panel, "poll", "sleep")?),
                0.98,
                "{} x the throughput beside `sleep`",
            )
        },
        why: "lissom polls only while no other program wants the CPU (docs/polling.md).",
    },
    Claim {
        number: 29,
        source: Source::Em,
        text: "The manager gains 24.5 % of system throughput over fixed halves",
        figure: "em-fig4",
        judge: |panels| {
            let stp = value(titled(panels, "system throughput")?, "manager", "geometric mean");
            at_least(stp, 1.2, "STP {}, stock = 1")
        },
        why: "On 2 CPUs, N has one thread, which always runs, so its half is never idle.",
    },
    Claim {
        number: 30,
        source: Source::Em,
        text: "The non-malleable program keeps its speed within 2 %",
        figure: "em-fig4",
        judge: |panels| {
            let panel = titled(panels, "the non-malleable program (N)")?;
            let n = value(panel, "manager", "geometric mean");
            at_least(n, 0.98, "its speed {}, stock = 1")
        },
        why: "",
    },
    Claim {
        number: 31,
        source: Source::Em,
        text: "A cap on the malleable program spares the other one and costs throughput",
        figure: "em-fig5",
        judge: |panels| {
            let panel = panels.first()?;
            let of = |title| series(panel, title);
            let (n, stp) = (of("the non-malleable program (N)")?, of("system throughput")?);
            // From the highest cap to the lowest.
            let change = |s: &[(&str, f64)]| Some(s.last()?.1 / s.first()?.1);
            let (n, stp) = (change(&n)?, change(&stp)?);
            let seen = format!(
                "N {} x, STP {} x from the highest cap to the lowest",
                number(n),
                number(stp)
            );
            judged(n > 1.02 && stp < 0.98, seen)
        },
        why: "On 2 CPUs, M has one CPU beside N's thread with any cap.",
    },
];

#[cfg(test)]
mod tests {
    use super::super::figures;
    use super::super::panel::Point;
    use super::*;

    #[test]
    fn there_are_31_and_each_names_a_figure() {
        assert!(CLAIMS.iter().map(|c| c.number).eq(1..=31));
        for claim in CLAIMS {
            let is_open = claim.figure.is_empty();
            assert!(is_open || figures::all().any(|f| f.name == claim.figure), "{}", claim.figure);
            assert!(!is_open || !claim.why.is_empty());
        }
    }

    #[test]
    fn locks_that_pause_decide_on_sensitivity() {
        let names = vec!["mcs".to_string(), "mcs-bare".into()];
        let mut panel = Panel::named("scans of waiting threads", "lock", "", names, false);
        panel.add("sensitivity %", Point::one(0.0, 99.98));
        panel.add("sensitivity %", Point::one(1.0, 80.0));
        let judgement = (CLAIMS[19].judge)(&[panel]).expect("a judgement");
        assert!(judgement.holds);
        assert_eq!(judgement.seen, "at least 99.98 %, 80.0 % without `pause`");
    }

    #[test]
    fn numbers_decide() {
        let places = vec!["1".to_string(), "2".into(), "64".into()];
        let panel = |last: f64| {
            let mut panel = Panel::named("yield", "threads", "us", places.clone(), false);
            for (i, value) in [1.0, 2.4, last].into_iter().enumerate() {
                panel.add("native", Point { side: Side::Exact, ..Point::one(i as f64, value) });
            }
            vec![panel]
        };
        let holds = |last| (CLAIMS[0].judge)(&panel(last)).map(|j| j.holds);
        assert_eq!((holds(2.5), holds(9.0)), (Some(true), Some(false)));
        assert!((CLAIMS[0].judge)(&[]).is_none());
    }
}
