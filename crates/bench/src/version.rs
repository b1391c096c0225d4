//! Version of the sources of this binary.

/// Return the commit, and whether files differed from it. None: built without git, or not as a
/// release.
pub fn built_from() -> (Option<String>, bool) {
    let commit = option_env!("LISSOM_COMMIT").filter(|c| !c.is_empty());
    (commit.map(String::from), option_env!("LISSOM_DIRTY") == Some("1"))
}
