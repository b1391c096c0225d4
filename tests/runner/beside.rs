//! Companion programs of a case (`BEFORE`) and their readiness.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Instant;

use super::case::Companion;

/// A running companion. Its output goes to the files `before.N.out` and `before.N.err`.
pub struct Running {
    child: Child,
    copies: Vec<JoinHandle<()>>,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reap the companion. The caller must have killed it.
    pub fn finish(mut self) {
        let _ = self.child.wait();
        for copy in self.copies {
            let _ = copy.join();
        }
    }
}

/// Start the companion with `command`, whose last argument is the companion's script. Returns once
/// it has printed its READY line, or its first line if the case names none.
///
/// Errors: the companion cannot be started, ends without that line, or misses `deadline`.
pub fn start(
    mut command: Command,
    companion: &Companion,
    folder: &Path,
    number: usize,
    deadline: Instant,
) -> Result<Running, (String, Option<Running>)> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| (format!("bash: {e}"), None))?;
    let (said, lines) = mpsc::channel();
    let outputs: [(&str, Option<Box<dyn Read + Send>>); 2] = [
        ("out", child.stdout.take().map(|o| Box::new(o) as _)),
        ("err", child.stderr.take().map(|e| Box::new(e) as _)),
    ];
    let copies = outputs.into_iter().filter_map(|(name, pipe)| {
        let copy = File::create(folder.join(format!("before.{number}.{name}"))).ok()?;
        let (pipe, said) = (pipe?, said.clone());
        Some(std::thread::spawn(move || copy_lines(pipe, copy, &said)))
    });
    let running = Running { child, copies: copies.collect() };
    drop(said);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) if companion.ready.as_ref().is_none_or(|ready| ready.accepts(&line)) => {
                return Ok(running);
            }
            Ok(_) => {}
            Err(_) => {
                let what = format!("the program beside it was not ready: {}", companion.command);
                return Err((what, Some(running)));
            }
        }
    }
}

fn copy_lines(pipe: Box<dyn Read + Send>, mut copy: File, said: &Sender<String>) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let _ = copy.write_all(&line);
        let _ = said.send(String::from_utf8_lossy(&line).trim_end_matches('\n').to_string());
        line.clear();
    }
}
