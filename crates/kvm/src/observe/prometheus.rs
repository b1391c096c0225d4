//! Counts for Prometheus, in OpenMetrics' text format: on standard output, in a file, or served on
//! loopback.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::counts::Counts;
use super::load::Seen;
use super::show::Interval;
use ui::endpoint::{self, Endpoint, Name, each};

#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    Stdout,
    File(PathBuf),
    Server(SocketAddr),
}

/// Parse the argument of `--metrics`. Accepts only loopback addresses: there is no
/// authentication.
pub fn place(text: &str) -> Result<Place, String> {
    match endpoint::address(text) {
        Ok(address) if address.ip().is_loopback() => Ok(Place::Server(address)),
        Ok(_) => Err("expected a loopback address, such as 127.0.0.1:9109".into()),
        Err(_) if text == "-" => Ok(Place::Stdout),
        Err(_) if text.is_empty() => {
            Err("expected a file, or an address such as 127.0.0.1:9109".into())
        }
        Err(_) => Ok(Place::File(text.into())),
    }
}

enum Target {
    Text(Option<PathBuf>, Registry),
    Server(#[expect(dead_code, reason = "serves until it is dropped")] Endpoint),
}

pub struct Exporter {
    last: Arc<Mutex<Last>>,
    target: Target,
}

impl Exporter {
    pub fn new(place: &Place) -> anyhow::Result<Exporter> {
        let last = Arc::new(Mutex::new(Last::default()));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Vms(last.clone())));
        let target = match place {
            Place::Stdout => Target::Text(None, registry),
            Place::File(path) => Target::Text(Some(path.clone()), registry),
            Place::Server(address) => {
                let endpoint = Endpoint::serve(*address, registry)?;
                ui::message!("lissom: serving http://{}/metrics", endpoint.address());
                Target::Server(endpoint)
            }
        };
        Ok(Exporter { last, target })
    }

    pub fn write(&self, interval: &Interval) -> anyhow::Result<()> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Last::of(interval);
        let Target::Text(path, registry) = &self.target else { return Ok(()) };
        let text = endpoint::text(registry)?;
        let Some(path) = path else { return Ok(ui::output::print(text.as_bytes())?) };
        // Rename a complete file, so that no reader sees half of it.
        let mut temporary = path.clone().into_os_string();
        temporary.push(format!(".{}", std::process::id()));
        let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A VM, with the labels of its metrics.
#[derive(Debug)]
struct Row {
    labels: [(&'static str, String); 3],
    total: Counts,
    /// APPLE's inefficiency in the last interval.
    inefficiency: Option<f64>,
}

impl endpoint::Labelled for Row {
    fn labels(&self) -> &[(&'static str, String)] {
        &self.labels
    }
}

/// The last report.
#[derive(Debug, Default)]
struct Last {
    rows: Vec<Row>,
    /// Whether pauses and yields are visible. Metrics that cannot be observed are left out: 0 would
    /// be wrong.
    pauses: bool,
    yields: bool,
    lost: u64,
}

impl Last {
    fn of(interval: &Interval) -> Last {
        let row = |vm: &Seen| Row {
            labels: [
                ("pid", vm.vm.pid.to_string()),
                ("vm", vm.name.clone()),
                ("number", vm.number.to_string()),
            ],
            total: vm.total,
            inefficiency: vm.counts.inefficiency(),
        };
        Last {
            rows: interval.observer.seen.iter().map(row).collect(),
            pauses: interval.observer.pauses.is_ok(),
            yields: interval.observer.yields.is_ok(),
            lost: interval.observer.lost(),
        }
    }

    fn shows(&self, name: &str) -> bool {
        match name {
            _ if name.starts_with("pause_") => self.pauses,
            _ => self.yields || !name.starts_with("yields"),
        }
    }
}

#[derive(Debug)]
struct Vms(Arc<Mutex<Last>>);

/// A counter of counts.rs: name, help text, and value.
type Metric = (&'static str, &'static str, fn(&Counts) -> u64);

const COUNTERS: &[Metric] = &[
    ("entries", "VM entries", |c| c.entries),
    ("exits", "VM exits", |c| c.exits),
    ("pause_exits", "Pause-loop exits (Intel), or exits by the PAUSE filter (AMD)", |c| {
        c.pause_exits
    }),
    ("pause_back_to_same", "PAUSE exits after which the same vCPU was entered", |c| c.back_to_same),
    ("pause_back_to_other", "PAUSE exits after which another vCPU was entered", |c| {
        c.back_to_other
    }),
    ("pause_left", "PAUSE exits after which no vCPU ran", |c| c.left),
    ("yields", "Directed yields", |c| c.yields),
    ("yields_done", "Directed yields that found a runnable vCPU", |c| c.yields_done),
    ("wakeups", "Ends of HLT", |c| c.wakeups),
    ("sleeps", "Ends of HLT for which the vCPU's thread had slept", |c| c.slept),
    ("polls", "Halts that KVM polled for", |c| c.polls),
    ("poll_hits", "Halts that ended within the poll", |c| c.poll_hits),
    ("poll_grows", "Times that a vCPU's poll window grew", |c| c.poll_grows),
    ("poll_shrinks", "Times that a vCPU's poll window shrank", |c| c.poll_shrinks),
];

/// The same, in ns.
const TIMES: &[Metric] = &[
    ("guest", "Time from VM entry to VM exit", |c| c.guest_ns),
    ("pause_spin", "Time of spinning before PAUSE exits", |c| c.spin_ns),
    ("pause_switch", "Time from PAUSE exits until the CPU did something useful", |c| c.switch_ns),
    ("poll_hit", "Time of polls that hit", |c| c.poll_hit_ns),
    ("poll_miss", "Time of polls that missed", |c| c.poll_miss_ns),
];

impl Collector for Vms {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let encoder = &mut encoder;
        for (name, help, value) in COUNTERS.iter().filter(|m| last.shows(m.0)) {
            let name = format!("kvm_{name}");
            let value = |row: &Row| Some(ConstCounter::new(value(&row.total)));
            each(encoder, Name(&name, help, None), MetricType::Counter, &last.rows, value)?;
        }
        for (name, help, value) in TIMES.iter().filter(|m| last.shows(m.0)) {
            let (name, unit) = (format!("kvm_{name}"), Some(&Unit::Seconds));
            let value = |row: &Row| Some(ConstCounter::new(value(&row.total) as f64 / 1e9));
            each(encoder, Name(&name, help, unit), MetricType::Counter, &last.rows, value)?;
        }
        let vcpus = |row: &Row| Some(ConstGauge::new(row.total.vcpus as i64));
        each(encoder, Name("kvm_vcpus", "vCPUs", None), MetricType::Gauge, &last.rows, vcpus)?;
        if last.pauses {
            let unit = Unit::Other("ratio".into());
            let help = "APPLE's inefficiency in the last interval";
            let name = Name("kvm_pause_inefficiency", help, Some(&unit));
            let value = |row: &Row| row.inefficiency.map(ConstGauge::new);
            each(encoder, name, MetricType::Gauge, &last.rows, value)?;
        }
        let lost = ConstCounter::new(last.lost);
        lost.encode(encoder.encode_descriptor(
            "lissom_kvm_lost_events",
            "Events that were not counted",
            None,
            MetricType::Counter,
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable as _;

    #[test]
    fn places() {
        assert_eq!(place("-"), Ok(Place::Stdout));
        assert_eq!(place("kvm.prom"), Ok(Place::File("kvm.prom".into())));
        assert!(matches!(place("127.0.0.1:0"), Ok(Place::Server(_))));
        assert!(matches!(place("[::1]:9109"), Ok(Place::Server(_))));
        assert!(place("0.0.0.0:9109").is_err_and(|e| e.contains("loopback")));
        assert!(place("").is_err());
    }

    #[test]
    fn a_page() {
        let total =
            Counts { pause_exits: 3, guest_ns: 1_500_000_000, vcpus: 2, ..Counts::zeroed() };
        let labels = [("pid", "7".into()), ("vm", "a\"b".into()), ("number", "1".into())];
        let rows = vec![Row { labels, total, inefficiency: Some(0.25) }];
        let last = Last { rows, pauses: true, yields: false, lost: 0 };
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Vms(Arc::new(Mutex::new(last)))));
        let text = endpoint::text(&registry).expect("valid metrics");
        for line in [
            "# TYPE lissom_kvm_guest_seconds counter\n# UNIT lissom_kvm_guest_seconds seconds\n",
            "lissom_kvm_guest_seconds_total{pid=\"7\",vm=\"a\\\"b\",number=\"1\"} 1.5\n",
            "lissom_kvm_pause_exits_total{pid=\"7\",vm=\"a\\\"b\",number=\"1\"} 3\n",
            "lissom_kvm_pause_inefficiency_ratio{pid=\"7\",vm=\"a\\\"b\",number=\"1\"} 0.25\n",
            "lissom_kvm_vcpus{pid=\"7\",vm=\"a\\\"b\",number=\"1\"} 2\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("yields"));
        assert!(text.ends_with("lissom_kvm_lost_events_total 0\n# EOF\n"), "{text}");
    }
}
