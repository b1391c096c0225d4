//! Metrics of the manager and the programs under lissom. docs/operate/metrics.md lists the names.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use runtime::abi::COUNTERS;
use ui::endpoint::{self, Endpoint, Name, each};
use watch::activity::Id;
use watch::look::{Look, Runtime, Seen, Watch, Which};
use watch::told::Told;

/// Default address.
pub const DEFAULT: &str = "127.0.0.1:9754";

/// The manager's last decision, and how many it has made.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    pub made: u64,
    pub cpus: usize,
    pub connected: usize,
    pub targets: BTreeMap<Id, u32>,
}

pub struct Metrics {
    decisions: Arc<Mutex<Decisions>>,
    endpoint: Endpoint,
}

/// Lock, ignoring poison: a panic leaves numbers, which are valid anyway.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Metrics {
    pub fn serve(address: SocketAddr) -> anyhow::Result<Metrics> {
        let decisions = Arc::new(Mutex::new(Decisions::default()));
        let endpoint = Endpoint::serve(address, registry(Some(decisions.clone())))?;
        Ok(Metrics { decisions, endpoint })
    }

    pub fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    pub fn decided(&self, cpus: usize, connected: usize, targets: BTreeMap<Id, u32>) {
        let mut decisions = locked(&self.decisions);
        *decisions = Decisions { made: decisions.made + 1, cpus, connected, targets };
    }
}

/// Serve the metrics of programs, without those of a manager.
pub fn observe(address: SocketAddr) -> anyhow::Result<Endpoint> {
    Endpoint::serve(address, registry(None))
}

fn registry(decisions: Option<Arc<Mutex<Decisions>>>) -> Registry {
    let mut registry = Registry::default();
    let watch = Mutex::new(Watch::without_sampling(Which::All));
    registry.register_collector(Box::new(Programs { watch, decisions }));
    registry
}

struct Programs {
    watch: Mutex<Watch>,
    /// None: no manager.
    decisions: Option<Arc<Mutex<Decisions>>>,
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Programs")
    }
}

/// A program under lissom, and the labels of all its metrics.
struct Labelled<'a> {
    seen: &'a Seen,
    told: Option<&'a Told>,
    labels: [(&'static str, String); 2],
}

impl endpoint::Labelled for Labelled<'_> {
    fn labels(&self) -> &[(&'static str, String)] {
        &self.labels
    }
}

fn labelled(look: &Look) -> Vec<Labelled<'_>> {
    let under = look
        .programs
        .values()
        .filter(|seen| !matches!(seen.runtime, Runtime::None | Runtime::Hidden));
    under
        .map(|seen| Labelled {
            seen,
            told: match &seen.runtime {
                Runtime::Tells(told) => Some(told),
                _ => None,
            },
            labels: [("pid", seen.pid.to_string()), ("program", seen.name.clone())],
        })
        .collect()
}

impl Collector for Programs {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let decisions = self.decisions.as_ref().map(|d| locked(d).clone());
        let look = locked(&self.watch).look().map_err(|_| fmt::Error)?;
        let programs = labelled(&look);
        of_machine(&mut encoder, programs.len())?;
        if let Some(decisions) = &decisions {
            of_manager(&mut encoder, decisions, &programs)?;
        }
        of_kernel(&mut encoder, &programs)?;
        of_runtime(&mut encoder, &programs)
    }
}

fn of_machine(encoder: &mut DescriptorEncoder, programs: usize) -> fmt::Result {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    let one = ConstGauge::new(1i64);
    let mut metric = encoder.encode_descriptor(
        "lissom_build_info",
        "Version of lissom that serves these metrics",
        None,
        one.metric_type(),
    )?;
    one.encode(metric.encode_family(&version)?)?;
    number(encoder, "lissom_programs", "Programs under lissom", programs)?;
    let cpus = os::process::allowed_cpus().len();
    number(encoder, "lissom_cpus", "CPUs that this process may use", cpus)
}

fn of_manager(
    encoder: &mut DescriptorEncoder,
    decisions: &Decisions,
    programs: &[Labelled],
) -> fmt::Result {
    let given: u32 = decisions.targets.values().sum();
    for (name, help, value) in [
        (
            "lissom_manager_programs_connected",
            "Programs that get targets from the manager",
            decisions.connected,
        ),
        ("lissom_manager_cpus", "CPUs that the manager divides", decisions.cpus),
        ("lissom_manager_threads_given", "Sum of the last targets", given as usize),
    ] {
        number(encoder, name, help, value)?;
    }
    let made = ConstCounter::new(decisions.made);
    made.encode(encoder.encode_descriptor(
        "lissom_manager_decisions",
        "Decisions, one each period",
        None,
        made.metric_type(),
    )?)?;
    gauge(
        encoder,
        "program_target_threads",
        "Target: maximum number of threads running at once",
        programs,
        |p| decisions.targets.get(&p.seen.pid).map(|&n| i64::from(n)),
    )
}

/// Encode a gauge without labels.
fn number(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: usize) -> fmt::Result {
    let value = ConstGauge::new(value as i64);
    value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)
}

fn gauge(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    programs: &[Labelled],
    value: impl Fn(&Labelled) -> Option<i64>,
) -> fmt::Result {
    each(encoder, Name(name, help, None), MetricType::Gauge, programs, |p| {
        value(p).map(ConstGauge::new)
    })
}

fn counter(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    programs: &[Labelled],
    value: impl Fn(&Labelled) -> Option<u64>,
) -> fmt::Result {
    each(encoder, Name(name, help, None), MetricType::Counter, programs, |p| {
        value(p).map(ConstCounter::new)
    })
}

fn seconds(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    programs: &[Labelled],
    value: impl Fn(&Labelled) -> Option<Duration>,
) -> fmt::Result {
    let seconds = |p: &Labelled| value(p).map(|time| ConstCounter::new(time.as_secs_f64()));
    each(encoder, Name(name, help, Some(&Unit::Seconds)), MetricType::Counter, programs, seconds)
}

fn of_kernel(encoder: &mut DescriptorEncoder, programs: &[Labelled]) -> fmt::Result {
    gauge(encoder, "program_threads", "Threads of the program", programs, |p| {
        Some(p.seen.threads().into())
    })?;
    seconds(encoder, "program_cpu", "CPU time of the program", programs, |p| Some(p.seen.cpu))?;
    let delay = |p: &Labelled| Some(p.seen.totals.run_delay);
    seconds(
        encoder,
        "program_run_delay",
        "Time for which threads were ready, but had no CPU",
        programs,
        delay,
    )?;
    let throttled = |p: &Labelled| p.seen.throttled;
    seconds(
        encoder,
        "program_throttled",
        "Time for which a CPU quota stopped the cgroup",
        programs,
        throttled,
    )?;
    let migrations = |p: &Labelled| p.seen.totals.migrations;
    counter(
        encoder,
        "program_migrations",
        "Migrations of threads between CPUs",
        programs,
        migrations,
    )
}

fn of_runtime(encoder: &mut DescriptorEncoder, programs: &[Labelled]) -> fmt::Result {
    let told = |f: fn(&Told) -> u32| move |p: &Labelled| p.told.map(|t| i64::from(f(t)));
    gauge(encoder, "program_slots", "Threads that may run at once", programs, told(|t| t.slots))?;
    gauge(
        encoder,
        "program_slots_limit",
        "Threads that could run at once if the program were alone",
        programs,
        told(|t| t.limit),
    )?;
    gauge(
        encoder,
        "program_threads_running",
        "Threads with a slot",
        programs,
        told(|t| t.running),
    )?;
    gauge(
        encoder,
        "program_threads_ready",
        "Threads that are ready, but have no slot",
        programs,
        // A sleeping monitor leaves its last value, which is out of date.
        told(|t| if t.is_asleep { 0 } else { t.ready }),
    )?;
    for (i, (name, text)) in COUNTERS.iter().enumerate() {
        let value = |p: &Labelled| p.told.map(|t| t.counters.0[i].2);
        let name = format!("program_{name}");
        match name.as_str() {
            // program_threads is encoded above. The next two can decrease.
            "program_threads" => {}
            "program_threads_peak" | "program_threshold_ns" => {
                gauge(encoder, &name, text, programs, |p| value(p).map(|n| n as i64))?;
            }
            _ => counter(encoder, &name, text, programs, value)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_encodes() {
        let decisions = Arc::new(Mutex::new(Decisions {
            made: 1,
            cpus: 2,
            connected: 1,
            targets: BTreeMap::from([(7, 2)]),
        }));
        let text = endpoint::text(&registry(Some(decisions))).expect("/proc is readable");
        for line in [
            "lissom_manager_cpus 2\n",
            "lissom_manager_threads_given 2\n",
            "lissom_manager_decisions_total 1\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(endpoint::address(DEFAULT).is_ok_and(|a| a.ip().is_loopback()));
    }

    #[test]
    fn without_a_manager() {
        let text = endpoint::text(&registry(None)).expect("/proc is readable");
        for name in ["lissom_build_info", "lissom_programs", "lissom_cpus"] {
            assert!(text.contains(&format!("# TYPE {name} gauge\n")), "{name}: {text}");
        }
        assert!(!text.contains("lissom_manager_") && !text.contains("_target_"), "{text}");
    }
}
