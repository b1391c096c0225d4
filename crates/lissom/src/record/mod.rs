//! `lissom record`: write a trace of one program's threads, and a graph of their waits.

mod chrome;
mod graph;
mod recorder;
mod svg;
mod target;
mod timeline;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum, ValueHint};
use serde_json::{Value, json};

use os::process;
use os::stop::Stop;
use recorder::Recorder;
use target::Target;
use ui::exit::Failure;
use ui::text::{grouped, wrap};
use ui::time::Unit;
use watch::look::Which;
use watch::spinning::Sampling;
use watch::trace::{Event, Scan, Tracing};

/// Record the threads of a program: a trace for Perfetto, and a graph of waits
///
/// The trace shows when each thread ran, was ready or waited, at which lock and for which holder,
/// which thread woke it, and in which loops it spun. Open it at https://ui.perfetto.dev or in
/// chrome://tracing. The program is not stopped, and need not be under lissom.
///
/// As root, BPF records each switch exactly; otherwise lissom samples /proc. Loops that wait are
/// found as by `lissom stat`, which also needs root.
#[derive(Args)]
#[command(override_usage = "lissom record [OPTIONS] <PID>
       lissom record [OPTIONS] -- <CMD>...")]
#[command(group(clap::ArgGroup::new("what").required(true).args(["pid", "command"])))]
#[command(after_long_help = "\
Cost: with BPF, 0.4 us at each switch and 0.2 us at each wake-up of the
program's threads, and 120 bytes of the file for each event. By samples, 10 us
of another CPU for each thread and sample, at most a fifth of a CPU.

Exit code: 0, or 1 if the process does not exist or cannot be recorded, 2 if a
file cannot be created. With CMD the program's own, or 128 + N if signal N
ended it.

Examples:
  lissom record 1234 --duration 10s
  lissom record 1234 --output app.json --graph=app.svg
  lissom record 1234 --duration 2s --graph
  lissom record -- ./solver --threads 64")]
pub struct RecordArgs {
    /// Process ID of the program
    #[arg(value_name = "PID",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pid: Option<u32>,

    /// Program to start and record, with its arguments; `lissom run -- PROGRAM` runs it under
    /// lissom. Ctrl-C ends it, too
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// File for the trace [default: trace.json; none with --graph alone]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Also write the wait-for graph: threads, the locks that they waited for, and the threads that
    /// held or released these. FILE ends in .svg (a picture) or .txt. Without FILE, print text
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          default_missing_value = "-", value_parser = graph_file)]
    graph: Option<PathBuf>,

    /// Time to record, 10ms to 24h [default: until Ctrl-C, or the end of the program]
    #[arg(long, value_name = "TIME", value_parser = ui::time::parser(Unit::S, "10ms", "24h"))]
    duration: Option<Duration>,

    /// Stop when the trace has this size, in MiB, 1 to 4096
    #[arg(long, value_name = "MIB", default_value = "256",
          value_parser = clap::value_parser!(u64).range(1..=4096))]
    max_size: u64,

    /// Source of the trace
    #[arg(long, value_enum, default_value = "auto")]
    method: Method,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// bpf if it is permitted, otherwise sample
    Auto,
    /// Record each switch and wake-up in the kernel. Needs root, or CAP_BPF and CAP_PERFMON, and
    /// Linux 5.15
    Bpf,
    /// Read the states of the threads from /proc each millisecond, less often if there are many.
    /// Misses shorter waits, and does not see wake-ups
    Sample,
}

fn graph_file(text: &str) -> Result<PathBuf, String> {
    let is_known = text == "-" || text.ends_with(".svg") || text.ends_with(".txt");
    is_known.then(|| text.into()).ok_or_else(|| "the file has to end in .svg or .txt".into())
}

/// Time between two reads of the buffer of BPF events. It holds 150,000 events.
const DRAIN_EVERY: Duration = Duration::from_millis(10);
const SAMPLE_EVERY: Duration = Duration::from_millis(1);
/// Pause between samples, in multiples of the time that one took.
const SAMPLE_PAUSE: u32 = 4;
const LOOK_EVERY: Duration = Duration::from_millis(100);
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Source of events.
enum Source {
    Bpf(Box<Tracing>),
    Sample,
}

/// Reason for which the recording ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Signal,
    Duration,
    Size,
    Program,
}

/// Run the verb. Returns the exit code.
pub fn record(args: &RecordArgs) -> anyhow::Result<i32> {
    let found = args.pid.map(Target::find).transpose()?;
    let default = args.graph.is_none().then(|| PathBuf::from("trace.json"));
    let output = args.output.clone().or(default);
    let file = output.as_deref().map(|path| create("--output", path)).transpose()?;
    let graph = args.graph.as_deref().filter(|path| *path != Path::new("-"));
    let graph = graph.map(|path| Ok::<_, Failure>((path, create("--graph", path)?))).transpose()?;
    let stop = Stop::on_signals()?;
    let source = source(args.method)?;
    let begin = now();
    let target = match found {
        Some(target) => target,
        None => Target::start(&args.command, source.tracing())?,
    };
    let mut session = Session {
        recorder: Recorder::new(target.pid, target.has_our_numbers(), begin, file)?,
        scan: Scan::new(target.pid),
        sampling: Sampling::of_samples(&Which::These(vec![target.pid])),
        is_under_lissom: target.is_under_lissom(),
        source,
        target,
        begin,
    };
    session.say_start(args);
    let end = session.run(args, &stop);
    let end = end.map_err(|e| cannot_write(e, output.as_deref()))?;
    let target = session.finish(end, output.as_deref(), args.graph.is_some(), graph)?;
    Ok(target.wait(end == End::Signal)?)
}

/// Create the file of an option.
fn create(option: &str, path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|e| {
        let path = path.display();
        Failure::wrong_use(format!("cannot create {option} {path}: {e}; pass a writable path"))
    })
}

/// Name the trace in an error of the operating system. Other errors name their object.
fn cannot_write(error: anyhow::Error, path: Option<&Path>) -> anyhow::Error {
    match path.filter(|_| error.is::<io::Error>()) {
        Some(path) => anyhow::anyhow!(
            "cannot write --output {}: {error:#}; pass a path with more space, or lower --max-size",
            path.display()
        ),
        None => error,
    }
}

fn source(method: Method) -> anyhow::Result<Source> {
    let load = || match process::may_trace_by_bpf() {
        true => Tracing::load(),
        false => Err(anyhow::anyhow!("permission denied")),
    };
    match (method, load as fn() -> anyhow::Result<Tracing>) {
        (Method::Sample, _) => Ok(Source::Sample),
        (method, load) => match load() {
            Ok(tracing) => Ok(Source::Bpf(Box::new(tracing))),
            Err(e) if method == Method::Bpf => Err(e.context(
                "cannot record by BPF; run as root on Linux 5.15 or newer, or pass --method=sample",
            )),
            Err(e) => {
                let text = format!(
                    "lissom: cannot record by BPF ({e:#}): samples of /proc miss short waits; run \
                     as root for exact times"
                );
                ui::message!("{}", wrap(&text, "", 2).join("\n"));
                Ok(Source::Sample)
            }
        },
    }
}

impl Source {
    fn tracing(&self) -> Option<&Tracing> {
        match self {
            Source::Bpf(tracing) => Some(tracing),
            Source::Sample => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Source::Bpf(_) => "BPF",
            Source::Sample => "samples",
        }
    }
}

struct Session {
    target: Target,
    source: Source,
    recorder: Recorder,
    scan: Scan,
    /// Samples of loops that wait, or why there are none.
    sampling: anyhow::Result<Sampling>,
    is_under_lissom: bool,
    /// In ns of CLOCK_MONOTONIC.
    begin: u64,
}

impl Session {
    fn say_start(&self, args: &RecordArgs) {
        let Target { name, pid, .. } = &self.target;
        let until = match args.duration {
            Some(time) => format!("for {}", graph::time(time.as_nanos() as u64)),
            None => "until Ctrl-C or its end".into(),
        };
        ui::message!("lissom: recording {name} [{pid}] by {} {until}", self.source.name());
    }

    fn run(&mut self, args: &RecordArgs, stop: &Stop) -> anyhow::Result<End> {
        let begin = Instant::now();
        let end = args.duration.map(|duration| begin + duration);
        let is_sampled = self.source.tracing().is_none();
        // BPF first, so that no switch is missed: a scan is older than the events behind it.
        if let Source::Bpf(tracing) = &self.source {
            tracing.shared().set_target(self.target.pid);
            let mut events = self.scan.look().unwrap_or_default();
            events.extend(tracing.events()?.0);
            self.add(events)?;
        } else {
            let Target { name, pid, .. } = &self.target;
            match self.scan.look() {
                Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                    return Err(anyhow::anyhow!(Failure {
                        code: ui::exit::FAILED,
                        message: format!(
                            "cannot read the states of the threads of {name} [{pid}]: {e}; run as \
                             root, or as its user with /proc/sys/kernel/yama/ptrace_scope at 0"
                        ),
                    }));
                }
                events => self.add(events.unwrap_or_default())?,
            }
        }
        let (mut looked, mut said) = (begin, begin);
        loop {
            let at = Instant::now();
            let mut behind = false;
            if is_sampled {
                let events = self.scan.look().unwrap_or_default();
                self.add(events)?;
            } else if let Source::Bpf(tracing) = &self.source {
                let (events, more) = tracing.events()?;
                behind = more;
                self.add(events)?;
            }
            if stop.asked() {
                return Ok(End::Signal);
            }
            if end.is_some_and(|end| at >= end) {
                return Ok(End::Duration);
            }
            if self.recorder.bytes() >= args.max_size << 20 {
                return Ok(End::Size);
            }
            if looked.elapsed() >= LOOK_EVERY {
                looked = Instant::now();
                if !self.target.lives() {
                    return Ok(End::Program);
                }
                self.look()?;
            }
            if said.elapsed() >= SAY_EVERY && io::stderr().is_terminal() {
                said = Instant::now();
                self.say_progress(begin.elapsed());
            }
            if behind {
                continue;
            }
            let pause = match is_sampled {
                true => SAMPLE_EVERY.max(at.elapsed() * SAMPLE_PAUSE),
                false => DRAIN_EVERY,
            };
            let until = Instant::now() + pause;
            stop.wait(end.map_or(until, |end| end.min(until)));
        }
    }

    fn add(&mut self, mut events: Vec<Event>) -> io::Result<()> {
        events.sort_by_key(|event| event.time);
        self.recorder.add(&events)
    }

    /// Add samples of loops, and numbers of the runtime.
    fn look(&mut self) -> io::Result<()> {
        if let Ok(sampling) = &mut self.sampling {
            let samples = sampling.samples();
            self.recorder.add_spins(&samples)?;
        }
        // A program that was just started maps the runtime later.
        self.is_under_lissom |= self.target.is_started() && self.target.is_under_lissom();
        if self.is_under_lissom { self.recorder.add_numbers(now()) } else { Ok(()) }
    }

    fn say_progress(&self, time: Duration) {
        let (threads, bytes) = (self.recorder.threads(), self.recorder.bytes() as f64);
        let (seconds, mb) = (time.as_secs(), bytes / 1e6);
        eprint!("\rlissom: {seconds} s, {threads} threads, {mb:.1} MB \x1b[K\r");
        let _ = io::stderr().flush();
    }

    /// Complete the files, and say what they hold. Returns the program.
    fn finish(
        mut self,
        end: End,
        output: Option<&Path>,
        wants_graph: bool,
        graph: Option<(&Path, File)>,
    ) -> anyhow::Result<Target> {
        let mut lost = 0;
        if let Source::Bpf(tracing) = &self.source {
            tracing.shared().set_target(0);
            lost = tracing.lost();
        }
        let (now, last) = (now(), self.scan.look().unwrap_or_default());
        // All that is left in the buffer: no more events come.
        while let Source::Bpf(tracing) = &self.source {
            let (events, more) = tracing.events()?;
            self.add(events)?;
            if !more {
                break;
            }
        }
        self.is_under_lissom |= self.recorder.knows_runtime();
        let seconds = (now - self.begin) as f64 / 1e9;
        // An exec may have renamed it.
        self.target.name = self.recorder.program().unwrap_or(self.target.name);
        let Target { name, pid, .. } = &self.target;
        let source = self.source.name();
        let title = format!("waits of {name} [{pid}] in {seconds:.1} s, by {source}");
        let about = self.about(seconds, lost);
        let (entries, bytes) = (self.recorder.entries(), self.recorder.bytes() as f64);
        let mut drawn = self
            .recorder
            .finish(now, &last, &about, title)
            .map_err(|e| cannot_write(e.into(), output))?;
        if lost > 0 {
            drawn.notes.push(format!("{} lost events", grouped(lost.into())));
        }
        if let Some(path) = output {
            let (path, entries, mb) = (path.display(), grouped(entries), bytes / 1e6);
            ui::message!("lissom: wrote {path}: {entries} events, {seconds:.1} s, {mb:.1} MB");
        }
        if end == End::Size {
            ui::message!("lissom: stopped at the size of --max-size; record a shorter --duration");
        }
        if lost > 0 {
            let lost = grouped(lost.into());
            let text = format!(
                "lissom: {lost} events are lost, and the trace has gaps: the program switched \
                 faster than lissom wrote; record with --graph alone, or --method=sample"
            );
            ui::message!("{}", wrap(&text, "", 2).join("\n"));
        }
        if self.is_under_lissom {
            let text = format!("lissom: {UNDER_LISSOM}");
            ui::message!("{}", wrap(&text, "", 2).join("\n"));
        }
        match graph {
            Some((path, mut file)) => {
                let is_svg = path.extension().is_some_and(|ending| ending == "svg");
                let text = if is_svg { svg::draw(&drawn) } else { graph::text(&drawn) };
                file.write_all(text.as_bytes())
                    .with_context(|| format!("cannot write --graph {}", path.display()))?;
                ui::message!("lissom: wrote {}", path.display());
            }
            None if wants_graph => ui::output::print(graph::text(&drawn).as_bytes())?,
            None => {}
        }
        Ok(self.target)
    }

    /// Return facts about the recording.
    fn about(&self, seconds: f64, lost: u32) -> Value {
        json!({
            "lissom": env!("CARGO_PKG_VERSION"),
            "program": self.target.name,
            "pid": self.target.pid,
            "source": self.source.name(),
            "seconds": seconds,
            "begin_monotonic_ns": self.begin,
            "lost_events": lost,
            "spinning_not_sampled": self.sampling.as_ref().err().map(|e| format!("{e:#}")),
            "note": self.is_under_lissom.then_some(UNDER_LISSOM),
        })
    }
}

/// The kernel does not see these switches, and the runtime keeps no record of each.
const UNDER_LISSOM: &str = "the rows of the trace are kernel threads: lissom switches the \
                            program's threads between them in user space, and a row has the name \
                            of its kernel thread. Waits in user space appear as counters only";

fn now() -> u64 {
    process::monotonic().as_nanos() as u64
}
