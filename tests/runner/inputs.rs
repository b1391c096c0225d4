//! Run the commands of tests/bad-inputs.txt; which describes itself.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use super::expect::indent;
use super::run::{self, Scratch};

/// A command, and the exit code and the messages that were reviewed.
pub struct Input {
    pub command: String,
    expected: String,
}

/// The file: inputs, and the comments and empty lines before each of them.
pub struct File {
    pub inputs: Vec<Input>,
    before: Vec<String>,
}

impl File {
    pub fn read(path: &Path) -> Result<File, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let (mut file, mut comment) = (File { inputs: vec![], before: vec![] }, String::new());
        for line in text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                file.before.push(std::mem::take(&mut comment));
                file.inputs.push(Input { command: command.into(), expected: String::new() });
            } else if line.is_empty() || line.starts_with('#') {
                comment += &format!("{line}\n");
            } else if let Some(input) = file.inputs.last_mut().filter(|_| comment.is_empty()) {
                input.expected += &format!("{line}\n");
            } else {
                return Err(format!("{}: no command above: {line}", path.display()));
            }
        }
        Ok(file)
    }

    /// Run all commands, and return the file with their results.
    pub fn updated(&self) -> Result<String, String> {
        let mut text = String::new();
        for (before, input) in self.before.iter().zip(&self.inputs) {
            let result = match input.missing() {
                Some(_) => input.expected.clone(),
                None => result(&input.command)?,
            };
            let _ = write!(text, "{before}$ {}\n{result}", input.command);
        }
        Ok(text)
    }
}

impl Input {
    /// Return what this machine lacks to run the command.
    pub fn missing(&self) -> Option<&'static str> {
        let needs_nobody = self.command.starts_with("nobody ");
        (needs_nobody && !*NOBODY_RUNS_LISSOM).then_some("root, and a binary for all users")
    }

    pub fn check(&self) -> Result<(), String> {
        let result = result(&self.command)?;
        if result == self.expected {
            return Ok(());
        }
        Err(format!(
            "{}\nexpected:\n{}but:\n{}If this is right, run LISSOM_TEST_UPDATE=1 cargo test --test \
             cases",
            self.command,
            indent(&self.expected),
            indent(&result)
        ))
    }
}

/// The script that makes the folder of a command, as tests/bad-inputs.txt describes it.
const BEFORE: &str = r#"
exec </dev/null
mkdir folder private
chmod 700 private
echo text >file
echo '{' >cut.json
echo '{}' >empty.json
printf '\377\n' >no-text
printf '#!/nonexistent/interpreter\n' >script
chmod +x script
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
"#;

static NOBODY_RUNS_LISSOM: LazyLock<bool> = LazyLock::new(|| {
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    setpriv.arg(run::lissom()).arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    setpriv.status().is_ok_and(|status| status.success())
});

/// Return the exit code and the output of a command, without empty lines and without names that
/// differ from run to run.
fn result(command: &str) -> Result<String, String> {
    let folder = Scratch::new()?;
    let programs = folder.path().join("bin");
    let text = |e: std::io::Error| format!("{}: {e}", folder.path().display());
    fs::create_dir(&programs).map_err(text)?;
    symlink(run::lissom(), programs.join("lissom")).map_err(text)?;
    let taken = TcpListener::bind("127.0.0.1:0").map_err(text)?;
    let port = taken.local_addr().map_err(text)?.port().to_string();
    let script = format!("{BEFORE}{command} 2>&1");
    let mut bash = Command::new("timeout");
    bash.args(["--signal=KILL", "30", "bash", "-c", &script]);
    bash.current_dir(folder.work()).stdin(Stdio::null()).env_clear();
    let path = std::env::var("PATH").unwrap_or_default();
    bash.env("PATH", format!("{}:{path}", programs.display()));
    bash.env("LC_ALL", "C").env("HOME", "/nonexistent").env("TAKEN_PORT", &port);
    let output = bash.output().map_err(|e| format!("timeout: {e}"))?;
    let code = output.status.code().or(output.status.signal().map(|signal| 128 + signal));
    let mut result = format!("exit {}\n", code.unwrap_or(-1));
    let output = String::from_utf8_lossy(&output.stdout)
        .replace(&*folder.work().to_string_lossy(), "{work}")
        .replace(&format!(":{port}"), ":{port}");
    for line in output.lines().filter(|line| !line.trim().is_empty()) {
        let _ = writeln!(result, "  {}", line.trim_end());
    }
    folder.remove();
    Ok(result)
}
