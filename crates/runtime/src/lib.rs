//! lissom's runtime library (runtime/), compiled and embedded: its options, its memory shared with
//! the tools, and how it is put where programs find it.

pub mod abi;
pub mod knobs;
pub mod options;
pub mod unpack;

#[cfg(test)]
#[path = "lib_test.rs"]
mod tests;
