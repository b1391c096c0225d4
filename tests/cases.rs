//! Run tests/cases/*.txt; tests/README.md describes their format.

mod runner;

use std::process::ExitCode;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Trial};
use runner::case::{self, Case};
use runner::inputs;
use runner::outcome::{Outcomes, Skips};
use runner::{requires, run};

/// State shared by all trials.
struct Session {
    seed: u32,
    skips: Skips,
    /// Exclusive cases hold the write lock while they run, all others the read lock.
    machine: RwLock<()>,
    outcomes: Outcomes,
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let selection = run::Selection::from_environment();
    let together = if selection.all { 1 } else { run::cpus() };
    let together = *arguments.test_threads.get_or_insert(together);
    run::set_beside_others(together > 1);

    let root = run::root();
    let read = case::read_all(&root.join("tests/cases"))
        .and_then(|cases| Ok((cases, Skips::read(&root.join("tests/skips.tsv"))?)));
    let (cases, skips) = match read {
        Ok(read) => read,
        Err(message) => return refuse(&message),
    };
    let path = root.join("tests/bad-inputs.txt");
    let inputs = match inputs::File::read(&path) {
        Ok(inputs) => inputs,
        Err(message) => return refuse(&message),
    };
    if std::env::var_os("LISSOM_TEST_UPDATE").is_some() {
        let written = inputs
            .updated()
            .and_then(|text| std::fs::write(&path, text).map_err(|e| e.to_string()));
        return written.map_or_else(|message| refuse(&message), |()| ExitCode::SUCCESS);
    }
    let exists = |name: &str| cases.iter().any(|c| format!("{}::{}", c.file, c.name) == name);
    if let Some(name) = skips.unknown(exists).first() {
        return refuse(&format!("tests/skips.tsv: there is no case {name}"));
    }
    let session = Arc::new(Session {
        seed: run::first_seed(),
        skips,
        machine: RwLock::new(()),
        outcomes: Outcomes::default(),
    });
    // Run exclusive cases last: each makes the others wait.
    let (alone, beside): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| case.exclusive);
    let trials = beside
        .into_iter()
        .chain(alone)
        .flat_map(|case| trials(Arc::new(case), selection, &session));
    let checks = inputs.inputs.into_iter().map(|input| {
        let session = Arc::clone(&session);
        Trial::ignorable_test(format!("bad-inputs::{}", input.command), move || {
            if let Some(missing) = input.missing() {
                return Ok(Completion::ignored_with(format!("needs {missing}")));
            }
            let _beside = session.machine.read().unwrap_or_else(PoisonError::into_inner);
            input.check()?;
            Ok(Completion::Completed)
        })
    });
    let trials: Vec<Trial> = checks.chain(trials).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        let durations = run::target_dir().join("test-durations.tsv");
        if let Err(e) = session.outcomes.record(&durations) {
            eprintln!("{}: {e}", durations.display());
        }
        print!("{}", session.outcomes.summary());
        println!(
            "{} passed, {} failed, {} skipped",
            conclusion.num_passed, conclusion.num_failed, conclusion.num_ignored
        );
    }
    conclusion.exit_code()
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(2)
}

/// Return one trial for each selected level and ratio of the case.
fn trials(case: Arc<Case>, selection: run::Selection, session: &Arc<Session>) -> Vec<Trial> {
    let variants = selection.variants(&case).into_iter();
    let trial = |variant: run::Variant| {
        let name = format!("{}::{}{}", case.file, case.name, variant.suffix());
        let (case, session, full_name) = (Arc::clone(&case), Arc::clone(session), name.clone());
        Trial::ignorable_test(name, move || {
            if let Some(missing) = requires::missing(&case.requires) {
                let needs = format!("needs {missing}");
                session.outcomes.skipped(&full_name, &needs);
                return match session.skips.allow(&format!("{}::{}", case.file, case.name), missing)
                    || selection.skips_allowed
                {
                    true => Ok(Completion::ignored_with(needs)),
                    false => Err(format!(
                        "{needs}, and tests/skips.tsv does not list it; LISSOM_TEST_SKIP=any lets it be skipped"
                    )
                    .into()),
                };
            }
            let beside = (!case.exclusive)
                .then(|| session.machine.read().unwrap_or_else(PoisonError::into_inner));
            let alone = case
                .exclusive
                .then(|| session.machine.write().unwrap_or_else(PoisonError::into_inner));
            let started = Instant::now();
            let repeat = if selection.all { case.repeat } else { 1 };
            let result = run::run(&case, variant, &full_name, session.seed, repeat);
            drop((beside, alone));
            let (level, took) = (variant.level_name(), started.elapsed());
            session.outcomes.ran(&full_name, level, took, result.is_ok());
            result?;
            Ok(Completion::Completed)
        })
    };
    variants.map(trial).collect()
}
