//! Parts of build scripts: flags of the C compiler, the sources of Zydis, and BPF programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

pub mod bpf;

/// Return the folder of the whole project. Read at run time: another clone with the same
/// CARGO_TARGET_DIR may have compiled the build script. (cargo may still miss changes then.)
pub fn root() -> PathBuf {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    package.ancestors().nth(2).expect("a folder of crates/").to_path_buf()
}

/// Return flags of crates/build/flags.
pub fn flags(names: &[&str]) -> Vec<String> {
    let lines = include_str!("../flags").lines();
    let named = lines.filter_map(|line| line.split_once(": ").filter(|(n, _)| names.contains(n)));
    let found: Vec<String> =
        named.flat_map(|(_, flags)| flags.split_whitespace().map(String::from)).collect();
    assert!(!found.is_empty(), "build/flags has no {names:?}");
    found
}

/// Return a build of parts of the runtime for the tools. They may call the Zydis of the `zydis`
/// crate.
pub fn for_the_tools() -> cc::Build {
    let runtime = root().join("runtime");
    println!("cargo::rerun-if-changed={}", runtime.display());
    let mut build = cc::Build::new();
    build.std("gnu11").warnings(true).extra_warnings(true).opt_level(2);
    build.include(runtime);
    for folder in zydis_includes() {
        build.flag("-isystem").flag(folder);
    }
    for define in flags(&["zydis"]) {
        build.flag(define);
    }
    build
}

/// Return all C and assembly files below `dir`, except tests (`*_test.c`, and folders named
/// `tests`).
pub fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("runtime/ is readable") {
        let path = entry.expect("runtime/ is readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" {
                found.extend(sources(&path));
            }
        } else if (name.ends_with(".c") && !name.ends_with("_test.c")) || name.ends_with(".S") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Return the folder of the C sources in the `zydis` crate.
pub fn zydis_sources() -> PathBuf {
    let output = Command::new(env::var_os("CARGO").expect("cargo sets it"))
        .args(["metadata", "--locked", "--format-version", "1", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .expect("cargo metadata can be run");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|p| p["name"] == "zydis")
        .and_then(|p| p["manifest_path"].as_str())
        .expect("Cargo.toml depends on zydis");
    let sources = Path::new(manifest).with_file_name("zydis-c");
    assert!(sources.is_dir(), "the zydis crate has no zydis-c folder");
    sources
}

/// Return the folders of the headers of Zydis. Include them as system headers: their warnings are
/// not ours.
pub fn zydis_includes() -> [PathBuf; 2] {
    let zydis = zydis_sources();
    [zydis.join("include"), zydis.join("dependencies/zycore/include")]
}

/// Run a compiler; its messages become cargo's. On failure, ends the build without a panic's
/// backtrace, so that the compiler's messages come last.
pub fn run(command: &mut Command) {
    let output = match command.output() {
        Ok(output) => output,
        Err(e) => {
            let program = command.get_program();
            eprintln!("{program:?} cannot be run ({e}): is a C compiler installed?");
            std::process::exit(1);
        }
    };
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{messages}");
        std::process::exit(1);
    }
    for line in messages.lines() {
        println!("cargo::warning={line}");
    }
}
