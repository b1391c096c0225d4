//! The destinations of a benchmark's report.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use ui::output::{self, Json};

pub struct Outputs {
    report: output::Report,
    markdown: Option<File>,
}

impl Outputs {
    /// Create the files. Call this before measuring, so that a wrong path fails at once.
    pub fn open(json: &Json, markdown: Option<&Path>) -> anyhow::Result<Outputs> {
        let markdown = markdown.map(|path| output::create("--markdown", path)).transpose()?;
        Ok(Outputs { report: json.open()?, markdown })
    }

    pub fn write(
        self,
        report: &impl Serialize,
        markdown: impl Fn() -> String,
        text: impl Fn() -> String,
    ) -> anyhow::Result<()> {
        match self.report.write(|| output::json(report), text) {
            // The exit code tells what was measured.
            Err(e) if output::is_closed(&e) => {}
            done => done?,
        }
        if let Some(mut file) = self.markdown {
            file.write_all(markdown().as_bytes()).context("--markdown")?;
        }
        Ok(())
    }
}
