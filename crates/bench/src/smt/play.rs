//! Run one or two copies of an application, and optionally the program that computes beside it.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::Session;
use super::super::beside::Beside;
use super::super::child::{Ended, Exited, Running};
use super::super::counters::Used;
use super::super::energy::Energy;
use super::super::mixes::busy_seconds;
use super::application::{Copy, Server};
use os::process;

/// Maximum time until a server answers, and until it exits after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval between checks of a server.
const PAUSE: Duration = Duration::from_millis(5);

pub enum Outcome {
    /// Work and resources of the first copy, as `Play::run` describes.
    Done(Value),
    Failed(String),
    Timeout,
}

/// A started server. Dropping it kills the server.
pub struct Serving<'a> {
    server: &'a Server,
    running: Running,
}

impl<'a> Serving<'a> {
    /// Start a server. `around`: words in front of its command, after those that change the user.
    /// `name`: name of its output files.
    pub fn start(
        session: &Session,
        server: &'a Server,
        around: &[OsString],
        name: &str,
    ) -> anyhow::Result<Serving<'a>> {
        server.ready.clear();
        let command = server.user.iter().chain(around).chain(&server.command);
        let command: Vec<OsString> = command.cloned().collect();
        let running = Running::start(&command, &session.scratch, name, None)?;
        Ok(Serving { server, running })
    }

    /// Wait until the server answers. The inner error says why it does not.
    pub fn await_ready(&mut self, session: &Session) -> anyhow::Result<Result<(), String>> {
        let deadline = Instant::now() + PATIENCE;
        while !self.server.ready.is_there() {
            if let Some(why) = self.ended()? {
                return Ok(Err(why));
            }
            if Instant::now() > deadline {
                return Ok(Err("the server did not answer within 20 s".into()));
            }
            session.signals.wait_for_child(PAUSE)?;
        }
        Ok(Ok(()))
    }

    /// Return why the server has exited, or `None` if it runs. Must not be called after the exit.
    fn ended(&mut self) -> anyhow::Result<Option<String>> {
        Ok(self.running.poll()?.map(|exited| match exited.ended {
            Ended::Badly(why) => format!("the server has ended: {why}"),
            _ => "the server has ended".into(),
        }))
    }

    /// Send SIGTERM, and wait until the server exits. Returns what it and its processes used, or
    /// `None` if it does not exit within `PATIENCE`; the drop then kills it.
    pub fn stop(mut self, session: &Session) -> anyhow::Result<Option<Used>> {
        self.running.ask_to_end();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(exited) = self.running.poll()? {
                return Ok(Some(exited.used));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            session.signals.wait_for_child(PAUSE)?;
        }
    }
}

/// The programs of a run, and their parameters.
pub struct Play<'a> {
    pub copies: &'a [&'a Copy],
    /// Command of the program that computes beside a single copy.
    pub computes: Option<&'a [OsString]>,
    /// Return words in front of each command. With `true`, the command writes statistics.
    pub around: &'a dyn Fn(bool) -> Vec<OsString>,
    /// Whether the first copy (its server, if it has one) writes statistics.
    pub is_told: bool,
    /// Amount of work of each load.
    pub amount: u64,
    /// Maximum duration of the loads.
    pub limit: Duration,
    pub energy: Option<&'a Energy>,
}

/// A load that exited.
struct Loaded {
    exited: Exited,
    /// Start and end by CLOCK_MONOTONIC, in seconds.
    window: (f64, f64),
}

impl Play<'_> {
    /// Run all copies at the same time. Returns work, throughput and resources of the first copy,
    /// with all its processes, and in `beside` those of the second copy or the throughput of the
    /// program that computes. `others`: fraction of the CPUs that other processes used.
    pub fn run(&self, session: &Session) -> anyhow::Result<Outcome> {
        let (begun, busy) = (Instant::now(), busy_seconds());
        let mut servers = Vec::new();
        for (i, copy) in self.copies.iter().enumerate() {
            let Some(server) = &copy.server else { continue };
            let around = (self.around)(self.is_told && i == 0);
            servers.push(Serving::start(session, server, &around, &format!("server{i}"))?);
        }
        for server in &mut servers {
            if let Err(why) = server.await_ready(session)? {
                return Ok(Outcome::Failed(why));
            }
        }
        let mut computes = None;
        if let Some(command) = self.computes {
            let command: Vec<OsString> =
                (self.around)(false).into_iter().chain(command.iter().cloned()).collect();
            let mut other = Beside::start(session, &command)?;
            if let Err(why) = other.await_ready(session)? {
                return Ok(Outcome::Failed(why));
            }
            computes = Some(other);
        }
        let (joules, since) = (self.energy.and_then(Energy::read), Instant::now());
        let loads = match self.load(session, &mut servers, computes.as_mut())? {
            Ok(loads) => loads,
            Err(outcome) => return Ok(outcome),
        };
        let joules = self.energy.zip(joules).and_then(|(energy, begun)| energy.since(&begun));
        let watts = joules.map(|j| j / since.elapsed().as_secs_f64());
        let mut parts = Vec::new();
        let mut used = 0.0;
        for (copy, loaded) in self.copies.iter().zip(&loads) {
            match self.read(copy, loaded) {
                Ok(value) => parts.push((value, loaded.exited.used)),
                Err(why) => return Ok(Outcome::Failed(why)),
            }
        }
        let mut beside = None;
        if let Some(other) = computes {
            match other.stop(session, window(&loads[0]))? {
                Ok((value, cpu_seconds)) => {
                    used += cpu_seconds;
                    beside = Some(json!({ "throughput": value["per_second"] }));
                }
                Err(why) => return Ok(Outcome::Failed(why)),
            }
        }
        // Either all copies have a server or none.
        for ((_, of), server) in parts.iter_mut().zip(servers) {
            match server.stop(session)? {
                Some(more) => add(of, &more),
                None => return Ok(Outcome::Failed("the server did not end within 20 s".into())),
            }
        }
        used += parts.iter().map(|(_, used)| used.cpu_seconds()).sum::<f64>();
        let mut parts = parts.into_iter().map(|(value, used)| with(value, &used));
        let mut value = parts.next().unwrap_or_default();
        if let Some(beside) = parts.next().or(beside) {
            value["beside"] = beside;
        }
        if let Some(watts) = watts {
            value["watts"] = json!(watts);
        }
        let there = begun.elapsed().as_secs_f64() * process::allowed_cpus().len() as f64;
        value["others"] = json!(((busy_seconds() - busy - used) / there).clamp(0.0, 1.0));
        Ok(Outcome::Done(value))
    }

    /// Run the loads of all copies at the same time, for at most `limit`. The inner error is
    /// `Failed` if a server or the program that computes exits, or `Timeout`.
    fn load(
        &self,
        session: &Session,
        servers: &mut [Serving],
        mut computes: Option<&mut Beside>,
    ) -> anyhow::Result<Result<Vec<Loaded>, Outcome>> {
        let deadline = Instant::now() + self.limit;
        let mut running = Vec::new();
        for (i, copy) in self.copies.iter().enumerate() {
            let mut command = (self.around)(self.is_told && i == 0 && copy.server.is_none());
            command.extend((copy.load.command)(self.amount));
            let begun = process::monotonic().as_secs_f64();
            let load = Running::start(&command, &session.scratch, &format!("load{i}"), None)?;
            running.push((load, begun));
        }
        let mut done: Vec<Option<Loaded>> = running.iter().map(|_| None).collect();
        loop {
            for ((load, begun), done) in running.iter_mut().zip(&mut done) {
                if done.is_none() {
                    let exited = load.poll()?;
                    let window = (*begun, process::monotonic().as_secs_f64());
                    *done = exited.map(|exited| Loaded { exited, window });
                }
            }
            if done.iter().all(Option::is_some) {
                return Ok(Ok(done.into_iter().flatten().collect()));
            }
            let mut ended = computes.as_mut().map(|c| c.ended()).transpose()?.flatten();
            for server in &mut *servers {
                ended = ended.or(server.ended()?);
            }
            if let Some(why) = ended {
                return Ok(Err(Outcome::Failed(why)));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Err(Outcome::Timeout));
            }
            session.signals.wait_for_child(left)?;
        }
    }

    /// Return a copy's work, its seconds and its throughput, or why the load failed.
    fn read(&self, copy: &Copy, loaded: &Loaded) -> Result<Value, String> {
        let text = match &loaded.exited.ended {
            Ended::Well(text) => text,
            Ended::Badly(why) => return Err(why.clone()),
            Ended::TooSlow => return Err("it did not end in time".into()),
        };
        let work = copy.load.done(self.amount, text)?;
        let seconds = said(text)["seconds"].as_f64().unwrap_or(loaded.exited.seconds);
        Ok(json!({ "work": work, "seconds": seconds, "throughput": work / seconds }))
    }
}

/// Return the last line of the output, if it is a JSON object, as our own programs print. Otherwise
/// null.
fn said(text: &str) -> Value {
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str::<Value>(line).ok().filter(Value::is_object).unwrap_or_default()
}

/// Return the time in which the load did its work: without its start-up, if it reports that.
fn window(loaded: &Loaded) -> (f64, f64) {
    let Ended::Well(text) = &loaded.exited.ended else { return loaded.window };
    let said = said(text);
    match (said["reported_at"].as_f64(), said["seconds"].as_f64()) {
        (Some(end), Some(seconds)) => (end - seconds, end),
        _ => loaded.window,
    }
}

fn add(used: &mut Used, more: &Used) {
    used.user_seconds += more.user_seconds;
    used.system_seconds += more.system_seconds;
    used.voluntary += more.voluntary;
    used.involuntary += more.involuntary;
    used.faults += more.faults;
}

fn with(mut value: Value, used: &Used) -> Value {
    value["cpu_seconds"] = json!(used.cpu_seconds());
    value["voluntary"] = json!(used.voluntary);
    value["involuntary"] = json!(used.involuntary);
    value["context_switches"] = json!(used.voluntary + used.involuntary);
    value
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{session, shell};
    use super::super::application::{Load, Ready, Work};
    use super::*;

    /// Make a copy whose load fails unless its server answers.
    fn copy(session: &Session, name: &str, serve: &str) -> Copy {
        let file = session.scratch.path().join(name);
        let path = file.display();
        let server = Server {
            user: vec![],
            command: shell(&serve.replace("FILE", &path.to_string())),
            ready: Ready::Line(file.clone(), "ready"),
        };
        let load = format!("grep -q ready '{path}'");
        let command = Box::new(move |_| shell(&load));
        let load = Load { command, work: Work::Asked(8.0), first: 1 };
        Copy { server: Some(server), load }
    }

    fn play(session: &Session, copies: &[&Copy]) -> Outcome {
        let play = Play {
            copies,
            computes: None,
            around: &|_| vec![],
            is_told: false,
            amount: 3,
            limit: Duration::from_secs(20),
            energy: None,
        };
        play.run(session).expect("a shell")
    }

    #[test]
    fn servers_are_started_and_stopped() {
        let session = session();
        let serve = "echo ready >'FILE'; trap 'rm FILE; exit 3' TERM; while :; do sleep 0.01; done";
        let copies = ["a", "b"].map(|name| copy(&session, name, serve));
        let Outcome::Done(value) = play(&session, &[&copies[0], &copies[1]]) else {
            panic!("both answer")
        };
        assert!(value["work"] == 24.0 && value["beside"]["work"] == 24.0, "{value}");
        assert!(value["context_switches"].as_u64() > Some(0), "{value}");
        assert!(!session.scratch.path().join("a").exists());
    }

    #[test]
    fn a_server_that_ends_is_said() {
        let session = session();
        let dead = copy(&session, "a", "echo no >&2; exit 3");
        match play(&session, &[&dead]) {
            Outcome::Failed(why) => assert_eq!(why, "the server has ended: exit code 3: no"),
            _ => panic!("it does not answer"),
        }
    }

    #[test]
    fn a_load_may_say_when_it_worked() {
        let loaded = |text: &str| Loaded {
            exited: Exited { ended: Ended::Well(text.into()), seconds: 3.0, used: Used::default() },
            window: (1.0, 4.0),
        };
        let own = "{\"seconds\": 0.5, \"reported_at\": 3.5}\n";
        assert_eq!(window(&loaded(own)), (3.0, 3.5));
        assert_eq!(window(&loaded("{\"seconds\": 0.5}\n")), (1.0, 4.0));
        assert_eq!(window(&loaded("12\n")), (1.0, 4.0));
        assert!(said("12\n").is_null());
    }
}
