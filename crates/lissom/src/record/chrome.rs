//! Write a trace in Chrome's JSON format, which Perfetto, chrome://tracing and Speedscope read.
//! Times are in microseconds since the recording began.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Default, Serialize)]
pub struct Entry<'a> {
    pub name: &'a str,
    /// Category, for filters.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub cat: &'a str,
    /// Phase: X, i, C, s, f or M.
    pub ph: &'a str,
    pub ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<f64>,
    pub pid: u32,
    pub tid: u32,
    /// Pairs the ends of an arrow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// "e": the arrow ends at the span that encloses its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bp: Option<&'a str>,
    /// "t": the instant belongs to one thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s: Option<&'a str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub args: Value,
}

pub struct Trace<W> {
    out: W,
    pid: u32,
    /// In ns of CLOCK_MONOTONIC.
    begin: u64,
    bytes: u64,
    entries: u64,
    arrows: u64,
}

impl<W: Write> Trace<W> {
    pub fn new(mut out: W, pid: u32, begin: u64) -> io::Result<Trace<W>> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(Trace { out, pid, begin, bytes: 0, entries: 0, arrows: 0 })
    }

    /// Return the size so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let text = serde_json::to_string(entry)?;
        let separator = if self.entries == 0 { "\n" } else { ",\n" };
        self.entries += 1;
        self.bytes += (separator.len() + text.len()) as u64;
        self.out.write_all(separator.as_bytes())?;
        self.out.write_all(text.as_bytes())
    }

    fn us(&self, time: u64) -> f64 {
        time.saturating_sub(self.begin) as f64 / 1000.0
    }

    /// Add the name of the process or a thread. kind: `process_name` or `thread_name`.
    pub fn named(&mut self, kind: &str, thread: u32, name: &str) -> io::Result<()> {
        let args = serde_json::json!({ "name": name });
        self.add(&Entry {
            name: kind,
            ph: "M",
            pid: self.pid,
            tid: thread,
            args,
            ..Entry::default()
        })
    }

    /// Add a span of a thread, cut off at the begin of the recording.
    pub fn span(
        &mut self,
        thread: u32,
        (from, to): (u64, u64),
        cat: &str,
        name: &str,
        args: Value,
    ) -> io::Result<()> {
        let (ts, pid) = (self.us(from), self.pid);
        let dur = Some(to.saturating_sub(from.max(self.begin)) as f64 / 1000.0);
        self.add(&Entry { name, cat, ph: "X", ts, dur, pid, tid: thread, args, ..Entry::default() })
    }

    pub fn instant(&mut self, thread: u32, time: u64, cat: &str, name: &str) -> io::Result<()> {
        let (ts, pid) = (self.us(time), self.pid);
        self.add(&Entry {
            name,
            cat,
            ph: "i",
            ts,
            pid,
            tid: thread,
            s: Some("t"),
            ..Entry::default()
        })
    }

    pub fn counter(&mut self, time: u64, name: &str, args: Value) -> io::Result<()> {
        let (ts, pid) = (self.us(time), self.pid);
        self.add(&Entry { name, ph: "C", ts, pid, tid: pid, args, ..Entry::default() })
    }

    /// Add an arrow from a thread's span to another's. Both ends are threads and times.
    pub fn arrow(&mut self, from: (u32, u64), to: (u32, u64), name: &str) -> io::Result<()> {
        self.arrows += 1;
        for (ph, bp, (tid, time)) in [("s", None, from), ("f", Some("e"), to)] {
            let (ts, pid, id) = (self.us(time), self.pid, Some(self.arrows));
            self.add(&Entry { name, cat: "wake", ph, ts, pid, tid, id, bp, ..Entry::default() })?;
        }
        Ok(())
    }

    /// Write the end. about: facts about the recording.
    pub fn finish(mut self, about: &Value) -> io::Result<()> {
        writeln!(self.out, "\n],\"otherData\":{about}}}")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document() {
        let mut out = Vec::new();
        let mut trace = Trace::new(&mut out, 7, 1_000).expect("memory");
        trace.named("thread_name", 8, "a \"b\"").expect("memory");
        // It began before the recording.
        trace.span(8, (0, 3_500), "wait", "poll", Value::Null).expect("memory");
        trace.arrow((8, 2_000), (9, 3_000), "wakes").expect("memory");
        trace.finish(&serde_json::json!({ "lost": 0 })).expect("memory");
        let document: Value = serde_json::from_slice(&out).expect("valid JSON");
        let events = document["traceEvents"].as_array().expect("an array");
        assert_eq!(events[0]["args"]["name"], "a \"b\"");
        assert_eq!((&events[1]["ts"], &events[1]["dur"]), (&0.0.into(), &2.5.into()));
        assert_eq!((&events[2]["ph"], &events[3]["ph"]), (&"s".into(), &"f".into()));
        assert_eq!(events[2]["id"], events[3]["id"]);
        assert_eq!(document["otherData"]["lost"], 0);
    }
}
