//! Which commits have changed code since a measurement.

use std::process::Command;

/// Lines of C that are comments as a whole, as an extended regular expression.
const COMMENTS: &str = r"^[[:blank:]]*(//|/?\*)";

/// Commits since `commit` that changed more than comments in one of `paths`, and did more than
/// delete files there, in the checkout around
/// the current folder. None: there is no such checkout, it does not have the commit, or git is
/// missing.
pub fn changes_since(commit: &str, paths: &[&str]) -> Option<usize> {
    let mut git = Command::new("git");
    git.args(["log", "--patch", "--unified=0", "--no-color", "--no-ext-diff", "--format=commit"]);
    git.args([
        "--ignore-blank-lines",
        "--diff-filter=d",
        &format!("--ignore-matching-lines={COMMENTS}"),
    ]);
    git.args([&format!("{commit}..HEAD"), "--"]);
    git.args(paths.iter().map(|p| format!(":/{p}")));
    let output = git.output().ok().filter(|o| o.status.success())?;
    Some(count(&String::from_utf8_lossy(&output.stdout)))
}

/// Commits with a difference that git shows.
fn count(log: &str) -> usize {
    let lines = log.lines().filter(|l| *l == "commit" || l.starts_with("diff "));
    let pairs = lines.clone().zip(lines.skip(1));
    pairs.filter(|(line, next)| *line == "commit" && next.starts_with("diff ")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_without_a_difference_do_not_count() {
        let first = "commit\n\ndiff --git a b\n+x\ndiff --git c d\n+y\n";
        let log = format!("{first}commit\ncommit\n\ndiff --git a b\n+z\n");
        assert_eq!(count(&log), 2);
        assert_eq!(count(""), 0);
        assert_eq!(count("commit\n"), 0);
    }
}
