//! Which commits have changed code since a measurement.

use std::process::Command;

/// Commits since `commit` that changed one of `paths`, in the checkout around the current folder.
/// None: there is no such checkout, it does not have the commit, or git is missing.
pub fn changes_since(commit: &str, paths: &[&str]) -> Option<u64> {
    let mut git = Command::new("git");
    git.args(["rev-list", "--count", &format!("{commit}..HEAD"), "--"]);
    git.args(paths.iter().map(|p| format!(":/{p}")));
    let output = git.output().ok().filter(|o| o.status.success())?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
