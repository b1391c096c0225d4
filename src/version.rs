//! Which code this binary was built from.

/// The commit, and whether files differed from it. None: built without git, or for debugging.
pub fn built_from() -> (Option<String>, bool) {
    let commit = option_env!("LISSOM_COMMIT").filter(|c| !c.is_empty());
    (commit.map(String::from), option_env!("LISSOM_DIRTY") == Some("1"))
}
