//! Text, numbers and tables for people, metrics for Prometheus. Independent of lissom.

pub mod endpoint;
pub mod exit;
pub mod markdown;
pub mod number;
pub mod output;
pub mod terminal;
pub mod text;
pub mod time;
