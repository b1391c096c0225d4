//! The programs of bpf/, compiled into objects that the binary carries inside itself.

use std::env;
use std::path::PathBuf;
use std::process::{Command, exit};

/// The newest first: an old one may make code that a verifier refuses.
const COMPILERS: &[&str] =
    &["clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang"];

/// `-g`: types, by which the programs fit themselves to the kernel that they are loaded into.
const FLAGS: &[&str] = &[
    "-target",
    "bpf",
    "-mcpu=v3",
    "-std=gnu11",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Werror",
    "-D__TARGET_ARCH_x86",
];

/// Compile `bpf/NAME.bpf.c` to `NAME.bpf.o` in cargo's output folder. The build script's crate has
/// to depend on libbpf-sys directly, so that cargo tells where libbpf's headers are.
pub fn compile(name: &str) {
    let root = crate::root();
    println!("cargo::rerun-if-changed={}", root.join("bpf").display());
    println!("cargo::rerun-if-env-changed=CLANG");
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut command = Command::new(compiler());
    command.args(FLAGS).arg("-isystem").arg(&headers);
    for (from, to) in [(root.display().to_string(), "."), (headers.clone(), "include")] {
        command.arg(format!("-ffile-prefix-map={from}={to}"));
    }
    command.arg("-c").arg(root.join(format!("bpf/{name}.bpf.c")));
    crate::run(command.arg("-o").arg(out.join(format!("{name}.bpf.o"))));
}

fn compiler() -> String {
    let runs = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success())
    };
    let found = || COMPILERS.iter().copied().find(runs).map(str::to_string);
    env::var("CLANG").ok().or_else(found).unwrap_or_else(|| {
        eprintln!(
            "clang compiles bpf/, but is missing: install the package clang-19, or set CLANG"
        );
        exit(1);
    })
}
