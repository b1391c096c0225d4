//! Load for PostgreSQL by its own pgbench, whose log contains the latency of each transaction.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;

use super::server::Server;
use super::{Common, Seen};

#[derive(Args)]
pub struct PgbenchArgs {
    #[arg(long)]
    clients: u32,

    /// The folder of pgbench and pg_isready
    #[arg(long)]
    bin: PathBuf,

    /// The folder of the server's socket, in which the log may be written
    #[arg(long)]
    socket: PathBuf,

    #[arg(long)]
    user: String,

    #[command(flatten)]
    common: Common,
}

pub fn run(args: PgbenchArgs) -> anyhow::Result<Value> {
    let mut server = Server::start(&args.common.server, args.common.beside)?;
    server.wait_until(|| {
        let mut ask = Command::new(args.bin.join("pg_isready"));
        ask.arg("-q").arg("-h").arg(&args.socket).stdout(Stdio::null());
        ask.status().is_ok_and(|status| status.success())
    })?;
    let prefix = args.socket.join("transactions");
    let (warm_up, seconds) = (args.common.warm_up, args.common.seconds);
    let mut command = Command::new(args.bin.join("pgbench"));
    command
        .args(["-n", "-S", "-j", "1", "--log"])
        .arg("-h")
        .arg(&args.socket)
        .args(["-U", &args.user]);
    command
        .arg("-c")
        .arg(args.clients.to_string())
        .arg("-T")
        .arg((warm_up + seconds).ceil().to_string());
    command.arg(format!("--log-prefix={}", prefix.display()));
    if let Some(rate) = args.common.rate {
        command.arg("-R").arg(rate.to_string());
    }
    let begin = SystemTime::now() + Duration::from_secs_f64(warm_up);
    let child = command.arg("postgres").stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.context("pgbench")?;
    std::thread::sleep(Duration::from_secs_f64(warm_up));
    let before = server.cpu_time();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let server_cpus = (server.cpu_time() - before) / seconds;
    let done = child.wait_with_output()?;
    if !done.status.success() {
        bail!("pgbench: {}", String::from_utf8_lossy(&done.stderr).trim_end());
    }
    let begin = begin.duration_since(SystemTime::UNIX_EPOCH)?.as_secs_f64();
    let mut seen = Seen::new(seconds);
    let mut found = 0;
    for log in
        fs::read_dir(&args.socket)?.flatten().map(|e| e.path()).filter(|p| is_log(p, &prefix))
    {
        for line in fs::read_to_string(&log)?.lines() {
            let (end, latency) =
                transaction(line).with_context(|| format!("{}: {line}", log.display()))?;
            if end >= begin && end < begin + seconds {
                seen.record(latency);
            }
        }
        fs::remove_file(&log)?;
        found += 1;
    }
    if found == 0 {
        bail!("pgbench has written no log");
    }
    super::report(&seen, server, server_cpus)
}

fn is_log(path: &Path, prefix: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(prefix.as_os_str().as_encoded_bytes())
}

/// Parse a line of the log (pgbench(1), "Per-Transaction Logging"): client, number, latency in us,
/// script, end in s and us. Returns end and latency. With --rate, the latency counts from when the
/// transaction was due.
fn transaction(line: &str) -> Option<(f64, Duration)> {
    let fields: Vec<f64> = line.split(' ').map_while(|field| field.parse().ok()).collect();
    match fields[..] {
        [_, _, latency, _, seconds, micros, ..] => {
            Some((seconds + micros * 1e-6, Duration::from_secs_f64(latency * 1e-6)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines() {
        assert_eq!(
            transaction("0 199 2241 0 1175850568 995598"),
            Some((1175850568.995598, Duration::from_micros(2241)))
        );
        assert_eq!(
            transaction("0 199 2241 0 1 5 30"),
            Some((1.000005, Duration::from_micros(2241)))
        );
        assert_eq!(transaction("0 199 skipped 0 1 5"), None);
    }
}
