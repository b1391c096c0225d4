//! The parts of the case runner.

pub mod case;
pub mod expect;
pub mod hang;
pub mod interrupt;
pub mod programs;
pub mod requires;
pub mod run;
