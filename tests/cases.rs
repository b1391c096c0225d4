//! Runs tests/cases/*.txt; tests/README.md describes their format.

mod runner;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Trial};
use runner::case::{self, Case};
use runner::{requires, run};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Cases measure, load and limit the machine: one at a time unless the user says otherwise.
    arguments.test_threads = arguments.test_threads.or(Some(1));

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = match case::read_all(&root.join("tests/cases")) {
        Ok(cases) => cases,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let seed = run::first_seed();
    let trials = cases.into_iter().flat_map(|case| variants(Arc::new(case), seed)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        println!(
            "{} passed, {} failed, {} skipped",
            conclusion.num_passed, conclusion.num_failed, conclusion.num_ignored
        );
    }
    conclusion.exit_code()
}

/// One test for each level and ratio of the case.
fn variants(case: Arc<Case>, seed: u32) -> Vec<Trial> {
    let ratios: Vec<Option<u32>> =
        if case.ratios.is_empty() { vec![None] } else { case.ratios.iter().copied().map(Some).collect() };
    let mut trials = Vec::new();
    for &level in &case.levels {
        for &ratio in &ratios {
            let variant = run::Variant { level, ratio };
            let name = format!("{}::{}{}", case.file, case.name, variant.suffix());
            let (case, full_name) = (Arc::clone(&case), name.clone());
            trials.push(Trial::ignorable_test(name, move || {
                if let Some(missing) = requires::missing(&case.requires) {
                    return Ok(Completion::ignored_with(missing));
                }
                run::run(&case, variant, &full_name, seed)?;
                Ok(Completion::Completed)
            }));
        }
    }
    trials
}
