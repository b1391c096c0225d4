//! The manual: a page for lissom, and one for each verb with its options.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::cli;

/// Return all pages, one after the other.
pub fn all() -> io::Result<Vec<u8>> {
    let mut roff = Vec::new();
    for_each(&command(), &mut |_, page| {
        roff.extend(page);
        Ok(())
    })?;
    Ok(roff)
}

/// Write `folder/lissom-run.1` and so on, where `man` finds them.
pub fn write(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    for_each(&command(), &mut |name, page| fs::write(folder.join(format!("{name}.1")), page))
}

fn command() -> clap::Command {
    let mut command = without_help(cli::visible());
    command.build();
    command
}

/// Leave out the verbs `help`: they have no page.
fn without_help(verb: clap::Command) -> clap::Command {
    verb.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn for_each(
    verb: &clap::Command,
    take: &mut impl FnMut(&str, Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    let name = verb.get_display_name().unwrap_or("lissom");
    take(name, page(verb, name)?)?;
    for inner in verb.get_subcommands() {
        for_each(inner, take)?;
    }
    Ok(())
}

fn page(verb: &clap::Command, name: &str) -> io::Result<Vec<u8>> {
    let source = concat!("lissom ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(verb.clone()).title(name).source(source);
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if verb.has_subcommands() {
        man.render_subcommands_section(&mut roff)?;
    }
    let after = verb.get_after_long_help().or(verb.get_after_help());
    for (head, text) in sections(&after.map(ToString::to_string).unwrap_or_default()) {
        let mut section = Roff::new();
        section.control("SH", [head.as_str()]).control("nf", []);
        text.lines().for_each(|line| {
            section.text([roman(line)]);
        });
        section.control("fi", []).to_writer(&mut roff)?;
    }
    Ok(roff)
}

/// Cut the text after the options into sections. "Exit code: ..." and paragraphs that begin with a
/// line such as "Examples:" have one each; others belong to the one before.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = Vec::new();
    for paragraph in text.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let first = paragraph.lines().next().unwrap_or_default();
        let is_word = |head: &str| head.chars().all(char::is_alphabetic);
        let (head, rest) = match first.strip_suffix(':').filter(|head| is_word(head)) {
            Some(head) => {
                (Some(head.to_uppercase()), paragraph[first.len()..].trim_start_matches('\n'))
            }
            None => match paragraph.strip_prefix("Exit code: ") {
                Some(rest) => (Some("EXIT STATUS".to_string()), rest),
                None => (None, paragraph),
            },
        };
        match (head, list.last_mut()) {
            (Some(head), _) => list.push((head, rest.to_string())),
            (None, Some((_, text))) => *text += &format!("\n\n{rest}"),
            (None, None) => list.push(("NOTES".to_string(), rest.to_string())),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_a_page() {
        let text = "A dash: none.\n\nExit code: 0, or 1.\n\nExamples:\n  lissom run -- a\n\n  b";
        let list = sections(text);
        let list: Vec<_> = list.iter().map(|(head, text)| (head.as_str(), text.as_str())).collect();
        assert_eq!(
            list,
            [
                ("NOTES", "A dash: none."),
                ("EXIT STATUS", "0, or 1."),
                ("EXAMPLES", "  lissom run -- a\n\n  b")
            ]
        );
    }

    #[test]
    fn every_page_is_there() {
        let mut names = Vec::new();
        for_each(&command(), &mut |name, page| {
            let text = String::from_utf8_lossy(&page).into_owned();
            names.push((name.to_string(), text));
            Ok(())
        })
        .expect("writes to memory");
        // Each page that another one names is there.
        for (name, text) in &names {
            for word in text.replace("\\-", "-").split_whitespace() {
                if let Some(other) = word.strip_suffix("(1)") {
                    let other = other.trim_start_matches(|c: char| !c.is_alphabetic());
                    let is_there = names.iter().any(|(n, _)| n == other);
                    assert!(is_there, "{name} names {other}(1)");
                }
            }
        }
    }
}
