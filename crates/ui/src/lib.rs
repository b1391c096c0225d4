//! Text, numbers and tables for people. Independent of lissom.

pub mod exit;
pub mod markdown;
pub mod number;
pub mod output;
pub mod text;
pub mod time;
