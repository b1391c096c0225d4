//! The parts of the case runner.

pub mod active;
pub mod beside;
pub mod case;
pub mod expect;
pub mod hang;
pub mod inputs;
pub mod interrupt;
pub mod outcome;
pub mod programs;
pub mod region;
pub mod requires;
pub mod run;
