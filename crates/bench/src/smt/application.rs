//! The parts of an application: a load, and possibly a server that answers it.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// One copy of an application. Two copies share neither files nor ports.
pub struct Copy {
    pub server: Option<Server>,
    pub load: Load,
}

impl Copy {
    /// Return a copy whose server runs as this process's user.
    pub fn serving(command: Vec<OsString>, ready: Ready, load: Load) -> Copy {
        Copy { server: Some(Server { user: vec![], command, ready }), load }
    }
}

pub struct Server {
    /// Words in front of `lissom run` that change to the server's user.
    pub user: Vec<OsString>,
    pub command: Vec<OsString>,
    pub ready: Ready,
}

/// The condition under which a server is ready.
pub enum Ready {
    /// This local TCP port accepts connections.
    Port(u16),
    /// This Unix socket accepts connections.
    Socket(PathBuf),
    /// This file has a line with only this text.
    Line(PathBuf, &'static str),
}

impl Ready {
    pub fn is_there(&self) -> bool {
        match self {
            Ready::Port(port) => {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
                TcpStream::connect_timeout(&address, Duration::from_millis(100)).is_ok()
            }
            Ready::Socket(path) => UnixStream::connect(path).is_ok(),
            Ready::Line(path, text) => {
                let lines = std::fs::read_to_string(path).unwrap_or_default();
                lines.lines().any(|l| l.trim() == *text)
            }
        }
    }

    /// Remove the file that a killed server left. The server must not run.
    pub fn clear(&self) {
        if let Ready::Socket(path) | Ready::Line(path, _) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A program that exits after an amount of work.
pub struct Load {
    /// Build the command for an amount.
    pub command: Box<dyn Fn(u64) -> Vec<OsString>>,
    pub work: Work,
    /// Amount of the first calibration run.
    pub first: u64,
}

#[derive(Clone, Copy)]
pub enum Work {
    /// Units of work per unit of the amount.
    Asked(f64),
    /// The amount is seconds; the function reads the units from the output.
    Printed(fn(&str) -> Option<f64>),
}

impl Load {
    /// Return a load that does `units` of work per unit of the amount.
    pub fn of(units: f64, first: u64, command: impl Fn(u64) -> Vec<OsString> + 'static) -> Load {
        Load { command: Box::new(command), work: Work::Asked(units), first }
    }

    /// Return the units of work of a run, or why the run does not count.
    pub fn done(&self, amount: u64, output: &str) -> Result<f64, String> {
        if let Some(failed) = failed_requests(output) {
            return Err(failed);
        }
        match self.work {
            Work::Asked(units) => Ok(units * amount as f64),
            Work::Printed(read) => {
                let done = read(output).filter(|n| *n > 0.0);
                done.ok_or_else(|| "the output has no number of operations".into())
            }
        }
    }

    pub fn is_timed(&self) -> bool {
        matches!(self.work, Work::Printed(_))
    }
}

/// Return ApacheBench's line about failed requests, if there were any. Its exit code is 0 even if
/// all requests failed.
fn failed_requests(output: &str) -> Option<String> {
    let mut lines = output.lines();
    let failed = lines.find(|l| {
        let number = l
            .strip_prefix("Failed requests:")
            .or_else(|| l.strip_prefix("Non-2xx responses:"))
            .map(str::trim);
        number.is_some_and(|n| n != "0")
    });
    failed.map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Return a local TCP port on which nothing listens now.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Return whether calibration needs another run, and the next amount. `amount` took `seconds`; the
/// goal is `aim` seconds.
pub fn next_amount(amount: u64, seconds: f64, aim: f64) -> (bool, u64) {
    let factor = aim / seconds.max(1e-3);
    let next = (amount as f64 * factor.min(20.0)).round().max(1.0) as u64;
    // Start-up is a large part of a short run: measure again.
    (factor > 2.0, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(work: Work) -> Load {
        Load { command: Box::new(|_| vec![]), work, first: 1 }
    }

    #[test]
    fn work_is_asked_for_or_printed() {
        assert_eq!(load(Work::Asked(8.0)).done(3, ""), Ok(24.0));
        let printed = load(Work::Printed(|text| text.trim().parse().ok()));
        assert_eq!(printed.done(1, "120\n"), Ok(120.0));
        assert!(printed.done(1, "none").is_err() && printed.is_timed());
        let bad = "Complete requests:      30\nFailed requests:        2\n";
        let why = load(Work::Asked(1.0)).done(30, bad);
        assert_eq!(why, Err("Failed requests: 2".to_string()));
        assert!(load(Work::Asked(1.0)).done(30, "Failed requests:        0\n").is_ok());
    }

    #[test]
    fn the_amount_is_found_in_steps() {
        assert_eq!(next_amount(10, 0.001, 0.5), (true, 200));
        assert_eq!(next_amount(200, 0.1, 0.5), (true, 1000));
        assert_eq!(next_amount(1000, 0.4, 0.5), (false, 1250));
        assert_eq!(next_amount(1, 3.0, 0.5), (false, 1));
    }

    #[test]
    fn a_port_answers_while_something_listens() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("its address").port();
        assert!(Ready::Port(port).is_there());
        drop(listener);
        assert!(!Ready::Port(port).is_there());
    }
}
