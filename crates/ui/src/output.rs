//! Standard output of the verbs.

use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write as _};
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// Print a line on standard error, with the arguments of `format!`. It is written at once, so that
/// messages of several processes do not mix, and a closed standard error is no failure.
#[macro_export]
macro_rules! message {
    ($($text:tt)*) => {
        $crate::output::message(format!($($text)*))
    };
}

/// Print the text and a line end on standard error in one write. Ignores failures.
pub fn message(mut text: String) {
    text.push('\n');
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Option of verbs that print one report.
#[derive(clap::Args, Clone, Default)]
pub struct Json {
    /// Print one JSON document instead of text. With FILE, write it to this file, and print the
    /// text
    #[arg(
        short = 'j',
        long = "json",
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    json: Option<PathBuf>,
}

impl Json {
    pub fn is_given(&self) -> bool {
        self.json.is_some()
    }

    /// Return whether the document replaces the text.
    pub fn is_alone(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }

    /// Create the file, if there is one. Call this before work that takes long, so that a wrong
    /// path fails at once.
    pub fn open(&self) -> std::result::Result<Report, Failure> {
        let path = self.json.as_deref().filter(|_| !self.is_alone());
        Ok(Report {
            is_alone: self.is_alone(),
            file: path.map(|path| create("--json", path)).transpose()?,
        })
    }
}

/// Option of verbs that report again and again.
#[derive(clap::Args, Clone, Default)]
pub struct JsonLines {
    /// Print each report as a JSON document on one line, instead of text. With FILE, write the
    /// lines to this file, which is emptied at the start, and print the text
    #[arg(
        short = 'j',
        long = "json",
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    json: Option<PathBuf>,
}

impl JsonLines {
    fn option(&self) -> Json {
        Json { json: self.json.clone() }
    }

    pub fn is_given(&self) -> bool {
        self.json.is_some()
    }

    /// Return whether the documents replace the text.
    pub fn is_alone(&self) -> bool {
        self.option().is_alone()
    }

    /// Create the file, if there is one. `Report::line` writes to it.
    pub fn open(&self) -> std::result::Result<Report, Failure> {
        self.option().open()
    }
}

/// Destinations of a report.
pub struct Report {
    is_alone: bool,
    file: Option<File>,
}

impl Report {
    /// Write the report.
    pub fn write(
        mut self,
        document: impl Fn() -> String,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        self.add(document, text)
    }

    /// Write one of several reports, whose document becomes a line.
    pub fn line(
        &mut self,
        document: impl Fn() -> serde_json::Value,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        self.add(|| format!("{}\n", document()), text)
    }

    fn add(&mut self, document: impl Fn() -> String, text: impl FnOnce() -> String) -> Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(document().as_bytes()).map_err(|e| within("--json", &e))?;
        }
        let text = if self.is_alone { document() } else { text() };
        if text.is_empty() { Ok(()) } else { print(text.as_bytes()) }
    }
}

/// Create the file of an option. The error is wrong use, and names both.
pub fn create(option: &str, path: &Path) -> std::result::Result<File, Failure> {
    File::create(path).map_err(|e| {
        let path = path.display();
        let text = format!("cannot create the file of {option} {path}: {e}; pass a writable path");
        Failure::wrong_use(text)
    })
}

fn within(what: &str, e: &Error) -> Error {
    Error::new(e.kind(), format!("{what}: {e}"))
}

/// The reader of standard output has closed the pipe, as in `lissom man | head`. That is no
/// failure.
#[derive(Debug)]
pub struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the reader of standard output has closed it")
    }
}

impl std::error::Error for Closed {}

/// Return whether an error means that standard output is closed.
pub fn is_closed(error: &Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Closed>())
}

/// Write to standard output. Unlike print!, returns an error instead of ending the process.
pub fn print(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe => Error::new(ErrorKind::BrokenPipe, Closed),
        _ => within("cannot write to standard output", &e),
    })
}

/// Format a report as JSON, as all verbs do.
pub fn json(report: &impl serde::Serialize) -> String {
    // Serializing plain numbers and strings cannot fail.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}
