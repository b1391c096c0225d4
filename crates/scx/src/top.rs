//! `lissom sched top`: a live view of the scheduler's counts and sites.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use ui::time::Unit;

use super::layout::Site;
use super::status::Seen;
use super::{find, load, refuse, report, stop};
use os::place::Places;
use os::stop::Stop;
use ui::terminal;

/// Show live counts of lissom's scheduler
///
/// Shows counts a second, and the sites with the most preemptions; `lissom sched status --help`
/// explains both. Needs root.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0, or 1 if lissom's scheduler does not run or has ended.

Examples:
  lissom sched top
  lissom sched top --interval 10s --json >> counts.jsonl")]
pub struct TopArgs {
    /// Time between two reports
    #[arg(long, value_name = "TIME", default_value = "1s",
          value_parser = ui::time::parser(Unit::S, "100ms", "24h"))]
    interval: Duration,

    /// Number of reports [default: until a signal]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    #[command(flatten)]
    json: ui::output::JsonLines,
}

/// Returns the exit code.
pub fn top(args: &TopArgs) -> anyhow::Result<i32> {
    let mut output = args.json.open()?;
    let now = refuse::kernel()?;
    let running = find::running()?;
    let running =
        running.with_context(|| format!("lissom's scheduler does not run: {}", stop::who(&now)))?;
    let stop = Stop::on_signals()?;
    let is_live = io::stdout().is_terminal();
    let mut places = Places::default();
    let (mut before, mut last) = (Seen::look(&running)?, Instant::now());
    for _ in 0..args.count.unwrap_or(u64::MAX) {
        stop.wait(last + args.interval);
        if stop.asked() {
            break;
        }
        if !running.is_alive() {
            bail!("the scheduler of process {} has ended", running.state.pid);
        }
        let (seen, now) = (Seen::look(&running)?, Instant::now());
        let rows = if is_live { terminal::rows() } else { usize::MAX };
        let seconds = (now - last).as_secs_f64();
        let table = table(&before, &seen, seconds, rows, &mut places);
        let text = if is_live { format!("\x1b[H\x1b[2J{table}") } else { table + "\n" };
        output.line(|| document(&before, &seen, seconds), || text)?;
        (before, last) = (seen, now);
    }
    Ok(0)
}

fn document(before: &Seen, seen: &Seen, seconds: f64) -> Value {
    let mut places = Places::default();
    let sites = seen.sites.iter().map(|(s, info)| report::site_document(*s, info, &mut places));
    json!({
        "pid": seen.pid,
        "uptime_s": (seen.uptime_s * 1000.0).round() / 1000.0,
        "seconds": (seconds * 1000.0).round() / 1000.0,
        "counts": seen.counts.since(before.counts),
        "total": seen.counts,
        "sites": sites.collect::<Vec<_>>(),
    })
}

/// Returns at most `rows` lines, but always the counts and one site.
fn table(before: &Seen, seen: &Seen, seconds: f64, rows: usize, places: &mut Places) -> String {
    let config = report::config_text(&seen.config);
    let head =
        format!("{}, process {}, for {:.0} s: {config}", load::NAME, seen.pid, seen.uptime_s);
    let mut lines = vec![head.chars().take(80).collect()];
    lines.extend(report::counts_table(&seen.counts.since(before.counts), seconds, &seen.counts));
    let old: HashMap<Site, u64> =
        before.sites.iter().map(|(site, info)| (*site, info.kicks)).collect();
    let kicks = |site: Site, all: u64| all - old.get(&site).map_or(0, |&old| old.min(all));
    let rate = |site, all| terminal::short(kicks(site, all) as f64 / seconds);
    let mut sites = seen.sites.clone();
    sites.sort_by_key(|(site, info)| {
        std::cmp::Reverse((kicks(*site, info.kicks), info.kicks, info.seen))
    });
    let room = rows.saturating_sub(lines.len() + 3).max(1);
    lines.extend(report::sites_table(&sites, room, places, "KICKS/S", rate));
    if sites.is_empty() {
        lines.push("no site yet where a thread busy-waits".into());
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Config, Counts, Detector, SiteInfo};
    use judge::Verdict;

    fn seen(wakeups: u64, kicks: &[u64]) -> Seen {
        let site = |(i, &kicks): (usize, &u64)| {
            (Site::new(u32::MAX >> 1, i as u64), SiteInfo::new(Verdict::Spins, 3, kicks))
        };
        Seen {
            pid: 77,
            uptime_s: 2.0,
            config: Config {
                slice_ns: 3_000_000,
                sample_ns: 100_000,
                is_partial: 1,
                ..Config::default()
            },
            detector: Detector::Registers,
            counts: Counts { wakeups, ..Counts::default() },
            scans: None,
            sites: kicks.iter().enumerate().map(site).collect(),
        }
    }

    #[test]
    fn tables() {
        let mut places = Places::default();
        let text = table(&seen(10, &[5, 0]), &seen(30, &[6, 100, 7]), 2.0, 24, &mut places);
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(text.contains("wakeups           10       30  "), "{text}");
        let order: Vec<&str> = text.lines().rev().take(3).collect();
        assert!(order[2].ends_with("     50  0x1") && order[1].ends_with("    3.5  0x2"), "{text}");
        // The table fits a screen of 24 lines without scrolling.
        let many = seen(0, &[1; 100]);
        let text = table(&many, &many, 1.0, 24, &mut places);
        assert!(text.lines().count() < 24 && text.ends_with(" more\n"), "{text}");
        assert!(table(&seen(0, &[]), &seen(0, &[]), 1.0, 24, &mut places).contains("no site"));
    }

    #[test]
    fn documents() {
        let document = document(&seen(10, &[5]), &seen(30, &[6]), 2.0);
        let numbers = (&document["counts"]["wakeups"], &document["total"]["wakeups"]);
        assert_eq!(numbers, (&json!(20), &json!(30)));
        assert_eq!(document["sites"][0]["kicks"], json!(6));
    }
}
