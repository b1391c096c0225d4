//! The claims of the papers on APPLE, idle polling and the elasticity manager.

use super::{
    Claim, at_least, at_most, geometric, judged, least, mean_ratio, number, ratios, series, titled,
    value, values,
};

pub const APPLE: &[Claim] = &[
    Claim {
        number: 23,
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
        text: "APPLE halves dbench's inefficiency against KVM's default",
        figure: "apple-fig5",
        judge: |panels| {
            let panel = panels.first()?;
            let ratio = value(panel, "dbench", "APPLE")? / value(panel, "dbench", "default")?;
            at_most(Some(ratio), 0.55, "{} x the default's")
        },
        why: "In the model, even the best fixed window has 0.65 times the default's inefficiency.",
    },
    Claim {
        number: 26,
        text: "With one VM, APPLE and the default are within 2 %",
        figure: "own-ple-one-vm",
        judge: |panels| {
            let least = least(&ratios(panels.first()?, "apple", "kvm")?)?;
            at_least(Some(100.0 * least), 98.0, "at least {} % of the default's")
        },
        why: "Only `ticket` is outside of 2 %. All its 16 vCPUs wait for one lock, and its best \
              window is above APPLE's upper bound of 32768.",
    },
];

pub const SMT: &[Claim] = &[
    Claim {
        number: 27,
        text: "HaltPoll cuts context switches by 25 to 78 %",
        figure: "smt-table2",
        judge: |panels| {
            let panel = titled(panels, "against vanilla")?;
            let ratio = geometric(&values(panel, "haltpoll")?);
            at_most(ratio, 0.75, "{} x vanilla's, geometric mean")
        },
        why: "Beside a program that computes no CPU is idle, so no policy polls \
              (docs/design/idle-polling.md). dbench and PostgreSQL have one thread a process and \
              run natively.",
    },
    Claim {
        number: 28,
        text: "IdlePoll hurts neighbours that compute",
        figure: "smt-fig3",
        judge: |panels| {
            let panel = titled(panels, "the one that computes")?;
            let ratio = mean_ratio(panel, "poll", "sleep");
            at_most(ratio, 0.98, "{} x the throughput beside `sleep`")
        },
        why: "lissom polls only while no other program wants the CPU \
              (docs/design/idle-polling.md).",
    },
];

pub const EM: &[Claim] = &[
    Claim {
        number: 29,
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
        text: "A cap on the malleable program spares the other one and costs throughput",
        figure: "em-fig5",
        judge: |panels| {
            let panel = panels.first()?;
            let change = |name| {
                let by_cap = values(panel, name)?;
                Some(by_cap.last()? / by_cap.first()?)
            };
            let n = change("the non-malleable program (N)")?;
            let stp = change("system throughput")?;
            let (shown_n, shown_stp) = (number(n), number(stp));
            let seen =
                format!("N {shown_n} x, STP {shown_stp} x from the highest cap to the lowest");
            judged(n > 1.02 && stp < 0.98, seen)
        },
        why: "On 2 CPUs, M has one CPU beside N's thread with any cap.",
    },
];
