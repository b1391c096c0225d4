//! Build commands.

use std::ffi::OsString;
use std::path::Path;

use itertools::Itertools as _;

/// Build a list of words from values of different types: text, paths and words.
macro_rules! words {
    ($($word:expr),+ $(,)?) => { Vec::from([$(std::ffi::OsString::from(&$word)),+]) };
}
pub(crate) use words;

/// Split a text at its spaces into words.
pub fn split(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

/// Return the words `before`, then `command`.
pub fn after(before: &[OsString], command: &[OsString]) -> Vec<OsString> {
    [before, command].concat()
}

/// Append options that take numbers.
pub fn add(command: &mut Vec<OsString>, options: &[(&str, f64)]) {
    command.extend(options.iter().flat_map(|(name, value)| words![name, value.to_string()]));
}

/// Build the command of a program of workloads/ that runs `pattern`, with options.
pub fn workload(program: &Path, pattern: &str, options: &[(&str, f64)]) -> Vec<OsString> {
    let mut command = words![program, pattern];
    add(&mut command, options);
    command
}

/// Return words in front of a command that set environment variables, as NAME=value.
pub fn with_variable(name: &str, value: impl AsRef<std::ffi::OsStr>) -> Vec<OsString> {
    let mut setting = OsString::from(format!("{name}="));
    setting.push(value);
    words!["env", setting]
}

/// Format a command for people and for JSON.
pub fn shown<'a>(command: impl IntoIterator<Item = &'a OsString>) -> Vec<String> {
    command.into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Return words in front of a command that restrict it to the first `cpus` of this process's CPUs.
/// Empty if there are no others.
pub fn confined(cpus: u32) -> Vec<OsString> {
    let all = os::process::allowed_cpus();
    if cpus as usize >= all.len() {
        return vec![];
    }
    words!["taskset", "-c", all.iter().take(cpus as usize).join(",")]
}
