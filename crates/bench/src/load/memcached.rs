//! Load by memcached's text protocol: one thread with many connections, which uses as little CPU
//! time as possible.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use serde_json::Value;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;

use super::server::Server;
use super::{Common, Seen};

#[derive(Args)]
pub struct MemcachedArgs {
    #[arg(long, default_value_t = 64)]
    connections: usize,

    #[arg(long, default_value_t = 10_000)]
    keys: usize,

    /// Bytes of a key
    #[arg(long, default_value_t = 128)]
    key_size: usize,

    /// Bytes of a value
    #[arg(long, default_value_t = 2048)]
    value_size: usize,

    /// GETs for a SET
    #[arg(long, default_value_t = 10.0)]
    gets: f64,

    #[command(flatten)]
    common: Common,
}

/// Maximum wait for answers after the end of the window.
const GRACE: Duration = Duration::from_secs(5);

/// Keys, value and mix of the requests.
struct Requests {
    keys: Vec<String>,
    /// The value, with the end of the line.
    value: Vec<u8>,
    /// Fraction of SETs among all requests.
    sets: f64,
}

impl Requests {
    fn new(args: &MemcachedArgs) -> Requests {
        let mut value = vec![b'v'; args.value_size];
        value.extend(b"\r\n");
        let keys = (0..args.keys).map(|i| format!("{i:0width$}", width = args.key_size)).collect();
        Requests { keys, value, sets: 1.0 / (1.0 + args.gets) }
    }

    fn get(&self, key: usize, to: &mut Vec<u8>) {
        for part in [&b"get "[..], self.keys[key].as_bytes(), b"\r\n"] {
            to.extend(part);
        }
    }

    fn set(&self, key: usize, to: &mut Vec<u8>) {
        let size = self.value.len() - 2;
        for part in
            [b"set ", self.keys[key].as_bytes(), format!(" 0 0 {size}\r\n").as_bytes(), &self.value]
        {
            to.extend(part);
        }
    }

    fn random(&self, random: &mut fastrand::Rng, to: &mut Vec<u8>) {
        let key = random.usize(..self.keys.len());
        if random.f64() < self.sets { self.set(key, to) } else { self.get(key, to) }
    }
}

/// Return the length of the answer at the start of `bytes`. None: it is incomplete. Fails on other
/// text, such as an error of the server.
fn answer(bytes: &[u8]) -> io::Result<Option<usize>> {
    let Some(line) = bytes.windows(2).position(|w| w == b"\r\n") else { return Ok(None) };
    let all = match &bytes[..line] {
        b"STORED" | b"END" => line + 2,
        text if text.starts_with(b"VALUE ") => {
            let size = text.rsplit(|b| *b == b' ').next().and_then(|n| std::str::from_utf8(n).ok());
            let size: usize = size.and_then(|n| n.parse().ok()).ok_or_else(|| bad(text))?;
            line + 2 + size + b"\r\nEND\r\n".len()
        }
        text => return Err(bad(text)),
    };
    Ok((bytes.len() >= all).then_some(all))
}

fn bad(text: &[u8]) -> io::Error {
    io::Error::other(format!("the server says {}", String::from_utf8_lossy(text)))
}

/// Reader of the answers of one connection.
struct Answers {
    from: OwnedReadHalf,
    bytes: Vec<u8>,
    /// Bytes before this are consumed.
    begin: usize,
}

impl Answers {
    fn new(from: OwnedReadHalf) -> Answers {
        Answers { from, bytes: Vec::with_capacity(65536), begin: 0 }
    }

    async fn next(&mut self) -> io::Result<()> {
        loop {
            if let Some(size) = answer(&self.bytes[self.begin..])? {
                self.begin += size;
                return Ok(());
            }
            self.bytes.drain(..self.begin);
            self.begin = 0;
            if self.from.read_buf(&mut self.bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Time in which requests count.
#[derive(Clone, Copy)]
struct Window {
    begin: Instant,
    end: Instant,
}

impl Window {
    fn holds(&self, at: Instant) -> bool {
        at >= self.begin && at < self.end
    }
}

type Shared = Rc<RefCell<Seen>>;

pub fn run(mut args: MemcachedArgs) -> anyhow::Result<Value> {
    if args.connections == 0 || args.keys == 0 || args.key_size < 8 {
        bail!("a connection and a key of 8 bytes at least");
    }
    let port = free_port()?;
    for word in &mut args.common.server {
        if let Some(text) = word.to_str() {
            *word = OsString::from(text.replace("{port}", &port.to_string()));
        }
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut server = Server::start(&args.common.server, args.common.beside)?;
    server.wait_until(|| std::net::TcpStream::connect(address).is_ok())?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let (seen, server_cpus) =
        LocalSet::new().block_on(&runtime, measure(&args, &server, address))?;
    super::report(&seen, server, server_cpus)
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

async fn measure(
    args: &MemcachedArgs,
    server: &Server,
    address: SocketAddr,
) -> anyhow::Result<(Seen, f64)> {
    let requests = Rc::new(Requests::new(args));
    fill(&requests, address).await.context("filling the cache")?;
    let mut streams = Vec::new();
    for _ in 0..args.connections {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        streams.push(stream.into_split());
    }
    let begin = Instant::now() + Duration::from_secs_f64(args.common.warm_up);
    let window = Window { begin, end: begin + Duration::from_secs_f64(args.common.seconds) };
    let seen: Shared = Rc::new(RefCell::new(Seen::new(args.common.seconds)));
    let mut tasks = Vec::new();
    let mut waiting = Vec::new();
    match args.common.rate {
        None => {
            for (i, (read, write)) in streams.into_iter().enumerate() {
                let (requests, seen) = (requests.clone(), seen.clone());
                let random = fastrand::Rng::with_seed(i as u64);
                tasks.push(tokio::task::spawn_local(closed(
                    read, write, requests, random, window, seen,
                )));
            }
        }
        Some(rate) => {
            let mut senders = Vec::new();
            for (read, write) in streams {
                let (sender, receiver) = unbounded_channel();
                let asked: Asked = Rc::default();
                tokio::task::spawn_local(send(write, receiver));
                tasks.push(tokio::task::spawn_local(receive(
                    read,
                    asked.clone(),
                    window,
                    seen.clone(),
                )));
                waiting.push(asked.clone());
                senders.push((sender, asked));
            }
            tasks.push(tokio::task::spawn_local(dispatch(rate, senders, requests.clone(), window)));
        }
    }
    tokio::time::sleep_until(window.begin.into()).await;
    let before = (server.cpu_time(), Instant::now());
    tokio::time::sleep_until(window.end.into()).await;
    let server_cpus = (server.cpu_time() - before.0) / before.1.elapsed().as_secs_f64();
    for task in tasks {
        match tokio::time::timeout_at((window.end + GRACE).into(), task).await {
            Ok(done) => done??,
            Err(_) if args.common.rate.is_some() => {}
            Err(_) => return Err(anyhow!("an answer has not come for {} s", GRACE.as_secs())),
        }
    }
    let mut seen = seen.replace(Seen::new(0.0));
    for asked in waiting {
        for at in asked.due.borrow().iter().filter(|at| window.holds(**at)) {
            seen.unanswered += 1;
            seen.record(at.elapsed());
        }
    }
    Ok((seen, server_cpus))
}

async fn fill(requests: &Requests, address: SocketAddr) -> io::Result<()> {
    let (read, mut write) = TcpStream::connect(address).await?.into_split();
    let mut answers = Answers::new(read);
    let mut bytes = Vec::new();
    for key in 0..requests.keys.len() {
        bytes.clear();
        requests.set(key, &mut bytes);
        write.write_all(&bytes).await?;
        answers.next().await?;
    }
    Ok(())
}

// --- closed loop: each connection sends a request when it has the answer to the last one ---

async fn closed(
    read: OwnedReadHalf,
    mut write: OwnedWriteHalf,
    requests: Rc<Requests>,
    mut random: fastrand::Rng,
    window: Window,
    seen: Shared,
) -> io::Result<()> {
    let mut answers = Answers::new(read);
    let mut bytes = Vec::new();
    loop {
        let at = Instant::now();
        if at >= window.end && !seen.borrow().latency.is_empty() {
            return Ok(());
        }
        bytes.clear();
        requests.random(&mut random, &mut bytes);
        write.write_all(&bytes).await?;
        answers.next().await?;
        // Count the answers that arrive in the window. If none does, on a busy machine, extend the
        // window until the first arrives.
        let end = Instant::now();
        let mut seen = seen.borrow_mut();
        if window.holds(end) {
            seen.record(end - at);
        } else if end >= window.end && seen.latency.is_empty() {
            seen.record(end - at);
            seen.seconds = (end - window.begin).as_secs_f64();
        }
    }
}

// --- open loop: requests are due at random times ---

/// Requests of one connection.
#[derive(Default)]
struct Waiting {
    /// Due times of the requests without an answer, the oldest first.
    due: RefCell<VecDeque<Instant>>,
    /// Notified when no more requests will follow.
    complete: Notify,
}
type Asked = Rc<Waiting>;

async fn send(mut to: OwnedWriteHalf, mut requests: UnboundedReceiver<Vec<u8>>) -> io::Result<()> {
    while let Some(bytes) = requests.recv().await {
        to.write_all(&bytes).await?;
    }
    // Dropping `to` would close the connection before the last answers.
    std::future::pending::<()>().await;
    drop(to);
    Ok(())
}

async fn receive(
    from: OwnedReadHalf,
    asked: Asked,
    window: Window,
    seen: Shared,
) -> io::Result<()> {
    let mut answers = Answers::new(from);
    let mut complete = false;
    while !complete || !asked.due.borrow().is_empty() {
        tokio::select! {
            answer = answers.next() => {
                answer?;
                let at = asked.due.borrow_mut().pop_front().ok_or_else(|| io::Error::other("an answer to nothing"))?;
                if window.holds(at) {
                    seen.borrow_mut().record(at.elapsed());
                }
            }
            () = asked.complete.notified(), if !complete => complete = true,
        }
    }
    Ok(())
}

/// Send `rate` requests per second at random times: intervals are exponentially distributed. Uses a
/// timerfd, because Tokio's timers have a resolution of milliseconds.
async fn dispatch(
    rate: f64,
    senders: Vec<(UnboundedSender<Vec<u8>>, Asked)>,
    requests: Rc<Requests>,
    window: Window,
) -> io::Result<()> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
    // SAFETY: the descriptor is open until `timer` is dropped, which is after the AsyncFd.
    let expired = unsafe { AsyncFd::register(timer.as_fd()) }?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut due = Instant::now();
    while due < window.end {
        let now = Instant::now();
        while due <= now && due < window.end {
            let (sender, asked) = &senders[random.usize(..senders.len())];
            let mut bytes = Vec::new();
            requests.random(&mut random, &mut bytes);
            asked.due.borrow_mut().push_back(due);
            // A closed channel means that the connection failed, which its receiving task reports.
            let _ = sender.send(bytes);
            due += Duration::from_secs_f64(-(1.0 - random.f64()).ln() / rate);
        }
        // Zero would disarm the timer. Setting it discards earlier expirations.
        let left = due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        timer.set(Expiration::OneShot(left.into()), TimerSetTimeFlags::empty())?;
        expired.readable().await?.clear_ready();
    }
    senders.iter().for_each(|(_, asked)| asked.complete.notify_one());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let length = |text: &str| answer(text.as_bytes()).map_err(|e| e.to_string());
        assert_eq!(length("STORED\r\nEN"), Ok(Some(8)));
        assert_eq!(length("END\r\n"), Ok(Some(5)));
        assert_eq!(length("EN"), Ok(None));
        assert_eq!(length("VALUE k 0 3\r\nabc\r\nEND\r\n"), Ok(Some(23)));
        // The value may look like the end of an answer.
        assert_eq!(length("VALUE k 0 8\r\nEND\r\nEND"), Ok(None));
        assert!(
            length("SERVER_ERROR out of memory\r\n").is_err_and(|e| e.contains("out of memory"))
        );
        assert!(length("VALUE k 0 x\r\n").is_err());
    }

    #[test]
    fn requests_are_of_the_protocol() {
        let requests =
            Requests { keys: vec!["0000key".into()], value: b"ab\r\n".to_vec(), sets: 1.0 };
        let mut bytes = Vec::new();
        requests.get(0, &mut bytes);
        requests.random(&mut fastrand::Rng::with_seed(0), &mut bytes);
        assert_eq!(bytes, b"get 0000key\r\nset 0000key 0 0 2\r\nab\r\n");
    }
}
