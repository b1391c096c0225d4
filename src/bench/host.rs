//! `lissom study`: the crate `study` runs the benchmarks of this binary.

use anyhow::Context as _;

use super::ended;
use super::machine::Machine;

/// Run `lissom study`. Returns the exit code.
pub fn study(verb: &study::Verb) -> anyhow::Result<i32> {
    ended(study::study(verb, || {
        let machine = Machine::look();
        let (commit, dirty) = crate::version::built_from();
        Ok(study::Host {
            cpus: machine.cpus,
            machine: serde_json::to_value(&machine).context("cannot describe the machine")?,
            version: env!("CARGO_PKG_VERSION").into(),
            commit,
            dirty,
        })
    }))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    /// This binary accepts the study's commands.
    #[test]
    fn every_measurement_is_a_command() {
        for measurement in study::measurements::MEASUREMENTS {
            for quick in [false, true] {
                let words = measurement.arguments(quick, 2, &["/npb".into()]);
                let line = std::iter::once("lissom".to_string()).chain(words);
                if let Err(error) = crate::cli::Cli::try_parse_from(line) {
                    panic!("{}: {error}", measurement.name);
                }
            }
        }
    }
}
