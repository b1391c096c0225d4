//! The destinations of a benchmark's report.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Serialize;

pub struct Outputs {
    json_to_stdout: bool,
    json: Option<File>,
    markdown: Option<File>,
}

impl Outputs {
    /// Create the files. Call this before measuring, so that a wrong path fails at once.
    pub fn open(json: Option<&Path>, markdown: Option<&Path>) -> anyhow::Result<Outputs> {
        let create = |option: &str, path: &Path| {
            File::create(path)
                .with_context(|| format!("cannot create the file of {option} {}", path.display()))
        };
        let json_to_stdout = json == Some(Path::new("-"));
        let json =
            json.filter(|_| !json_to_stdout).map(|path| create("--json", path)).transpose()?;
        let markdown = markdown.map(|path| create("--markdown", path)).transpose()?;
        Ok(Outputs { json_to_stdout, json, markdown })
    }

    pub fn write(
        self,
        report: &impl Serialize,
        markdown: impl Fn() -> String,
        text: impl Fn() -> String,
    ) -> anyhow::Result<()> {
        if let Some(mut file) = self.json {
            file.write_all(ui::output::json(report).as_bytes()).context("--json")?;
        }
        if let Some(mut file) = self.markdown {
            file.write_all(markdown().as_bytes()).context("--markdown")?;
        }
        let text = if self.json_to_stdout { ui::output::json(report) } else { text() };
        match ui::output::print(text.as_bytes()) {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => {
                bail!("cannot write to standard output: {e}")
            }
            _ => Ok(()),
        }
    }
}
