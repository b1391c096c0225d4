//! What people read: text, numbers, tables. Knows nothing of lissom.

pub mod markdown;
pub mod number;
pub mod output;
pub mod text;
