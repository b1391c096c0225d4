//! Messages about wrong use that clap cannot know: values of environment variables, and programs in
//! place of a verb.

use std::error::Error as _;
use std::ffi::OsStr;
use std::num::ParseIntError;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::Cli;
use os::program;

/// Print the error, and end the process with its exit code.
pub fn exit(mut error: clap::Error) -> ! {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (option, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let verb = text(ContextKind::InvalidSubcommand);
    if let (ErrorKind::UnknownArgument, Some("--pid" | "-p")) = (error.kind(), option.as_deref())
        && let Some(verb @ ("stat" | "top" | "record")) = std::env::args().nth(1).as_deref()
    {
        let text = format!("process IDs have no option: write lissom {verb} PID");
        clap::Error::raw(ErrorKind::UnknownArgument, text + "\n").exit();
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(name) = option.as_deref().filter(|o| !o.starts_with('-'))
        && std::env::args().nth(1).as_deref() == Some("bench")
    {
        let text = format!(
            "there is no benchmark {name}: lissom bench --help lists them; to measure a program, \
             write lissom bench -- {name}\n"
        );
        clap::Error::raw(ErrorKind::UnknownArgument, text).exit();
    }
    if error.kind() == ErrorKind::TooManyValues
        && let (Some(option), Some(value)) = (&option, &value)
    {
        let text = format!("{option} takes no value: omit ={value}\n");
        clap::Error::raw(ErrorKind::TooManyValues, text).exit();
    }
    if error.kind() == ErrorKind::InvalidUtf8
        && let Some(argument) = std::env::args_os().find(|a| a.to_str().is_none())
    {
        let argument = argument.to_string_lossy().into_owned();
        let text = format!("{argument} is not valid UTF-8: only programs and paths may be so\n");
        clap::Error::raw(ErrorKind::InvalidUtf8, text).exit();
    }
    if matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation)
        && let (Some(option), Some(value)) = (option, value)
        && let Some(variable) = variable_of(&option, &value)
    {
        let text = format!("{variable} ({option})");
        error.insert(ContextKind::InvalidArg, ContextValue::String(text));
    }
    if error.source().is_some_and(|source| source.is::<ParseIntError>()) {
        let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
        let (option, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
        let expected = match option.contains("PID") {
            true => "expected a process ID; pidof NAME prints those of a program",
            false => "expected a whole number",
        };
        let text = format!("invalid value '{value}' for '{option}': {expected}\n");
        clap::Error::raw(error.kind(), text).exit();
    }
    if let Some(expected) = error.source().and_then(|source| range(&source.to_string())) {
        let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
        let (option, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
        let text = format!("invalid value '{value}' for '{option}': expected {expected}\n");
        clap::Error::raw(error.kind(), text).exit();
    }
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(name) = verb
        && std::env::args_os().nth(1).is_some_and(|first| first == name.as_str())
        && program::find(OsStr::new(&name), std::env::var_os("PATH").as_deref()).is_ok()
    {
        let arguments = std::env::args_os().skip(1);
        let command: Vec<_> = arguments.map(|a| a.to_string_lossy().into_owned()).collect();
        ui::message!(
            "error: {name} is a program: to run it under lissom, write\n\n  lissom run -- {}",
            command.join(" ")
        );
        std::process::exit(ui::exit::WRONG_USE);
    }
    error.exit()
}

/// Describe the numbers of clap's message "0 is not in 1..=1024". None: it is another message.
fn range(message: &str) -> Option<String> {
    let (least, most) = message.split_once(" is not in ")?.1.split_once("..")?;
    let inclusive = most.strip_prefix('=');
    let (least, most): (i128, i128) =
        (least.parse().ok()?, inclusive.unwrap_or(most).parse().ok()?);
    let most = if inclusive.is_some() { most } else { most - 1 };
    // Larger limits are those of the type.
    Some(match most >= i128::from(i64::MAX) - 1 {
        true => format!("at least {least}"),
        false => format!("{least} to {most}"),
    })
}

/// Return the environment variable from which an option has its value. None: the value is on the
/// command line. option: as clap shows it, such as `--switch <SWITCH>`.
fn variable_of(option: &str, value: &str) -> Option<String> {
    let long = option.split([' ', '=', '[']).next()?;
    let is_given = |argument: &std::ffi::OsString| {
        let argument = argument.to_string_lossy();
        argument == long || argument.starts_with(&format!("{long}="))
    };
    // After `--` come the arguments of a program.
    let mut own = std::env::args_os().take_while(|argument| argument != "--");
    if own.any(|argument| is_given(&argument)) {
        return None;
    }
    let command = Cli::command();
    let options = command.get_subcommands().flat_map(clap::Command::get_arguments);
    let mut named = options.filter(|o| o.get_long().is_some_and(|l| format!("--{l}") == long));
    let variable = named.find_map(clap::Arg::get_env)?.to_str()?.to_string();
    (std::env::var_os(&variable)?.to_string_lossy() == value).then_some(variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let of = |text| range(text).unwrap_or_default();
        assert_eq!(of("0 is not in 1..=1024"), "1 to 1024");
        assert_eq!(of("0 is not in 1..18446744073709551615"), "at least 1");
        assert_eq!(of("9 is not in 0..9"), "0 to 8");
        assert_eq!(of("expected 0 or 1"), "");
    }
}
