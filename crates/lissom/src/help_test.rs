//! The command line: commands of the study, and the help of each verb, compared with the reviewed
//! texts in tests/help/. `LISSOM_TEST_UPDATE=1 cargo test --bin lissom help_is` writes them anew.

use std::fs;
use std::path::Path;

use clap::{CommandFactory as _, Parser as _};

use crate::cli::Cli;

const WIDTH: usize = 80;

fn each(verb: &mut clap::Command, seen: &mut Vec<(String, String)>) {
    let name = verb.get_display_name().unwrap_or("lissom").to_string();
    *verb = verb.clone().term_width(WIDTH);
    seen.push((name, verb.render_long_help().to_string()));
    for inner in verb.get_subcommands_mut().filter(|v| v.get_name() != "help" && !v.is_hide_set()) {
        each(inner, seen);
    }
}

#[test]
fn help_is_as_reviewed() {
    let mut command = Cli::command();
    command.build();
    let mut seen = Vec::new();
    each(&mut command, &mut seen);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/help");
    let updates = std::env::var_os("LISSOM_TEST_UPDATE").is_some();
    if updates {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a writable folder");
    }
    for (name, text) in &seen {
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        for line in &lines {
            assert!(line.chars().count() <= WIDTH, "{name}: wider than {WIDTH} columns: {line}");
        }
        let text = lines.join("\n") + "\n";
        let path = folder.join(format!("{name}.txt"));
        if updates {
            fs::write(&path, text).expect("a writable file");
            continue;
        }
        let reviewed = fs::read_to_string(&path).unwrap_or_default();
        let differs = reviewed.lines().zip(text.lines()).find(|(a, b)| a != b);
        assert!(
            reviewed == text,
            "the help of {name} is not as in {}: {differs:?}. If the new text is right, run \
             `LISSOM_TEST_UPDATE=1 cargo test --bin lissom help_is`",
            path.display()
        );
    }
    let files = fs::read_dir(&folder).expect("tests/help").count();
    assert_eq!(files, seen.len(), "a file for each verb");
}

/// This binary accepts the study's commands.
#[test]
fn every_measurement_is_a_command() {
    for measurement in study::measurements::MEASUREMENTS {
        for quick in [false, true] {
            let words = measurement.arguments(quick, 2, &["/npb".into()]);
            let line = std::iter::once("lissom".to_string()).chain(words);
            if let Err(error) = Cli::try_parse_from(line) {
                panic!("{}: {error}", measurement.name);
            }
        }
    }
}

/// The binary accepts each example of its help, up to a pipe or a redirection.
#[test]
fn every_example_is_a_command() {
    let mut command = Cli::command();
    command.build();
    let mut seen = Vec::new();
    each(&mut command, &mut seen);
    let mut count = 0;
    for (name, text) in &seen {
        let examples = text.split("\nExamples:\n").nth(1).unwrap_or_default();
        for line in examples.lines().filter(|line| line.starts_with("  lissom ")) {
            let line = line.replace("$(pidof solver)", "1");
            let line = line.replace("$(pidof qemu-system-x86_64)", "1");
            let end = |word: &&str| !matches!(*word, "|" | ">" | ">>" | "&" | "&&" | "#");
            let words = line.split_whitespace().take_while(end);
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{name}: {line}: {error}");
            }
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}
