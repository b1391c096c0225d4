//! Read the case files.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::active::Counter;
use super::expect::{Exit, Line};
use super::requires;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Plain,
    Native,
    Switch(&'static str),
}

#[derive(Clone)]
pub struct Case {
    pub file: String,
    pub name: String,
    pub run: String,
    /// None: not checked.
    pub stdout: Option<Vec<Line>>,
    pub stderr: Option<Vec<Line>>,
    pub exit: Exit,
    pub requires: Vec<String>,
    pub timeout: Duration,
    pub levels: Vec<Level>,
    pub ratios: Vec<u32>,
    pub repeat: u32,
    /// (name, value); a value of None removes the variable.
    pub environment: Vec<(String, Option<String>)>,
    /// Programs to start before RUN, in order.
    pub before: Vec<Companion>,
    /// Run this case while no other runs.
    pub exclusive: bool,
    /// Text that the reason of some natively running process must contain.
    pub native: Option<String>,
    /// Levels at which no switch is expected even though threads outnumber slots.
    pub unswitched: Vec<Level>,
    pub counters: Vec<Counter>,
}

/// A program that runs beside the case, and the output line that reports it ready.
#[derive(Clone)]
pub struct Companion {
    pub command: String,
    pub ready: Option<Line>,
}

pub fn read_all(folder: &Path) -> Result<Vec<Case>, String> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        cases.extend(read(&stem, &text).map_err(|e| format!("{}:{e}", path.display()))?);
    }
    Ok(cases)
}

fn read(file: &str, text: &str) -> Result<Vec<Case>, String> {
    let defaults = Case {
        file: file.to_string(),
        name: String::new(),
        run: String::new(),
        stdout: None,
        stderr: None,
        exit: Exit::Code(0),
        requires: Vec::new(),
        timeout: Duration::from_secs(30),
        levels: vec![Level::Plain],
        ratios: Vec::new(),
        repeat: 1,
        environment: Vec::new(),
        before: Vec::new(),
        exclusive: false,
        native: None,
        unswitched: Vec::new(),
        counters: Vec::new(),
    };
    let mut reader = Reader { cases: vec![defaults], given: HashSet::new() };
    for (number, keyword, value) in logical_lines(text)? {
        reader.line(&keyword, &value).map_err(|e| format!("{number}: {e}"))?;
    }
    let mut cases = reader.cases;
    cases.remove(0); // the defaults
    let mut names = HashSet::new();
    for case in &cases {
        if case.run.is_empty() {
            return Err(format!(" case '{}' has no RUN", case.name));
        }
        if !names.insert(&case.name) {
            return Err(format!(" two cases are called '{}'", case.name));
        }
    }
    Ok(cases)
}

/// Return (line number, keyword, value). Joins continuation lines and drops comments.
fn logical_lines(text: &str) -> Result<Vec<(usize, String, String)>, String> {
    let mut lines: Vec<(usize, String, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(more) = line.strip_prefix("  ") {
            let Some(last) = lines.last_mut() else {
                return Err(format!("{}: nothing to continue", index + 1));
            };
            last.2 += &format!("\n{more}");
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            let (keyword, value) = line.split_once(' ').unwrap_or((line, ""));
            lines.push((index + 1, keyword.to_string(), value.to_string()));
        }
    }
    Ok(lines)
}

struct Reader {
    /// Entry 0 holds the file's defaults.
    cases: Vec<Case>,
    /// Keywords that the current case has set: its first use of one drops the file's default.
    given: HashSet<String>,
}

impl Reader {
    fn line(&mut self, keyword: &str, value: &str) -> Result<(), String> {
        if keyword == "NAME" {
            let mut case = self.cases[0].clone();
            case.name = value.trim().to_string();
            self.cases.push(case);
            self.given.clear();
            return Ok(());
        }
        let first = self.given.insert(keyword.to_string());
        let Some(case) = self.cases.last_mut() else { return Ok(()) };
        match keyword {
            "RUN" => {
                if first {
                    case.run.clear();
                } else {
                    case.run.push('\n');
                }
                case.run += value;
            }
            "EXPECT" => add_line(&mut case.stdout, first, value)?,
            "EXPECT_STDERR" => add_line(&mut case.stderr, first, value)?,
            "EXPECT_EXIT" => case.exit = Exit::parse(value.trim())?,
            "REQUIRES" => {
                let words: Vec<String> = value.split_whitespace().map(str::to_string).collect();
                words.iter().try_for_each(|word| requires::check(word))?;
                add(&mut case.requires, first, words);
            }
            "TIMEOUT" => case.timeout = Duration::from_secs_f64(number(value)?),
            "LEVELS" => {
                case.levels = value.split_whitespace().map(level).collect::<Result<_, _>>()?;
            }
            "RATIOS" => {
                case.ratios = value.split_whitespace().map(number).collect::<Result<_, _>>()?;
            }
            "REPEAT" => case.repeat = number(value)?,
            "ENV" => {
                let entry = match value.split_once('=') {
                    Some((name, value)) => (name.to_string(), Some(value.to_string())),
                    None => (value.trim().to_string(), None),
                };
                add(&mut case.environment, first, [entry]);
            }
            "BEFORE" if !is_simple(value) => {
                return Err(
                    "BEFORE is followed by one command; write bash -c '...' for more".into()
                );
            }
            "BEFORE" => add(
                &mut case.before,
                first,
                [Companion { command: value.to_string(), ready: None }],
            ),
            "READY" => match case.before.last_mut() {
                Some(companion) => companion.ready = Some(Line::parse(value)?),
                None => return Err("READY without a BEFORE".into()),
            },
            "EXCLUSIVE" => case.exclusive = true,
            "NATIVE" => case.native = Some(value.trim().to_string()),
            "UNSWITCHED" => {
                match value.split_once(": ") {
                    Some((levels, reason)) if !reason.trim().is_empty() => {
                        case.unswitched =
                            levels.split_whitespace().map(level).collect::<Result<_, _>>()?;
                    }
                    _ => return Err(
                        "UNSWITCHED is followed by levels, a colon, and the reason, once a case"
                            .into(),
                    ),
                }
            }
            "COUNTER" => add(&mut case.counters, first, [Counter::parse(value)?]),
            _ => return Err(format!("unknown keyword '{keyword}'")),
        }
        Ok(())
    }
}

/// Whether the command can follow the shell's `exec`: no `;`, `&` or `|` outside quotes and
/// substitutions.
fn is_simple(command: &str) -> bool {
    let (mut quote, mut depth) = (None, 0);
    command.chars().all(|c| {
        match quote {
            Some(q) if q == c => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '(' => depth += 1,
            None if c == ')' => depth -= 1,
            None => return depth > 0 || !";&|".contains(c),
            Some(_) => {}
        }
        true
    })
}

fn add<T>(list: &mut Vec<T>, first: bool, more: impl IntoIterator<Item = T>) {
    if first {
        list.clear();
    }
    list.extend(more);
}

fn add_line(list: &mut Option<Vec<Line>>, first: bool, value: &str) -> Result<(), String> {
    add(list.get_or_insert_default(), first, [Line::parse(value)?]);
    Ok(())
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.trim().parse().map_err(|_| format!("'{}' is not a number that fits here", value.trim()))
}

fn level(name: &str) -> Result<Level, String> {
    Ok(match name {
        "plain" => Level::Plain,
        "native" => Level::Native,
        "off" => Level::Switch("off"),
        "kernel" => Level::Switch("kernel"),
        "user" => Level::Switch("user"),
        "auto" => Level::Switch("auto"),
        _ => return Err(format!("unknown level '{name}'")),
    })
}
