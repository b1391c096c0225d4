//! Tables in Markdown.

use std::borrow::Borrow;

/// The lines that a table begins with.
pub fn head<S: Borrow<str>>(names: &[S]) -> String {
    format!("\n{}{}", line(names), line(&vec!["---"; names.len()]))
}

pub fn line<S: Borrow<str>>(fields: &[S]) -> String {
    format!("| {} |\n", fields.join(" | "))
}
