//! Run one or two copies of an application, and optionally the program that computes beside it.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::Session;
use super::super::background::{Background, await_all, failed};
use super::super::beside::Beside;
use super::super::child::{Ended, Exited, Running};
use super::super::command::after;
use super::super::counters::Used;
use super::super::energy::Energy;
use super::super::meter::Meter;
use super::application::{Copy, Server};

/// A started server. Dropping it kills the server.
pub struct Serving<'a> {
    server: &'a Server,
    process: Background,
}

impl<'a> Serving<'a> {
    /// Start a server. `around`: words in front of its command, after those that change the user.
    /// `file`: name of its output files.
    pub fn start(
        session: &Session,
        server: &'a Server,
        around: &[OsString],
        file: &str,
    ) -> anyhow::Result<Serving<'a>> {
        server.ready.clear();
        let command = [&server.user, around, &server.command].concat();
        let process = Background::start(session, "the server", &command, file)?;
        Ok(Serving { server, process })
    }

    /// Wait until the server answers.
    pub fn await_ready(&mut self, session: &Session) -> anyhow::Result<()> {
        self.process.await_ready(session, || self.server.ready.is_there())
    }

    /// Stop the server. Returns what it and its processes used.
    pub fn stop(self, session: &Session) -> anyhow::Result<Used> {
        Ok(self.process.stop(session)?.used)
    }
}

/// The programs of a run, and their parameters.
pub struct Play<'a> {
    pub copies: &'a [Copy],
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

/// A load that exited, and when it ended, in seconds by CLOCK_MONOTONIC.
type Loaded = (Exited, f64);

impl Play<'_> {
    /// Run all copies at the same time. Returns work, throughput and resources of the first copy,
    /// with all its processes, and in `beside` those of the second copy or the throughput of the
    /// program that computes. `others`: fraction of the CPUs that other processes used.
    pub fn run(&self, session: &Session) -> anyhow::Result<Value> {
        let meter = Meter::start(None);
        let mut servers = Vec::new();
        for (i, copy) in self.copies.iter().enumerate() {
            let Some(server) = &copy.server else { continue };
            let around = (self.around)(self.is_told && i == 0);
            servers.push(Serving::start(session, server, &around, &format!("server{i}"))?);
        }
        for server in &mut servers {
            server.await_ready(session)?;
        }
        let computes = self.computes.map(|command| after(&(self.around)(false), command));
        let mut computes = computes.map(|command| Beside::start(session, &command)).transpose()?;
        let power = Meter::start(self.energy);
        let loads = self.load(session, &mut servers, computes.as_mut())?;
        let watts = power.watts();
        let window = window(&loads[0]);
        let mut parts = Vec::new();
        for (copy, (exited, _)) in self.copies.iter().zip(loads) {
            let used = exited.used;
            parts.push((self.read(copy, exited)?, used));
        }
        let mut used = 0.0;
        let mut beside = None;
        if let Some(other) = computes {
            let (value, cpu_seconds) = other.stop(session, window)?;
            used += cpu_seconds;
            beside = Some(json!({ "throughput": value["per_second"] }));
        }
        // Either all copies have a server or none.
        for ((_, of), server) in parts.iter_mut().zip(servers) {
            add(of, &server.stop(session)?);
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
        value["others"] = json!(meter.others(used));
        Ok(value)
    }

    /// Run the loads of all copies at the same time, for at most `limit`. Fails if a server or the
    /// program that computes exits.
    fn load(
        &self,
        session: &Session,
        servers: &mut [Serving],
        mut computes: Option<&mut Beside>,
    ) -> anyhow::Result<Vec<Loaded>> {
        let mut running = Vec::new();
        for (i, copy) in self.copies.iter().enumerate() {
            let mut command = (self.around)(self.is_told && i == 0 && copy.server.is_none());
            command.extend((copy.load.command)(self.amount));
            running.push(Running::start(&command, &session.scratch, &format!("load{i}"), None)?);
        }
        await_all(session, running, self.limit, || {
            computes.as_mut().map_or(Ok(()), |computes| computes.check())?;
            servers.iter_mut().try_for_each(|server| server.process.check())
        })
    }

    /// Return a copy's work, its seconds and its throughput.
    fn read(&self, copy: &Copy, exited: Exited) -> anyhow::Result<Value> {
        let text = exited.ended.output()?;
        let work = copy.load.done(self.amount, &text).map_err(failed)?;
        let seconds = said(&text)["seconds"].as_f64().unwrap_or(exited.seconds);
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
fn window((exited, ended): &Loaded) -> (f64, f64) {
    let said = match &exited.ended {
        Ended::Well(text) => said(text),
        _ => Value::Null,
    };
    match (said["reported_at"].as_f64(), said["seconds"].as_f64()) {
        (Some(end), Some(seconds)) => (end - seconds, end),
        _ => (ended - exited.seconds, *ended),
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

    fn play(session: &Session, copies: &[Copy]) -> anyhow::Result<Value> {
        let play = Play {
            copies,
            computes: None,
            around: &|_| vec![],
            is_told: false,
            amount: 3,
            limit: Duration::from_secs(20),
            energy: None,
        };
        play.run(session)
    }

    #[test]
    fn servers_are_started_and_stopped() {
        let session = session();
        let serve = "echo ready >'FILE'; trap 'rm FILE; exit 3' TERM; while :; do sleep 0.01; done";
        let copies = ["a", "b"].map(|name| copy(&session, name, serve));
        let value = play(&session, &copies).expect("both answer");
        assert!(value["work"] == 24.0 && value["beside"]["work"] == 24.0, "{value}");
        assert!(value["context_switches"].as_u64() > Some(0), "{value}");
        assert!(!session.scratch.path().join("a").exists());
    }

    #[test]
    fn a_server_that_ends_is_said() {
        let session = session();
        let dead = copy(&session, "a", "echo no >&2; exit 3");
        let why = play(&session, &[dead]).expect_err("it does not answer").to_string();
        assert_eq!(why, "the server has ended: exit code 3: no");
    }

    #[test]
    fn a_load_may_say_when_it_worked() {
        let loaded = |text: &str| {
            let ended = Ended::Well(text.into());
            let printed = super::super::super::child::Printed::of(b"");
            (Exited { ended, seconds: 3.0, used: Used::default(), printed }, 4.0)
        };
        let own = "{\"seconds\": 0.5, \"reported_at\": 3.5}\n";
        assert_eq!(window(&loaded(own)), (3.0, 3.5));
        assert_eq!(window(&loaded("{\"seconds\": 0.5}\n")), (1.0, 4.0));
        assert_eq!(window(&loaded("12\n")), (1.0, 4.0));
        assert!(said("12\n").is_null());
    }
}
