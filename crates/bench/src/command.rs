//! Command lines of measured programs.

use std::ffi::OsString;

/// Build a command of words, each of a type that `OsString` can be made from.
macro_rules! command {
    ($($word:expr),* $(,)?) => { vec![$(std::ffi::OsString::from($word)),*] };
}
pub(crate) use command;

/// Append options that take numbers.
pub fn add(command: &mut Vec<OsString>, options: &[(&str, f64)]) {
    command.extend(options.iter().flat_map(|(name, value)| command![name, value.to_string()]));
}

/// Return the words as text, for people and for JSON.
pub fn words<'a>(command: impl IntoIterator<Item = &'a OsString>) -> Vec<String> {
    command.into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
