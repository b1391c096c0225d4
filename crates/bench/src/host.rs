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
