//! Expected output and exit status of a case, and their comparison with the actual ones.

use regex::Regex;

#[derive(Clone)]
pub enum Line {
    Exact(String),
    Matches(Regex),
    Never(Regex),
    /// Any number of lines.
    Any,
    Nothing,
}

impl Line {
    pub fn parse(text: &str) -> Result<Line, String> {
        let regex = |pattern: &str| Regex::new(pattern).map_err(|e| e.to_string());
        Ok(match text {
            "..." => Line::Any,
            "(nothing)" => Line::Nothing,
            _ if text.starts_with('~') => Line::Matches(regex(&text[1..])?),
            _ if text.starts_with('!') => Line::Never(regex(&text[1..])?),
            _ => Line::Exact(text.to_string()),
        })
    }

    pub fn accepts(&self, line: &str) -> bool {
        match self {
            Line::Exact(text) => text == line,
            Line::Matches(regex) => regex.is_match(line),
            Line::Never(_) | Line::Any | Line::Nothing => false,
        }
    }

    fn show(&self) -> String {
        match self {
            Line::Exact(text) => text.clone(),
            Line::Matches(regex) => format!("~{regex}"),
            Line::Never(regex) => format!("!{regex}"),
            Line::Any => "...".into(),
            Line::Nothing => "(nothing)".into(),
        }
    }
}

/// Compare the whole output, in order. The error says what is wrong.
pub fn whole(expected: &[Line], output: &str) -> Result<(), String> {
    let lines: Vec<&str> = output.lines().collect();
    let pattern: Vec<&Line> = unwanted(expected, &lines)?;
    // Prohibitions alone do not restrict the rest of the output.
    let only_prohibits = pattern.is_empty() && expected.iter().any(|l| matches!(l, Line::Never(_)));
    if only_prohibits || matches_from(&pattern, &lines) {
        return Ok(());
    }
    let shown: Vec<String> = pattern.iter().map(|l| l.show()).collect();
    Err(format!("expected:\n{}", indent(&shown.join("\n"))))
}

fn matches_from(pattern: &[&Line], lines: &[&str]) -> bool {
    match (pattern.first(), lines.first()) {
        (None, None) => true,
        (Some(Line::Any), _) => {
            matches_from(&pattern[1..], lines)
                || (!lines.is_empty() && matches_from(pattern, &lines[1..]))
        }
        (Some(expected), Some(line)) => {
            expected.accepts(line) && matches_from(&pattern[1..], &lines[1..])
        }
        _ => false,
    }
}

/// Check that each line occurs in the output, in this order.
pub fn contains(expected: &[Line], output: &str) -> Result<(), String> {
    let lines: Vec<&str> = output.lines().collect();
    let mut rest = lines.as_slice();
    for line in unwanted(expected, &lines)?.into_iter().filter(|l| !matches!(l, Line::Any)) {
        let Some(at) = rest.iter().position(|l| line.accepts(l)) else {
            return Err(format!("no line (or none behind the one before) is: {}", line.show()));
        };
        rest = &rest[at + 1..];
    }
    Ok(())
}

/// Check `!` and `(nothing)`, and return the remaining lines.
fn unwanted<'a>(expected: &'a [Line], lines: &[&str]) -> Result<Vec<&'a Line>, String> {
    for line in expected {
        let found = match line {
            Line::Never(regex) => lines.iter().find(|l| regex.is_match(l)),
            Line::Nothing => lines.first(),
            _ => None,
        };
        if let Some(found) = found {
            return Err(format!("expected {}, but there is: {found}", line.show()));
        }
    }
    Ok(expected.iter().filter(|l| !matches!(l, Line::Never(_) | Line::Nothing)).collect())
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    pub fn parse(text: &str) -> Result<Exit, String> {
        let Some(signal) = text.strip_prefix("signal:") else {
            return match text.parse() {
                Ok(code @ 0..=255) => Ok(Exit::Code(code)),
                _ => Err(format!("'{text}' is no exit code")),
            };
        };
        let names = [
            ("HUP", libc::SIGHUP),
            ("INT", libc::SIGINT),
            ("QUIT", libc::SIGQUIT),
            ("ILL", libc::SIGILL),
            ("TRAP", libc::SIGTRAP),
            ("ABRT", libc::SIGABRT),
            ("BUS", libc::SIGBUS),
            ("FPE", libc::SIGFPE),
            ("KILL", libc::SIGKILL),
            ("USR1", libc::SIGUSR1),
            ("SEGV", libc::SIGSEGV),
            ("USR2", libc::SIGUSR2),
            ("PIPE", libc::SIGPIPE),
            ("ALRM", libc::SIGALRM),
            ("TERM", libc::SIGTERM),
            ("SYS", libc::SIGSYS),
        ];
        let named = names.iter().find(|n| n.0 == signal).map(|n| n.1);
        named
            .or_else(|| signal.parse().ok())
            .map(Exit::Signal)
            .ok_or_else(|| format!("'{signal}' is no signal known here; write its number"))
    }
}

pub fn indent(text: &str) -> String {
    text.lines().map(|l| format!("    {l}\n")).collect()
}
