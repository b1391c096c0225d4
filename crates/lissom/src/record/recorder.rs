//! Write events into the trace and the graph.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter};

use serde_json::{Value, json};

use super::chrome::Trace;
use super::graph::{Drawn, Graph, Object};
use super::timeline::{Part, Span, State, Timeline, text};
use os::place::{Place, Places};
use watch::live::Live;
use watch::spinning::Sample;
use watch::told::{Lock, Told};
use watch::trace::{Event, Wait, calls};

/// Futexes and loops with names. Finding one may take milliseconds.
const NAMES: usize = 4096;

pub struct Recorder {
    pid: u32,
    timeline: Timeline,
    /// None: only the graph is wanted.
    trace: Option<Trace<BufWriter<File>>>,
    graph: Graph,
    names: Addresses,
    failed: Option<io::Error>,
    live: Option<Live>,
    /// Futexes that threads waited for in user space, as the runtime has counted.
    locks: Vec<Lock>,
}

/// Names of addresses.
struct Addresses {
    pid: u32,
    places: Places,
    futexes: HashMap<u64, String>,
    loops: HashMap<u64, String>,
}

impl Addresses {
    fn futex(&mut self, address: u64) -> String {
        if let Some(name) = self.futexes.get(&address) {
            return name.clone();
        }
        if self.futexes.len() == NAMES {
            return format!("{address:#x}");
        }
        let name = match self.places.of_data(self.pid, address) {
            Some(Place { symbol: Some(symbol), object, behind: 0, .. }) => {
                format!("{symbol} {object}")
            }
            Some(place) => place.text(),
            None => format!("{address:#x}"),
        };
        self.futexes.insert(address, name.clone());
        name
    }

    fn spin_loop(&mut self, head: u64) -> String {
        if let Some(name) = self.loops.get(&head) {
            return name.clone();
        }
        if self.loops.len() == NAMES {
            return format!("{head:#x}");
        }
        let name = match self.places.of(self.pid, head) {
            Some(Place { symbol: Some(symbol), line: Some(line), object, .. }) => {
                format!("{symbol} {object} {line}")
            }
            Some(place) => place.text(),
            None => format!("{head:#x}"),
        };
        self.loops.insert(head, name.clone());
        name
    }

    fn wait(&mut self, wait: Wait) -> String {
        match (wait.futex, wait.call) {
            (Some(futex), _) if wait.holder.is_some() => format!("lock {}", self.futex(futex)),
            (Some(futex), _) => format!("futex {}", self.futex(futex)),
            (None, Some(call)) => calls::name(call),
            (None, None) => "page fault or interrupt".into(),
        }
    }
}

impl Recorder {
    pub fn new(
        pid: u32,
        has_our_numbers: bool,
        begin: u64,
        file: Option<File>,
    ) -> io::Result<Recorder> {
        let trace = file.map(|f| Trace::new(BufWriter::new(f), pid, begin)).transpose()?;
        let (futexes, loops) = (HashMap::new(), HashMap::new());
        Ok(Recorder {
            pid,
            timeline: Timeline::new(pid, has_our_numbers),
            trace,
            graph: Graph::default(),
            names: Addresses { pid, places: Places::default(), futexes, loops },
            failed: None,
            live: None,
            locks: Vec::new(),
        })
    }

    /// Return the size of the trace so far.
    pub fn bytes(&self) -> u64 {
        self.trace.as_ref().map_or(0, Trace::bytes)
    }

    pub fn entries(&self) -> u64 {
        self.trace.as_ref().map_or(0, Trace::entries)
    }

    /// Return the name of the program. None: no event of its first thread is known.
    pub fn program(&self) -> Option<String> {
        Some(self.timeline.bare_name(self.pid).to_string()).filter(|name| name != "?")
    }

    /// Return whether a thread of lissom's runtime was seen.
    pub fn knows_runtime(&self) -> bool {
        self.timeline.knows(runtime::abi::MONITOR_NAME)
    }

    pub fn threads(&self) -> usize {
        self.timeline.threads()
    }

    /// Add events, which are sorted by time. Fails if the file cannot be written.
    pub fn add(&mut self, events: &[Event]) -> io::Result<()> {
        let Recorder { timeline, trace, graph, names, failed, .. } = self;
        let mut take = |timeline: &Timeline, part: Part| {
            if let Err(error) = write(timeline, trace.as_mut(), graph, names, &part) {
                failed.get_or_insert(error);
            }
        };
        events.iter().for_each(|event| timeline.add(event, &mut take));
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Add samples of threads on a CPU, some of which spin.
    pub fn add_spins(&mut self, samples: &[Sample]) -> io::Result<()> {
        for sample in samples {
            let place = sample.head.map(|head| self.names.spin_loop(head));
            self.graph.add_sample(sample.thread, place.as_deref());
            if let (Some(trace), Some(place)) = (&mut self.trace, place) {
                let name = format!("spins in {place}");
                trace.instant(sample.thread, sample.time, "spin", &name)?;
            }
        }
        Ok(())
    }

    /// Add the numbers that a runtime in the process publishes.
    pub fn add_numbers(&mut self, time: u64) -> io::Result<()> {
        if self.live.is_none() {
            self.live = Live::find(self.pid).ok();
        }
        let Some(Ok(copy)) = self.live.as_ref().map(Live::read) else {
            self.live = None;
            return Ok(());
        };
        let told = Told::new(&copy);
        if let Some(trace) = &mut self.trace {
            let counts = json!({ "running": told.running, "ready": told.ready });
            trace.counter(time, "threads in lissom", counts)?;
            let waits = json!({ "waits": told.counters.get("blocks") });
            trace.counter(time, "waits in user space so far", waits)?;
        }
        self.locks = told.locks;
        Ok(())
    }

    /// Complete the trace. last: the states at the end, if known. about: facts about the recording.
    ///
    /// Returns the graph.
    pub fn finish(
        mut self,
        now: u64,
        last: &[Event],
        about: &Value,
        title: String,
    ) -> io::Result<Drawn> {
        self.timeline.refresh(last);
        let Recorder { timeline, trace, graph, names, failed, .. } = &mut self;
        let mut take = |timeline: &Timeline, part: Part| {
            if let Err(error) = write(timeline, trace.as_mut(), graph, names, &part) {
                failed.get_or_insert(error);
            }
        };
        timeline.finish(now, &mut take);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let Some(trace) = self.trace.take() {
            trace.finish(about)?;
        }
        let locks: Vec<String> = self
            .locks
            .iter()
            .take(8)
            .map(|lock| {
                let name = self.names.futex(lock.address);
                format!("{} waits in user space at {name}", lock.waits)
            })
            .collect();
        let names = &self.names;
        let named = |object| match object {
            Object::Futex(futex) => {
                names.futexes.get(&futex).cloned().unwrap_or_else(|| format!("{futex:#x}"))
            }
            Object::Call(call) => calls::name(call),
        };
        let mut drawn = self.graph.drawn(title, &self.timeline, named);
        if !locks.is_empty() {
            let all = locks.join(", ");
            drawn.notes.push(format!("threads that lissom switches; since the start, about {all}"));
        }
        Ok(drawn)
    }
}

fn write(
    timeline: &Timeline,
    trace: Option<&mut Trace<BufWriter<File>>>,
    graph: &mut Graph,
    names: &mut Addresses,
    part: &Part,
) -> io::Result<()> {
    if let Part::Span(span) = part {
        graph.add(timeline, span);
        if let State::Waiting { wait: Wait { futex: Some(futex), .. }, .. } = span.state {
            names.futex(futex);
        }
    }
    let Some(trace) = trace else { return Ok(()) };
    match part {
        Part::Named(thread) => {
            let name = timeline.bare_name(*thread);
            // An exec renames the program.
            if *thread == names.pid {
                trace.named("process_name", *thread, name)?;
            }
            trace.named("thread_name", *thread, name)
        }
        Part::Arrow { from, to } => trace.arrow(*from, *to, "wakes"),
        Part::Span(span) => write_span(timeline, trace, names, span),
    }
}

fn write_span(
    timeline: &Timeline,
    trace: &mut Trace<BufWriter<File>>,
    names: &mut Addresses,
    span: &Span,
) -> io::Result<()> {
    let (cat, name, mut args) = match span.state {
        State::Running { cpu } => ("cpu", "running".to_string(), json!({ "cpu": cpu })),
        State::Active => ("cpu", "running or ready".to_string(), Value::Null),
        State::Ready => ("cpu", "ready, without a CPU".to_string(), Value::Null),
        State::Waiting { wait, waker } => {
            let mut args = json!({});
            if let Some(call) = wait.call {
                args["call"] = calls::name(call).into();
            }
            if let Some(futex) = wait.futex {
                args["futex"] = format!("{futex:#x}").into();
            }
            if let Some(holder) = wait.holder {
                args["holder"] = timeline.name(holder).into();
            }
            if let Some(waker) = waker {
                let is_certain = timeline.has_woken(span.thread, wait, &waker);
                let key = if is_certain { "woken_by" } else { "woken_beside" };
                args[key] = format!("{} [{}]", text(&waker.name), waker.thread).into();
            }
            ("wait", names.wait(wait), args)
        }
    };
    if span.unfinished && matches!(span.state, State::Waiting { .. }) {
        args["unfinished"] = true.into();
    }
    trace.span(span.thread, (span.from, span.to), cat, &name, args)
}
