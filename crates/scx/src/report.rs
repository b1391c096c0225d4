//! Counts and configuration of the scheduler, as text and as JSON.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::layout::{CODE_LIMIT, Config, Counts, Detector, Exit, Site, SiteInfo};
use os::place::{Place, Places, program};
use ui::terminal::short;

/// A description of each count, in the order of Counts::NAMES. `spin_ns` is shown in seconds.
const MEANINGS: &[&str] = &[
    "threads that had to wait for their turn",
    "threads for which a CPU was idle",
    "threads taken from another CPU's queue",
    "scans of threads whose CPU others want",
    "of these, scans that preempted a busy-waiter",
    "CPU time seen to be wasted by busy-waiting, s",
    "threads parked instead of sleeping",
    "of these, woken while parked",
    "of these, had to sleep after all",
    "of spin_kicks, vCPUs, by PAUSEs of their guests",
    "of spin_kicks, found only by branch records",
    "woken in bulk, stayed although a CPU was idle",
    "scans by the paper's rule",
    "of these, scans that took the thread to spin",
];

/// Counts of the paper's detector only; hidden while they are 0.
const OF_SCANS: [&str; 2] = ["tries", "positives"];

/// Format in the largest unit that leaves a whole number: "3 ms", "100 us".
pub fn duration(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.into_iter().find(|(size, _)| ns != 0 && ns.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{} {unit}", ns / size),
        None => format!("{ns} ns"),
    }
}

/// The settings as text: "slice 3 ms, scans every 100 us".
pub fn config_text(config: &Config) -> String {
    let mut parts = vec![format!("slice {}", duration(config.slice_ns))];
    parts.push(match config.sample_ns {
        0 => "no scans".into(),
        ns => format!("scans every {}", duration(ns)),
    });
    if config.is_partial != 0 {
        parts.push("only SCHED_EXT threads".into());
    }
    if config.ignore_limits != 0 {
        parts.push("cpu.max not enforced".into());
    }
    if config.stall != 0 {
        parts.push("fault: stall".into());
    }
    if config.made_up != 0 {
        parts.push("fault: made-up records".into());
    }
    parts.join(", ")
}

/// Name of the detector in use, or "off".
pub fn detector(config: &Config, detector: Detector) -> &'static str {
    match detector {
        _ if config.sample_ns == 0 => "off",
        Detector::Registers => "registers",
        Detector::Branches => "branches",
        Detector::Paper => "paper",
    }
}

/// Round for JSON.
pub fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Format in at most five characters.
pub fn whole(n: u64) -> String {
    if n < 10_000 { n.to_string() } else { short(n as f64) }
}

/// Returns a header, and for each count a line with its rate per second, its total and a
/// description.
pub fn counts_table(rates: &Counts, seconds: f64, total: &Counts) -> Vec<String> {
    let mut lines = vec![format!("{:<14}{:>6}{:>9}", "", "/S", "TOTAL")];
    let values = rates.values().into_iter().zip(total.values());
    for ((name, (rate, total)), meaning) in Counts::NAMES.iter().zip(values).zip(MEANINGS) {
        if total == 0 && OF_SCANS.contains(name) {
            continue;
        }
        let (name, unit) = if *name == "spin_ns" { ("spin_s", 1e-9) } else { (*name, 1.0) };
        let rate = if seconds > 0.0 { short(rate as f64 * unit / seconds) } else { "-".into() };
        let total = if unit == 1.0 { whole(total) } else { short(total as f64 * unit) };
        lines.push(format!("{name:<14}{rate:>6}{total:>9}  {meaning}"));
    }
    lines
}

/// Format rates per second as one line, for `--stats`.
pub fn counts_line(since: &Counts, seconds: f64, sites: usize) -> String {
    let rate = |n: u64| short(n as f64 / seconds.max(1e-9));
    format!(
        "per second: {} waits, {} idle CPUs, {} steals, {} scans, {} spins; {} of a CPU wasted; {sites} sites",
        rate(since.wakeups),
        rate(since.idle_picks),
        rate(since.steals),
        rate(since.samples),
        rate(since.spin_kicks),
        rate(since.spin_ns / 10_000_000).to_string() + " %",
    )
}

/// Each count per second.
pub fn rates(counts: &Counts, seconds: f64) -> Value {
    let rate = |n: u64| if seconds > 0.0 { thousandths(n as f64 / seconds) } else { 0.0 };
    let each = Counts::NAMES.iter().zip(counts.values());
    Value::Object(each.map(|(name, n)| (name.to_string(), json!(rate(n)))).collect::<Map<_, _>>())
}

pub fn site_document(site: Site, info: &SiteInfo, places: &mut Places) -> Value {
    json!({
        "pid": site.pid,
        "comm": program(site.pid),
        "ip": site.ip,
        "place": places.of(site.pid, site.ip).map(Place::text),
        "verdict": info.verdict,
        "hits": info.seen,
        "kicks": info.kicks,
    })
}

/// Returns a header, a line for each of the first `most` sites, and the number of the others.
/// `head` names the column `kicks`: a rate or a total.
pub fn sites_table(
    sites: &[(Site, SiteInfo)],
    most: usize,
    places: &mut Places,
    head: &str,
    kicks: impl Fn(Site, u64) -> String,
) -> Vec<String> {
    let mut lines = vec![site_row("PID", "PROGRAM", "VERDICT", "SEEN", head, "WHERE")];
    let shown = sites.iter().take(most);
    lines.extend(shown.map(|(s, info)| site_line(*s, info, &kicks(*s, info.kicks), places)));
    if sites.len() > most {
        lines.push(format!("... and {} more", sites.len() - most));
    }
    lines
}

fn site_line(site: Site, info: &SiteInfo, kicks: &str, places: &mut Places) -> String {
    let place = places.of(site.pid, site.ip).map_or(format!("{:#x}", site.ip), Place::text);
    let seen = whole(info.seen);
    site_row(&site.pid.to_string(), &program(site.pid), info.verdict.name(), &seen, kicks, &place)
}

/// At most 80 columns; longer places are cut.
fn site_row(
    pid: &str,
    program: &str,
    verdict: &str,
    seen: &str,
    kicks: &str,
    place: &str,
) -> String {
    let row = format!("{pid:>7} {program:<15.15} {verdict:<7} {seen:>5} {kicks:>7}  ");
    let room = 80 - row.chars().count();
    row + &place.chars().take(room).collect::<String>()
}

/// Returns why the scheduler ended by itself, and what to do.
pub fn end_text(exit: &Exit, timeout: Duration) -> String {
    let said = match (exit.reason.is_empty(), exit.message.is_empty()) {
        (false, false) => format!("{} ({})", exit.reason, exit.message),
        (false, true) => exit.reason.clone(),
        _ => format!("kind {}, code {}", exit.kind, exit.code),
    };
    // Numbers of the kernel's enum scx_exit_kind.
    let help = match exit.kind {
        65 if exit.code == CODE_LIMIT => {
            "only the kernel's own scheduler enforces CPU limits; --ignore-cpu-max runs without them".into()
        }
        67 => "SysRq-S was pressed".into(),
        1026 => {
            format!(
                "a runnable thread did not run for {}; --timeout sets the limit",
                duration(timeout.as_nanos() as u64)
            )
        }
        _ => "dmesg may have details".to_string(),
    };
    format!("{said}: {help}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::Verdict;

    #[test]
    fn times() {
        let texts = [0, 1, 1_500, 100_000, 3_000_000, 2_000_000_000].map(duration);
        assert_eq!(texts, ["0 ns", "1 ns", "1500 ns", "100 us", "3 ms", "2 s"]);
    }

    #[test]
    fn settings() {
        let config = Config { slice_ns: 3_000_000, sample_ns: 100_000, ..Config::default() };
        assert_eq!(config_text(&config), "slice 3 ms, scans every 100 us");
        let config = Config { sample_ns: 0, is_partial: 1, ignore_limits: 1, ..config };
        assert_eq!(
            config_text(&config),
            "slice 3 ms, no scans, only SCHED_EXT threads, cpu.max not enforced"
        );
        assert_eq!(detector(&config, Detector::Branches), "off");
    }

    #[test]
    fn tables_fit() {
        assert_eq!(MEANINGS.len(), Counts::NAMES.len());
        let many = u64::MAX / 2;
        let counts: Counts = zerocopy::transmute!([many; Counts::NAMES.len()]);
        let lines = counts_table(&counts, 1.0, &counts);
        assert_eq!(lines.len(), 1 + Counts::NAMES.len());
        let counts = Counts { wakeups: 20, spin_ns: 3_000_000_000, ..Counts::default() };
        let lines = counts_table(&counts, 2.0, &counts);
        assert_eq!(
            lines[1],
            "wakeups           10       20  threads that had to wait for their turn"
        );
        assert_eq!(
            lines[6],
            "spin_s           1.5      3.0  CPU time seen to be wasted by busy-waiting, s"
        );
        assert!(lines.iter().all(|l| l.chars().count() <= 80), "{lines:?}");
        let (site, mut places) = (Site::new(u32::MAX >> 1, 16), Places::default());
        let info = SiteInfo::new(Verdict::Unknown, 5, 0);
        assert_eq!(
            site_line(site, &info, "0", &mut places),
            "2147483647 ?               unknown     5       0  0x10"
        );
        assert!(site_row("1", "a", "spins", "1", "1", &"x".repeat(200)).len() == 80);
        assert!(sites_table(&[], 1, &mut places, "KICKS/S", |_, _| String::new())[0].len() <= 80);
    }

    #[test]
    fn lines() {
        let since =
            Counts { wakeups: 20, spin_ns: 500_000_000, spin_kicks: 5000, ..Counts::default() };
        assert_eq!(
            counts_line(&since, 2.0, 3),
            "per second: 10 waits, 0 idle CPUs, 0 steals, 0 scans, 2500 spins; 25 % of a CPU wasted; 3 sites"
        );
        assert_eq!(rates(&since, 2.0)["spin_kicks"], 2500.0);
        assert_eq!(rates(&since, 0.0)["wakeups"], 0.0);
    }

    #[test]
    fn ends() {
        let exit = |kind, code, message: &str| Exit {
            kind,
            code,
            reason: "why".into(),
            message: message.into(),
        };
        let text = |e: Exit| end_text(&e, Duration::from_secs(5));
        assert!(
            text(exit(1026, 0, "x")).starts_with("why (x): a runnable thread did not run for 5 s")
        );
        assert!(text(exit(65, 1, "")).contains("--ignore-cpu-max"));
        assert!(text(exit(67, 0, "")).contains("SysRq-S"));
        assert_eq!(text(exit(1024, 0, "")), "why: dmesg may have details");
        assert!(text(Exit { reason: String::new(), ..exit(1024, 0, "") }).starts_with("kind 1024"));
    }
}
