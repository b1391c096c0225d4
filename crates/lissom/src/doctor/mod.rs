//! `lissom doctor`: report what would be active, what not, why, and how to change it.

mod limits;
mod machine;
mod optional;
mod patching;
mod survey;
mod switching;
mod target;

use std::ffi::OsString;

use clap::{Args, ValueHint};
use serde::Serialize;

/// Check whether lissom would be active on this machine, and for a program
///
/// Each line is ok, limited (lissom works, but with less effect), off (programs run natively) or
/// absent (a part that programs do not need), with the reason and what would change it. Without
/// CMD, only the machine is checked. Nothing is changed, except that the runtime is unpacked. CMD
/// is not started: only its dynamic loader runs, to list its libraries.
#[derive(Args)]
#[command(after_long_help = "\
Exit code: 0 if lissom would be active, 1 if programs, or CMD, would run
natively, 2 if an option of lissom is wrong, 127 or 126 if CMD is not found or
cannot be executed. Parts that are absent do not change it.

Examples:
  lissom doctor
  lissom doctor -- ./solver
  lissom doctor --quiet || echo 'programs would run natively'
  lissom doctor --json | jq '.machine[] | select(.state != \"ok\")'")]
pub struct DoctorArgs {
    #[command(flatten)]
    pub json: ui::output::Json,

    /// Print only lines that are limited or off: nothing if all is well. JSON has all lines
    #[arg(short, long)]
    pub quiet: bool,

    /// Program to check
    #[arg(value_name = "CMD", trailing_var_arg = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    /// lissom works, but not with all of its features.
    Limited,
    /// The program would run natively.
    Off,
    /// A part that programs do not need is not there.
    Absent,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Off => "off",
            State::Absent => "absent",
        }
    }
}

#[derive(Serialize)]
pub struct Finding {
    pub what: &'static str,
    pub state: State,
    pub why: String,
    /// Command or setting that would change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub fn ok(what: &'static str, why: impl Into<String>) -> Finding {
        Finding { what, state: State::Ok, why: why.into(), fix: None }
    }

    pub fn limited(what: &'static str, why: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { what, state: State::Limited, why: why.into(), fix: Some(fix.into()) }
    }

    pub fn off(what: &'static str, why: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { what, state: State::Off, why: why.into(), fix: Some(fix.into()) }
    }

    pub fn absent(what: &'static str, why: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { what, state: State::Absent, why: why.into(), fix: Some(fix.into()) }
    }
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    active: bool,
    machine: Vec<Finding>,
    #[serde(flatten)]
    optional: optional::Optional,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<target::Target>,
}

pub fn doctor(args: &DoctorArgs) -> anyhow::Result<i32> {
    let output = args.json.open()?;
    let program = args.command.first().map(|name| target::examine(name)).transpose()?;
    let machine = machine::findings();
    let findings = machine.iter().chain(program.iter().flat_map(|p| &p.findings));
    let active = findings.clone().all(|f| f.state != State::Off);
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        active,
        machine,
        optional: optional::Optional::look(),
        program,
    };
    let text = || if args.quiet { report.problems() } else { report.text() };
    match output.write(|| ui::output::json(&report), text) {
        // The exit code is the verdict.
        Err(e) if ui::output::is_closed(&e) => {}
        done => done?,
    }
    Ok(i32::from(!active))
}

impl Report {
    /// Format the findings that are limited or off.
    fn problems(&self) -> String {
        let optional = self.optional.sections();
        let findings = self
            .machine
            .iter()
            .chain(optional.iter().flat_map(|(_, findings)| findings.iter()))
            .chain(self.program.iter().flat_map(|p| &p.findings))
            .filter(|f| matches!(f.state, State::Limited | State::Off));
        findings.flat_map(finding_lines).map(|line| line + "\n").collect()
    }

    fn text(&self) -> String {
        let mut lines = vec!["This machine".to_string()];
        lines.extend(self.machine.iter().flat_map(finding_lines));
        for (title, findings) in self.optional.sections() {
            lines.extend([String::new(), title.into()]);
            lines.extend(findings.iter().flat_map(finding_lines));
        }
        if let Some(program) = &self.program {
            lines.push(String::new());
            lines.push(program.name.clone());
            lines.extend(program.findings.iter().flat_map(finding_lines));
        }
        lines.push(String::new());
        let whose = if self.program.is_some() { "this program" } else { "programs here" };
        lines.push(if self.active {
            format!("lissom would be active for {whose}.")
        } else {
            format!("lissom would run {whose} natively: see the lines marked off.")
        });
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Format state, subject and reason in columns, and below them the fix, in at most 80 columns.
fn finding_lines(finding: &Finding) -> Vec<String> {
    let first = format!("  {:<8} {:<14} ", finding.state.name(), finding.what);
    let indent = first.chars().count();
    let mut lines = wrap(&finding.why, &first, indent);
    if let Some(fix) = &finding.fix {
        lines.extend(wrap(&format!("-> {fix}"), &" ".repeat(indent), indent + 3));
    }
    lines
}

fn wrap(text: &str, first: &str, indent: usize) -> Vec<String> {
    ui::text::wrap(text, first, indent)
}
