//! Set variables for the compiler: the number of workloads, and the commit of a release.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    let root = build::root();
    let workloads = root.join("workloads");
    println!("cargo::rerun-if-changed={}", workloads.display());
    println!("cargo::rustc-env=LISSOM_WORKLOADS={}", files(&workloads));
    commit(&root);
}

/// Return the number of files. `include_dir!` notices changed files, but not new ones; cargo
/// compiles the crate again when this number changes.
fn files(folder: &Path) -> usize {
    let paths = fs::read_dir(folder).expect("readable").flatten().map(|e| e.path());
    paths.map(|p| if p.is_dir() { files(&p) } else { 1 }).sum()
}

/// Set the commit, and whether files differ from it, for `src/version.rs`. Only for releases:
/// otherwise each commit would compile the crate again.
fn commit(root: &Path) {
    if env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return };
    let changed = git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])
        .unwrap_or_default();
    println!("cargo::rustc-env=LISSOM_COMMIT={commit}");
    println!("cargo::rustc-env=LISSOM_DIRTY={}", u8::from(!changed.is_empty()));
    for path in ["runtime", "crates", "bpf"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    for name in ["HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={}", root.join(path).display());
        }
    }
}
