//! Load for `lissom bench server`: start a server, send it requests for some seconds from outside,
//! and report its latencies. This is a verb of its own because the harness measures commands.

mod memcached;
mod pgbench;
mod server;

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Subcommand};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use server::Server;

#[derive(Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Memcached(memcached::MemcachedArgs),
    Pgbench(pgbench::PgbenchArgs),
}

/// Options of every load.
#[derive(Args)]
struct Common {
    /// Seconds that count
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,

    /// Seconds before, which do not
    #[arg(long, default_value_t = 0.5)]
    warm_up: f64,

    /// Requests a second, at random moments, whether or not those before have been answered: time
    /// counts from that moment. Without it, each connection asks again when it has its answer
    #[arg(long)]
    rate: Option<f64>,

    /// Keep to the CPUs after the first N, if there are any
    #[arg(long, value_name = "N", default_value_t = 0)]
    beside: usize,

    /// How the server is started; `{port}` is replaced by a free one
    #[arg(required = true, trailing_var_arg = true)]
    server: Vec<OsString>,
}

/// Results of the requests that count.
struct Seen {
    /// In microseconds, until the answer was complete.
    latency: Histogram<u64>,
    seconds: f64,
    /// Number of requests without an answer. `latency` contains the time that they had waited.
    unanswered: u64,
}

impl Seen {
    fn new(seconds: f64) -> Seen {
        // Up to ten minutes, with errors below 0.1%.
        let latency = Histogram::new_with_bounds(1, 600_000_000, 3).expect("valid bounds");
        Seen { latency, seconds, unanswered: 0 }
    }

    fn record(&mut self, latency: Duration) {
        self.latency
            .saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    fn json(&self, server_cpus: f64) -> Value {
        let percentile = |p| self.latency.value_at_quantile(p);
        json!({
            "throughput": self.latency.len() as f64 / self.seconds,
            "requests": self.latency.len(),
            "unanswered": self.unanswered,
            "seconds": self.seconds,
            "mean_us": self.latency.mean(),
            "p50_us": percentile(0.5),
            "p95_us": percentile(0.95),
            "p99_us": percentile(0.99),
            "p999_us": percentile(0.999),
            "max_us": self.latency.max(),
            "server_cpus": server_cpus,
        })
    }
}

pub fn load(args: LoadArgs) -> anyhow::Result<i32> {
    let report = match args.what {
        What::Memcached(args) => memcached::run(args),
        What::Pgbench(args) => pgbench::run(args),
    }?;
    ui::output::print(format!("{report}\n").as_bytes())?;
    Ok(0)
}

/// Report the results, and end the server. If the last line of its output is a JSON object, the
/// report includes its members.
fn report(seen: &Seen, server: Server, server_cpus: f64) -> anyhow::Result<Value> {
    let mut report = seen.json(server_cpus);
    let said = server.end()?;
    let last = said.lines().last().unwrap_or_default();
    if let (Some(report), Ok(Value::Object(members))) =
        (report.as_object_mut(), serde_json::from_str(last))
    {
        report.extend(members);
    }
    Ok(report)
}
