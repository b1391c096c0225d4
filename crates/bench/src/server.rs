//! `lissom bench server`: throughput and latency of servers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::command::{add, words};
use super::harness::{BOUND, Group, Metric, Scenario};
use super::postgres::Postgres;
use super::workload::{self, SCHEDULE};
use super::{Bench, Common, Session, in_path};
use os::process;

/// Measure throughput and latency of servers with more threads than CPUs
///
/// One thread of another process sends the requests, on CPUs that the server may
/// not use if there are any. The bound is memcached natively with one worker per
/// CPU that it may use.
///
///   memcached-max    maximum throughput in requests a second: each connection
///                    sends a request when it has the last answer (128-byte keys,
///                    2048-byte values, 10 GETs per SET)
///   memcached-load   99th percentile of the response time. Requests arrive at
///                    random, at --load times the native rate of memcached-max
///   postgres-max     maximum throughput of PostgreSQL, with a SELECT by primary
///                    key: pgbench -S. Its threads are connections, a process each
///   postgres-load    99th percentile of the response time of PostgreSQL
///
/// The JSON has the mean, 50th, 95th and 99.9th percentiles, and the CPU time of
/// the server.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct ServerArgs {
    /// Patterns to measure [default: all whose server is installed]
    #[arg(value_name = "PATTERN", value_parser = PossibleValuesParser::new(NAMES))]
    pub patterns: Vec<String>,

    /// Numbers of worker threads [default: 4 and 16]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub threads: Vec<u32>,

    /// Numbers of CPUs in the server's affinity mask [default: half of all, and all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::thread_count())]
    pub cpus: Vec<u32>,

    /// CPU quotas of the server, in CPUs, on all CPUs; needs root [default: none]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::positive)]
    pub quota: Vec<f64>,

    /// Number of connections to memcached
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = super::thread_count())]
    pub connections: u32,

    /// Rate of the `load` patterns, as a fraction of the native maximum; for memcached, of the
    /// maximum with the first number of threads
    #[arg(long, value_name = "PART", default_value_t = 0.8, value_parser = super::positive)]
    pub load: f64,

    /// Rate of the `load` patterns in requests a second [default: --load times the measured
    /// maximum]
    #[arg(long, value_name = "N", value_parser = super::positive)]
    pub rate: Option<f64>,

    #[command(flatten)]
    pub common: Common,
}

const NAMES: [&str; 4] = ["memcached-max", "memcached-load", "postgres-max", "postgres-load"];

const THROUGHPUT: Metric = Metric::ratio("throughput", "requests a second (more is better)");
const TAIL: Metric = Metric::ratio("p99_us", "us until 99% are answered (less is better)");

/// The CPUs that the server may use.
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

    /// Return the number of threads of the bound: a quota is rounded up.
    fn cpus(self) -> u32 {
        match self {
            Place::Cpus(n) => n,
            Place::Quota(quota) => quota.ceil() as u32,
        }
    }
}

trait Server {
    /// Return the arguments of `lissom load` for this server.
    fn load(&self, threads: u32) -> Vec<OsString>;
    /// Return the words in front of `lissom run` that change to the server's user.
    fn become_user(&self) -> Vec<OsString>;
    fn command(&self, threads: u32) -> Vec<OsString>;
    /// Return whether one thread per CPU can answer as many requests as many threads can. Only such
    /// a server has a bound.
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
        let asked = |what: &str| super::is_wanted(&args.patterns, &format!("{kind}-{what}"));
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
                    // If threads are not clients, all numbers of threads get the same rate.
                    let known = measured.filter(|_| server.few_threads_do());
                    let rate = match args.rate.or(known) {
                        Some(rate) => rate,
                        None => {
                            let command = [around(threads, None), server.command(threads)].concat();
                            args.load * throughput(&command, session)?
                        }
                    };
                    measured = Some(rate);
                    let name = format!("{kind}, {}, {threads} threads", place.name());
                    rates.insert(name, json!(rate));
                    groups.push(group("load", TAIL, Some(rate)));
                }
            }
        }
    }
    if groups.is_empty() {
        bail!("no server is installed: {}", notes.join("; "));
    }
    Ok(Bench {
        name: "server",
        timeout: args.common.timeout(60.0),
        groups,
        parameters: json!({ "connections": args.connections, "load": args.load, "rates": rates }),
        notes,
        ..Bench::default()
    })
}

/// Build the words in front of `lissom run`. `rate`: requests per second; `None` is the maximum.
fn around(
    server: &dyn Server,
    args: &ServerArgs,
    session: &Session,
    schedule: &Path,
    place: Place,
    threads: u32,
    rate: Option<f64>,
) -> Vec<OsString> {
    let mut command = words![&session.lissom, "load"];
    command.extend(server.load(threads));
    let rate = rate.map(|rate| ("--rate", rate));
    add(&mut command, &[("--seconds", 3.0 * args.common.scale)]);
    add(&mut command, rate.as_slice());
    let (by, steps) = match place {
        Place::Cpus(n) => {
            add(&mut command, &[("--beside", n.into())]);
            ("affinity", n.to_string())
        }
        Place::Quota(quota) => ("quota", quota.to_string()),
    };
    command.extend(words!["--", schedule, "--by", by, "--steps", steps, "--"]);
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

/// Run a server with its load. Returns the requests that it answered per second.
fn throughput(command: &[OsString], session: &Session) -> anyhow::Result<f64> {
    let output: Value = serde_json::from_str(session.output(command)?.trim_end())
        .context("cannot parse the load generator's output")?;
    output["throughput"].as_f64().filter(|n| *n > 0.0).context("the server answered no request")
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
        let program =
            in_path("memcached").context("not installed (on Debian: apt-get install memcached)")?;
        Ok(Memcached { program, connections: args.connections })
    }
}

impl Server for Memcached {
    fn load(&self, _threads: u32) -> Vec<OsString> {
        words!["memcached", "--connections", self.connections.to_string()]
    }

    fn become_user(&self) -> Vec<OsString> {
        vec![]
    }

    fn command(&self, threads: u32) -> Vec<OsString> {
        let mut command = words![&self.program];
        // memcached refuses to run as root without `-u root`.
        if process::euid() == 0 {
            command.extend(words!["-u", "root"]);
        }
        command.extend(words!["-l", "127.0.0.1", "-p", "{port}", "-U", "0", "-m", "1024"]);
        let (connections, threads) = (self.connections + 100, threads.to_string());
        command.extend(words!["-c", connections.to_string(), "-t", threads]);
        command
    }

    fn few_threads_do(&self) -> bool {
        true
    }
}

// --- PostgreSQL ---

impl Server for Postgres {
    fn load(&self, threads: u32) -> Vec<OsString> {
        let mut command = words!["pgbench", "--user", "postgres"];
        command.extend(words!["--clients", threads.to_string()]);
        command.extend(words!["--bin", &self.bin, "--socket", &self.folder]);
        command
    }

    fn become_user(&self) -> Vec<OsString> {
        self.user.clone()
    }

    fn command(&self, threads: u32) -> Vec<OsString> {
        Postgres::command(self, threads)
    }

    /// Threads are connections, each with one request at a time.
    fn few_threads_do(&self) -> bool {
        false
    }
}
