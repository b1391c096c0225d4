//! Text, numbers and tables for people. Knows nothing of lissom.

pub mod markdown;
pub mod number;
pub mod output;
pub mod text;
