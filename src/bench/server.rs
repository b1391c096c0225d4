//! `lissom bench server`: how soon servers answer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::harness::{BOUND, Compare, Group, Metric, Scenario};
use super::postgres::Postgres;
use super::workload::{self, SCHEDULE};
use super::{Bench, Common, Session, in_path};
use crate::process;

/// Throughput and latency of servers with more threads than CPUs
///
/// The load comes from one thread of another process, on the CPUs that the server
/// may not use, if there are any. The bound is memcached natively with a worker
/// for each of its CPUs.
///
///   memcached-max    requests a second, as many as it answers: each connection
///                    asks again when it has its answer (128-byte keys, 2048-byte
///                    values, 10 GETs for a SET)
///   memcached-load   time to the answer of 99% of requests, which come at random
///                    moments, --load times as many as memcached-max has natively
///   postgres-max     the same of PostgreSQL, with a SELECT by primary key:
///                    pgbench -S.
///   postgres-load    The threads are connections here, a process each
///
/// Mean, 50%, 95%, 99.9% and how much CPU time the server took are in the JSON.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct ServerArgs {
    /// Patterns to measure [default: all whose server is installed]
    #[arg(value_name = "PATTERN", value_parser = PossibleValuesParser::new(NAMES))]
    pub patterns: Vec<String>,

    /// Numbers of worker threads [default: 4 and 16]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    /// Numbers of CPUs of the server's affinity mask [default: half of all, and all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub cpus: Vec<u32>,

    /// CPU quotas of the server, on all CPUs: as root [default: none]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::positive)]
    pub quota: Vec<f64>,

    /// Connections of memcached
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = super::thread_count())]
    pub connections: u32,

    /// Load of the `load` patterns, as a part of what is answered natively at most; of
    /// memcached by the first number of threads
    #[arg(long, value_name = "PART", default_value_t = 0.8, value_parser = super::positive)]
    pub load: f64,

    /// Requests a second of the `load` patterns [default: measured first]
    #[arg(long, value_name = "N", value_parser = super::positive)]
    pub rate: Option<f64>,

    #[command(flatten)]
    pub common: Common,
}

const NAMES: [&str; 4] = ["memcached-max", "memcached-load", "postgres-max", "postgres-load"];

const THROUGHPUT: Metric = Metric {
    field: "throughput",
    unit: "requests a second (more is better)",
    compare: Compare::Ratio,
};
const TAIL: Metric = Metric {
    field: "p99_us",
    unit: "us until 99% are answered (less is better)",
    compare: Compare::Ratio,
};

/// What the server may use.
#[derive(Clone, Copy)]
enum Place {
    Cpus(u32),
    Quota(f64),
}

impl Place {
    fn name(self) -> String {
        match self {
            Place::Cpus(1) => "1 CPU".into(),
            Place::Cpus(n) => format!("{n} CPUs"),
            Place::Quota(quota) => format!("quota {quota}"),
        }
    }

    /// Threads of the bound.
    fn cpus(self) -> u32 {
        match self {
            Place::Cpus(n) => n,
            Place::Quota(quota) => quota.ceil() as u32,
        }
    }
}

trait Server {
    /// In front of all: the load, up to the server's command.
    fn load(&self, threads: u32) -> Vec<OsString>;
    /// In front of `lissom run`.
    fn become_user(&self) -> Vec<OsString>;
    fn command(&self, threads: u32) -> Vec<OsString>;
    /// Whether it answers as much with a thread for each CPU as with many, so that this is its
    /// bound.
    fn few_threads_do(&self) -> bool;
}

pub fn prepare(args: &ServerArgs, session: &Session) -> anyhow::Result<Bench> {
    let mut notes = Vec::new();
    let mut groups = Vec::new();
    let mut rates = serde_json::Map::new();
    let schedule = workload::compile(session, SCHEDULE)?;
    let list = |list: &[u32], default: [u32; 2]| -> Vec<u32> {
        let mut list = if list.is_empty() { default.to_vec() } else { list.to_vec() };
        list.dedup();
        list
    };
    let cpus = if args.cpus.is_empty() && !args.quota.is_empty() {
        vec![]
    } else {
        list(&args.cpus, [session.cpus().div_ceil(2), session.cpus()])
    };
    if let Some(more) = cpus.iter().find(|n| **n > session.cpus()) {
        bail!("--cpus {more}: there are {}", session.cpus());
    }
    let places =
        cpus.into_iter().map(Place::Cpus).chain(args.quota.iter().map(|q| Place::Quota(*q)));
    let places: Vec<Place> = places.collect();
    for kind in ["memcached", "postgres"] {
        let asked = |what: &str| {
            args.patterns.is_empty() || args.patterns.iter().any(|p| *p == format!("{kind}-{what}"))
        };
        if !asked("max") && !asked("load") {
            continue;
        }
        let server: Box<dyn Server> = match start(kind, args, session) {
            Ok(server) => server,
            Err(error) if args.patterns.is_empty() => {
                notes.push(format!("{kind} is left out: {error:#}"));
                continue;
            }
            Err(error) => return Err(error),
        };
        for &place in &places {
            let mut measured = None;
            for &threads in &list(&args.threads, [4, 16]) {
                let around = |threads, rate: Option<f64>| {
                    around(&*server, args, session, &schedule, place, threads, rate)
                };
                let group = |what: &str, metric, rate| Group {
                    workload: format!("{kind}-{what}, {}", place.name()),
                    threads,
                    scenarios: scenarios(args, &*server, place, threads, |threads| {
                        around(threads, rate)
                    }),
                    ..Group::of(metric)
                };
                if asked("max") {
                    groups.push(group("max", THROUGHPUT, None));
                }
                if asked("load") {
                    // Where threads are not clients, all numbers of them have the same load.
                    let known = measured.filter(|_| server.few_threads_do());
                    let rate = match args.rate.or(known) {
                        Some(rate) => rate,
                        None => {
                            args.load
                                * native_throughput(
                                    &*server,
                                    session,
                                    around(threads, None),
                                    threads,
                                )?
                        }
                    };
                    measured = Some(rate);
                    rates.insert(
                        format!("{kind}, {}, {threads} threads", place.name()),
                        json!(rate),
                    );
                    groups.push(group("load", TAIL, Some(rate)));
                }
            }
        }
    }
    if groups.is_empty() {
        bail!("no server is there: {}", notes.join("; "));
    }
    Ok(Bench {
        name: "server",
        timeout: args.common.timeout(60.0),
        groups,
        watches: vec![],
        parameters: json!({ "connections": args.connections, "load": args.load, "rates": rates }),
        notes,
        summary: None,
    })
}

/// What stands in front of `lissom run`.
fn around(
    server: &dyn Server,
    args: &ServerArgs,
    session: &Session,
    schedule: &Path,
    place: Place,
    threads: u32,
    rate: Option<f64>,
) -> Vec<OsString> {
    let mut command: Vec<OsString> = vec![session.lissom.clone().into(), "load".into()];
    command.extend(server.load(threads));
    command.extend(["--seconds".into(), (3.0 * args.common.scale).to_string().into()]);
    if let Some(rate) = rate {
        command.extend(["--rate".into(), rate.to_string().into()]);
    }
    let (by, steps) = match place {
        Place::Cpus(n) => {
            command.extend(["--beside".into(), n.to_string().into()]);
            ("affinity", n.to_string())
        }
        Place::Quota(quota) => ("quota", quota.to_string()),
    };
    command.extend([
        "--".into(),
        schedule.into(),
        "--by".into(),
        by.into(),
        "--steps".into(),
        steps.into(),
    ]);
    command.push("--".into());
    command.extend(server.become_user());
    command
}

fn scenarios(
    args: &ServerArgs,
    server: &dyn Server,
    place: Place,
    threads: u32,
    around: impl Fn(u32) -> Vec<OsString>,
) -> Vec<Scenario> {
    let bound = server.few_threads_do().then_some(place.cpus());
    let mut list =
        super::scenarios(threads, bound, &args.common, |threads| server.command(threads));
    for scenario in &mut list {
        scenario.around = around(if scenario.name == BOUND { place.cpus() } else { threads });
    }
    list
}

fn native_throughput(
    server: &dyn Server,
    session: &Session,
    around: Vec<OsString>,
    threads: u32,
) -> anyhow::Result<f64> {
    let command: Vec<OsString> = around.into_iter().chain(server.command(threads)).collect();
    let output = session.output(&command)?;
    let output: Value = serde_json::from_str(output.trim_end()).context("the load's answer")?;
    output["throughput"].as_f64().filter(|n| *n > 0.0).context("nothing was answered")
}

fn start(kind: &str, args: &ServerArgs, session: &Session) -> anyhow::Result<Box<dyn Server>> {
    Ok(match kind {
        "memcached" => Box::new(Memcached::find(args)?),
        _ => Box::new(Postgres::create(session, "postgres")?),
    })
}

// --- memcached ---

struct Memcached {
    program: PathBuf,
    connections: u32,
}

impl Memcached {
    fn find(args: &ServerArgs) -> anyhow::Result<Memcached> {
        let program = in_path("memcached").context("apt-get install memcached")?;
        Ok(Memcached { program, connections: args.connections })
    }
}

impl Server for Memcached {
    fn load(&self, _threads: u32) -> Vec<OsString> {
        vec!["memcached".into(), "--connections".into(), self.connections.to_string().into()]
    }

    fn become_user(&self) -> Vec<OsString> {
        vec![]
    }

    fn command(&self, threads: u32) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![self.program.clone().into()];
        // It refuses to be root without being told so.
        if process::euid() == 0 {
            command.extend(["-u".into(), "root".into()]);
        }
        let connections = (self.connections + 100).to_string();
        for word in ["-l", "127.0.0.1", "-p", "{port}", "-U", "0", "-m", "1024", "-c", &connections]
        {
            command.push(word.into());
        }
        command.extend(["-t".into(), threads.to_string().into()]);
        command
    }

    fn few_threads_do(&self) -> bool {
        true
    }
}

// --- PostgreSQL ---

impl Server for Postgres {
    fn load(&self, threads: u32) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec!["pgbench".into(), "--user".into(), "postgres".into()];
        command.extend([
            "--clients".into(),
            threads.to_string().into(),
            "--bin".into(),
            self.bin.clone().into(),
        ]);
        command.extend(["--socket".into(), self.folder.clone().into()]);
        command
    }

    fn become_user(&self) -> Vec<OsString> {
        self.user.clone()
    }

    fn command(&self, threads: u32) -> Vec<OsString> {
        Postgres::command(self, threads)
    }

    /// Its threads are connections, which have one question at a time.
    fn few_threads_do(&self) -> bool {
        false
    }
}
