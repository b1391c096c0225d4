//! `lissom sched status`: the running scheduler, its counts and its sites.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::audit::Scans;
use super::branches::Hardware;
use super::find::{self, Running};
use super::layout::{Config, Counts, Detector, Site, SiteInfo};
use super::{load, refuse, report, sites, stop};
use os::place::Places;
use os::process;
use os::sched_ext::SchedExt;

/// Show which sched_ext scheduler runs, and what lissom's has done
///
/// Root sees the counts and sites of lissom's scheduler; other users only see that it runs.
#[derive(Args)]
#[command(after_long_help = "\
Sites are the instructions where threads may busy-wait. VERDICT says whether
threads are preempted there (spins) or not (works, unknown), SEEN how often a
thread was found there before the verdict, and KICKS how often one was
preempted.

Times in the JSON document are in ns.

With --detector=paper, a table of programs has the columns of the paper's
Tables 2 and 3. TRIES are scans, POSITIVE those that took the thread to spin,
TRUE and FALSE those whose loop was proven later to spin or to work; the rest
is undecided. SENS % is POSITIVE / TRIES: the sensitivity, if the program only
spins. SPEC % is 1 - (POSITIVE - TRUE) / TRIES: the specificity.

Exit code: 0 if lissom's scheduler runs, 1 if another one or none runs, or if
it is not visible.

Examples:
  lissom sched status
  lissom sched status --json | jq .counts")]
pub struct StatusArgs {
    #[command(flatten)]
    json: ui::output::Json,
}

/// Number of sites shown, those with the most kicks; the JSON has all.
const SITES_SHOWN: usize = 8;

/// Number of programs shown, those with the most scans.
const PROGRAMS_SHOWN: usize = 5;

/// State of lissom's scheduler, as read from its maps.
pub struct Seen {
    pub pid: u32,
    pub uptime_s: f64,
    pub config: Config,
    pub detector: Detector,
    pub counts: Counts,
    /// None unless the detector is the paper's.
    pub scans: Option<Scans>,
    /// Sorted by kicks, most first.
    pub sites: Vec<(Site, SiteInfo)>,
}

impl Seen {
    pub fn look(running: &Running) -> anyhow::Result<Seen> {
        let mut sites = sites::all(&running.map(load::SITES)?);
        sites.sort_by_key(|(site, info)| (std::cmp::Reverse((info.kicks, info.seen)), *site));
        let counts = load::counts(&running.map(load::COUNTS)?)?;
        let scans = match running.state.detector {
            Detector::Paper => Some(Scans::read(|name| running.map(name))?),
            _ => None,
        };
        Ok(Seen {
            pid: running.state.pid,
            uptime_s: process::monotonic()
                .saturating_sub(Duration::from_nanos(running.state.started))
                .as_secs_f64(),
            config: running.state.config,
            detector: running.state.detector,
            counts,
            scans,
            sites,
        })
    }
}

/// Returns the exit code.
pub fn status(args: &StatusArgs) -> anyhow::Result<i32> {
    let output = args.json.open()?;
    let now = match refuse::kernel() {
        Ok(now) => now,
        Err(error) => {
            if args.json.is_given() {
                output.write(|| ui::output::json(&document(None, None)), String::new)?;
            }
            return Err(error);
        }
    };
    let is_ours = !now.is_off() && now.scheduler.as_deref() == Some(load::NAME);
    let seen = match is_ours {
        true => find::running().and_then(|r| r.map(|r| Seen::look(&r)).transpose()),
        false => Ok(None),
    };
    let known = seen.as_ref().ok().and_then(Option::as_ref);
    output.write(|| ui::output::json(&document(Some(&now), known)), || table(&now, known))?;
    if let Err(error) = seen {
        ui::message!("lissom: {error:#}");
    }
    Ok(if is_ours { 0 } else { 1 })
}

/// seen: None if lissom's scheduler does not run or cannot be read; its fields are then null.
fn document(now: Option<&SchedExt>, seen: Option<&Seen>) -> Value {
    let mut places = Places::default();
    let mut sites = |all: &[(Site, SiteInfo)]| -> Vec<Value> {
        all.iter().map(|(site, info)| report::site_document(*site, info, &mut places)).collect()
    };
    json!({
        "state": now.map(|n| &n.state),
        "scheduler": now.and_then(|n| n.scheduler.as_ref()),
        "switch_all": now.map(|n| n.switch_all),
        "nr_rejected": now.map(|n| n.nr_rejected),
        "hotplug_seq": now.map(|n| n.hotplug_seq),
        "enable_seq": now.map(|n| n.enable_seq),
        "pid": seen.map(|s| s.pid),
        "uptime_s": seen.map(|s| report::thousandths(s.uptime_s)),
        "config": seen.map(|s| s.config),
        "counts": seen.map(|s| s.counts),
        "rates": seen.map(|s| report::rates(&s.counts, s.uptime_s)),
        "detector": seen.map(|s| report::detector(&s.config, s.detector)),
        "hardware": seen.map(|_| Hardware::probe()),
        "scans": seen.and_then(|s| s.scans.as_ref()).map(Scans::document),
        "sites": seen.map(|s| sites(&s.sites)),
    })
}

fn table(now: &SchedExt, seen: Option<&Seen>) -> String {
    let mut lines = vec![match (&now.scheduler, now.is_off()) {
        (Some(name), false) => format!("sched_ext: {}, {name}", now.state),
        _ => format!("sched_ext: {}; {}", now.state, stop::who(now)),
    }];
    if !now.is_off() {
        let whose = if now.switch_all { "all threads" } else { "SCHED_EXT threads only" };
        lines.push(format!(
            "{whose}; {} rejected, {} CPUs came or went, {} schedulers since boot",
            now.nr_rejected, now.hotplug_seq, now.enable_seq
        ));
    }
    let Some(seen) = seen else { return lines.join("\n") + "\n" };
    lines.push(format!(
        "process {}, for {:.0} s: {}",
        seen.pid,
        seen.uptime_s,
        report::config_text(&seen.config)
    ));
    lines.push(detector_line(report::detector(&seen.config, seen.detector), &Hardware::probe()));
    lines.push(String::new());
    lines.extend(report::counts_table(&seen.counts, seen.uptime_s, &seen.counts));
    lines.push(String::new());
    if let Some(scans) = &seen.scans {
        lines.extend(scans.table(PROGRAMS_SHOWN));
        lines.push(String::new());
    }
    if seen.sites.is_empty() {
        lines.push("no site where a thread busy-waits".into());
    } else {
        let (mut places, kicks) = (Places::default(), |_, kicks| report::whole(kicks));
        let most = SITES_SHOWN;
        lines.extend(report::sites_table(&seen.sites, most, &mut places, "KICKS", kicks));
    }
    lines.join("\n") + "\n"
}

/// Name the detector, and what this machine's counters support.
fn detector_line(detector: &str, hardware: &Hardware) -> String {
    let names = hardware.names(true).join(", ");
    match names.as_str() {
        "" => format!("detector: {detector} (no CPU counters here)"),
        _ if matches!(detector, "branches" | "paper") => format!("detector: {detector} ({names})"),
        _ => format!("detector: {detector} (not used: {names})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::Verdict;

    fn now() -> SchedExt {
        SchedExt {
            state: "enabled".into(),
            scheduler: Some("lissom".into()),
            switch_all: true,
            nr_rejected: 0,
            hotplug_seq: 0,
            enable_seq: 1,
        }
    }

    fn seen() -> Seen {
        let gone = u32::MAX >> 1;
        let info = SiteInfo::new(Verdict::Spins, 3, 12_345);
        Seen {
            pid: 77,
            uptime_s: 2.0,
            config: Config { slice_ns: 3_000_000, sample_ns: 100_000, ..Config::default() },
            detector: Detector::Branches,
            counts: Counts { wakeups: 20, ..Counts::default() },
            scans: None,
            sites: (0..12).map(|i| (Site::new(gone, i), info)).collect(),
        }
    }

    #[test]
    fn texts() {
        let text = table(&now(), Some(&seen()));
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(text.lines().count() <= 30, "{text}");
        assert!(text.starts_with("sched_ext: enabled, lissom\nall threads; "), "{text}");
        assert!(
            text.contains("process 77, for 2 s: slice 3 ms") && text.ends_with("... and 4 more\n"),
            "{text}"
        );
        let off = SchedExt { state: "disabled".into(), scheduler: None, ..now() };
        assert_eq!(table(&off, None), "sched_ext: disabled; the kernel's own scheduler runs\n");
    }

    #[test]
    fn documents() {
        let document = document(Some(&now()), Some(&seen()));
        assert_eq!((&document["state"], &document["pid"]), (&json!("enabled"), &json!(77)));
        assert_eq!(
            (&document["counts"]["wakeups"], &document["rates"]["wakeups"]),
            (&json!(20), &json!(10.0))
        );
        assert_eq!(
            (&document["detector"], &document["config"]["sample_ns"]),
            (&json!("branches"), &json!(100_000))
        );
        let site = &document["sites"][1];
        assert_eq!(
            (&site["ip"], &site["verdict"], &site["kicks"]),
            (&json!(1), &json!("spins"), &json!(12_345))
        );
        assert_eq!(
            (&site["comm"], &site["hits"], &site["place"]),
            (&json!("?"), &json!(3), &Value::Null)
        );
        let nothing = super::document(None, None);
        assert_eq!((&nothing["state"], &nothing["counts"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn detectors() {
        let none = Hardware { branches: false, l1d_misses: false, dtlb_misses: false };
        assert_eq!(detector_line("registers", &none), "detector: registers (no CPU counters here)");
        let some = Hardware { branches: true, ..none };
        assert_eq!(detector_line("off", &some), "detector: off (not used: last-branch records)");
        assert_eq!(detector_line("branches", &some), "detector: branches (last-branch records)");
    }
}
