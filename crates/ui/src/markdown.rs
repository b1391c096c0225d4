//! Tables in Markdown.

use std::borrow::Borrow;

/// Return the first lines of a table.
pub fn head<S: Borrow<str>>(names: &[S]) -> String {
    format!("\n{}{}", line(names), line(&vec!["---"; names.len()]))
}

pub fn line<S: Borrow<str>>(fields: &[S]) -> String {
    format!("| {} |\n", fields.join(" | "))
}
