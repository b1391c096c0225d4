//! Counts for Prometheus, in OpenMetrics' text format: on standard output, in a file, or served on
//! loopback.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;

use super::counts::Counts;
use super::show::{Interval, Seen};

#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    Stdout,
    File(PathBuf),
    Server(SocketAddr),
}

/// Parse the argument of `--prometheus`. Accepts only loopback addresses: there is no
/// authentication.
pub fn place(text: &str) -> Result<Place, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(Place::Server(address)),
        Ok(_) => Err("expected a loopback address, such as 127.0.0.1:9109".into()),
        Err(_) if text == "-" => Ok(Place::Stdout),
        Err(_) if text.is_empty() => {
            Err("expected a file, or an address such as 127.0.0.1:9109".into())
        }
        Err(_) => Ok(Place::File(text.into())),
    }
}

pub enum Exporter {
    Stdout,
    File(PathBuf),
    Server(Arc<Mutex<String>>),
}

impl Exporter {
    pub fn new(place: &Place) -> anyhow::Result<Exporter> {
        Ok(match place {
            Place::Stdout => Exporter::Stdout,
            Place::File(path) => Exporter::File(path.clone()),
            Place::Server(address) => {
                let listener = TcpListener::bind(address)
                    .with_context(|| format!("cannot listen on {address}"))?;
                eprintln!("lissom: serving http://{}/metrics", listener.local_addr()?);
                let page = Arc::new(Mutex::new("# EOF\n".to_string()));
                let shared = page.clone();
                std::thread::spawn(move || {
                    for connection in listener.incoming().flatten() {
                        let page = shared.lock().map(|p| p.clone()).unwrap_or_default();
                        // Ignore errors: the client may have hung up.
                        let _ = answer(&connection, &page);
                    }
                });
                Exporter::Server(page)
            }
        })
    }

    pub fn write(&self, page: &str) -> anyhow::Result<()> {
        match self {
            Exporter::Stdout => ui::output::print(page.as_bytes())?,
            Exporter::File(path) => {
                // Rename a complete file, so that no reader sees half of it.
                let mut temporary = path.clone().into_os_string();
                temporary.push(format!(".{}", std::process::id()));
                let written =
                    fs::write(&temporary, page).and_then(|()| fs::rename(&temporary, path));
                if written.is_err() {
                    let _ = fs::remove_file(&temporary);
                }
                written.with_context(|| format!("cannot write {}", path.display()))?;
            }
            Exporter::Server(shared) => {
                if let Ok(mut shared) = shared.lock() {
                    *shared = page.to_string();
                }
            }
        }
        Ok(())
    }
}

/// Answer one request, of at most 8 KiB. Reads and writes time out after a second.
fn answer(mut connection: &TcpStream, page: &str) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_secs(1)))?;
    connection.set_write_timeout(Some(Duration::from_secs(1)))?;
    let mut lines = BufReader::new(connection.take(8192)).lines();
    let request = lines.next().unwrap_or(Ok(String::new()))?;
    while lines.next().is_some_and(|line| line.is_ok_and(|l| !l.is_empty())) {}
    let mut words = request.split(' ');
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics" | "/")) => ("200 OK", page),
        (Some("GET"), _) => ("404 Not Found", "the metrics are at /metrics\n"),
        _ => ("405 Method Not Allowed", "GET only\n"),
    };
    let kind = if status.starts_with('2') {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    connection.write_all((head + body).as_bytes())
}

/// A counter of counts.rs: name without the suffix, unit, help text, and value.
type Metric = (&'static str, &'static str, &'static str, fn(&Counts) -> f64);

const COUNTERS: &[Metric] = &[
    ("entries", "", "VM entries.", |c| c.entries as f64),
    ("exits", "", "VM exits.", |c| c.exits as f64),
    ("guest_seconds", "seconds", "Time from VM entry to VM exit.", |c| s(c.guest_ns)),
    ("pause_exits", "", "Pause-loop exits (Intel), or exits by the PAUSE filter (AMD).", |c| {
        c.pause_exits as f64
    }),
    ("pause_spin_seconds", "seconds", "Time of spinning before PAUSE exits.", |c| s(c.spin_ns)),
    (
        "pause_switch_seconds",
        "seconds",
        "Time from PAUSE exits until the CPU did something useful.",
        |c| s(c.switch_ns),
    ),
    ("pause_back_to_same", "", "PAUSE exits after which the same vCPU was entered.", |c| {
        c.back_to_same as f64
    }),
    ("pause_back_to_other", "", "PAUSE exits after which another vCPU was entered.", |c| {
        c.back_to_other as f64
    }),
    ("pause_left", "", "PAUSE exits after which no vCPU ran.", |c| c.left as f64),
    ("yields", "", "Directed yields.", |c| c.yields as f64),
    ("yields_done", "", "Directed yields that found a runnable vCPU.", |c| c.yields_done as f64),
    ("wakeups", "", "Ends of HLT.", |c| c.wakeups as f64),
    ("sleeps", "", "Ends of HLT for which the vCPU's thread had slept.", |c| c.slept as f64),
    ("polls", "", "Halts that KVM polled for.", |c| c.polls as f64),
    ("poll_hits", "", "Halts that ended within the poll.", |c| c.poll_hits as f64),
    ("poll_hit_seconds", "seconds", "Time of polls that hit.", |c| s(c.poll_hit_ns)),
    ("poll_miss_seconds", "seconds", "Time of polls that missed.", |c| s(c.poll_miss_ns)),
    ("poll_grows", "", "Times that a vCPU's poll window grew.", |c| c.poll_grows as f64),
    ("poll_shrinks", "", "Times that a vCPU's poll window shrank.", |c| c.poll_shrinks as f64),
];

fn s(ns: u64) -> f64 {
    ns as f64 / 1e9
}

pub fn metrics(interval: &Interval) -> String {
    let (pauses, yields) = (interval.observer.pauses.is_ok(), interval.observer.yields.is_ok());
    // Leave out metrics that cannot be observed: 0 would be wrong.
    let visible = |name: &str| {
        if name.starts_with("pause_") { pauses } else { yields || !name.starts_with("yields") }
    };
    let mut page = page(interval.seen, &visible);
    let _ = write!(
        page,
        "# TYPE lissom_kvm_lost_events counter\n# HELP lissom_kvm_lost_events Events that were not counted.\n\
         lissom_kvm_lost_events_total {}\n# EOF\n",
        interval.observer.lost()
    );
    page
}

fn page(seen: &[Seen], visible: &dyn Fn(&str) -> bool) -> String {
    let mut page = String::new();
    let mut family = |name: &str,
                      kind: &str,
                      unit: &str,
                      help: &str,
                      value: &dyn Fn(&Seen) -> Option<f64>| {
        let _ = writeln!(page, "# TYPE lissom_kvm_{name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(page, "# UNIT lissom_kvm_{name} {unit}");
        }
        let _ = writeln!(page, "# HELP lissom_kvm_{name} {help}");
        let suffix = if kind == "counter" { "_total" } else { "" };
        for vm in seen {
            let Some(value) = value(vm) else { continue };
            let (pid, name_of_vm) = (vm.vm.pid, escaped(&vm.name));
            let _ = writeln!(
                page,
                "lissom_kvm_{name}{suffix}{{pid=\"{pid}\",vm=\"{name_of_vm}\",number=\"{}\"}} {value}",
                vm.number
            );
        }
    };
    for (name, unit, help, value) in COUNTERS.iter().filter(|m| visible(m.0)) {
        family(name, "counter", unit, help, &|vm| Some(value(&vm.total)));
    }
    family("vcpus", "gauge", "", "vCPUs.", &|vm| Some(vm.total.vcpus as f64));
    if visible("pause_") {
        family(
            "pause_inefficiency_ratio",
            "gauge",
            "ratio",
            "APPLE's inefficiency in the last interval.",
            &|vm| vm.counts.inefficiency(),
        );
    }
    page
}

fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::load::Vm;
    use super::*;

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
        let total = Counts { pause_exits: 3, guest_ns: 1_500_000_000, vcpus: 2, ..Counts::zero() };
        let seen = Seen {
            vm: Vm { pid: 7, kvm: 1 },
            name: "a\"b".into(),
            number: 1,
            counts: total.clone(),
            total,
        };
        let text = page(&[seen], &|name| !name.starts_with("yields"));
        assert!(text.contains(
            "# TYPE lissom_kvm_guest_seconds counter\n# UNIT lissom_kvm_guest_seconds seconds\n"
        ));
        assert!(text.contains(
            "lissom_kvm_guest_seconds_total{pid=\"7\",vm=\"a\\\"b\",number=\"1\"} 1.5\n"
        ));
        assert!(
            text.contains("lissom_kvm_pause_exits_total{pid=\"7\",vm=\"a\\\"b\",number=\"1\"} 3\n")
        );
        assert!(!text.contains("yields"));
    }
}
