//! Format an interval as a table of at most 80 columns, or as JSON.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::counts::quantile;
use super::load::{Observer, Seen};
use ui::terminal::short;
use ui::text::{row, wrap};

pub struct Interval<'a> {
    pub seconds: f64,
    pub observer: &'a Observer,
}

const WIDTHS: [isize; 12] = [7, -11, 5, 5, 5, 6, 5, 3, 5, 4, 5, 6];
const TITLES: [&str; 12] = [
    "PID", "VM", "CPU%", "EXITS", "PAUSE", "SWITCH", "YIELD", "OK%", "HALT", "HIT%", "POLL%",
    "INEFF%",
];

/// Returns at most `rows` lines, but at least one VM. If not all fit, the busiest VMs come first.
pub fn table(interval: &Interval, rows: usize) -> String {
    let Observer { pauses, yields, .. } = interval.observer;
    let pauses = match pauses {
        Ok(p) => format!(
            " window: {} {} at first, {:.1} ns each",
            p.window, p.vendor.unit, p.ns_per_unit
        ),
        Err(reason) => format!(": {reason}"),
    };
    let mut lines = wrap(&format!("KVM, {:.1} s. PAUSE{pauses}", interval.seconds), "", 0);
    if let Err(reason) = yields {
        lines.extend(wrap(&format!("YIELD: {reason}"), "", 0));
    }
    let lost = interval.observer.lost();
    if lost > 0 {
        lines.push(format!("{lost} events were lost: no memory, or a nested event"));
    }
    lines.push(row(&WIDTHS, &TITLES));
    let mut seen: Vec<&Seen> = interval.observer.seen.iter().collect();
    let room = rows.saturating_sub(lines.len() + 2).max(1);
    if seen.len() > room {
        seen.sort_by_key(|s| std::cmp::Reverse((s.counts.guest_ns, s.counts.exits)));
    }
    lines.extend(seen.iter().take(room).map(|s| vm_row(s, interval)));
    match seen.len() {
        0 => lines.push("no VM has run yet".into()),
        all if all > room => lines.push(format!("... and {} VMs that ran less", all - room)),
        _ => (),
    }
    lines.join("\n") + "\n"
}

fn vm_row(seen: &Seen, interval: &Interval) -> String {
    let (c, seconds) = (&seen.counts, interval.seconds);
    let name =
        if seen.number == 1 { seen.name.clone() } else { format!("{}#{}", seen.name, seen.number) };
    let paused = |text: String| if interval.observer.pauses.is_ok() { text } else { "-".into() };
    let yielded = |text: String| if interval.observer.yields.is_ok() { text } else { "-".into() };
    let rate = |n: u64| short(n as f64 / seconds);
    let cpu = |ns: u64| format!("{:.0}", ns as f64 / 1e7 / seconds);
    let percent = |share: Option<f64>| share.map_or("-".into(), |s| format!("{:.0}", s * 100.0));
    let cells = [
        seen.vm.pid.to_string(),
        name,
        cpu(c.guest_ns),
        rate(c.exits),
        paused(rate(c.pause_exits)),
        c.switch().map_or("-".into(), |ns| short(ns / 1000.0)),
        yielded(rate(c.yields)),
        percent(c.yields_done()),
        rate(c.wakeups),
        percent(c.poll_hits()),
        cpu(c.poll_hit_ns + c.poll_miss_ns),
        paused(c.inefficiency().map_or("-".into(), |s| format!("{:.1}", s * 100.0))),
    ];
    row(&WIDTHS, &cells)
}

/// Times are in ns, unless the name says otherwise. null: there was none, or it cannot be observed.
pub fn document(interval: &Interval, now: SystemTime) -> Value {
    let pauses = &interval.observer.pauses;
    let vms = interval.observer.seen.iter().map(|s| {
        let c = &s.counts;
        json!({
            "pid": s.vm.pid, "name": s.name, "number": s.number, "vcpus": c.vcpus, "counts": c,
            "inefficiency": pauses.is_ok().then(|| c.inefficiency()).flatten(),
            "pause_window": c.window(),
            "switch_mean_ns": c.switch(),
            "switch_below_ns": below(&c.switches),
            "halt_poll_window_ns": c.poll_window(),
            "halt_below_ns": below(&c.halts),
        })
    });
    json!({
        "time": now.duration_since(UNIX_EPOCH).map_or(0.0, |t| (t.as_secs_f64() * 1000.0).round() / 1000.0),
        "seconds": interval.seconds,
        "pause": pauses.as_ref().ok(),
        "pause_missing": pauses.as_ref().err(),
        "yields_missing": interval.observer.yields.as_ref().err(),
        "lost": interval.observer.lost(),
        "vms": vms.collect::<Vec<_>>(),
    })
}

/// The bounds below which 50, 90 and 99 % of the times are, in ns.
fn below(histogram: &super::counts::Histogram) -> Value {
    json!({ "p50": quantile(histogram, 0.5), "p90": quantile(histogram, 0.9), "p99": quantile(histogram, 0.99) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits() {
        assert!(row(&WIDTHS, &TITLES).len() <= 80);
    }
}
