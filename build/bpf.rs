//! The programs of bpf/, compiled into objects that the binary carries inside itself.

use std::path::Path;
use std::process::{Command, exit};
use std::{env, fs};

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

/// `bpf/NAME.bpf.c` becomes `out/NAME.bpf.o`.
pub fn build(root: &Path, out: &Path) {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let compiler = compiler();
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    for entry in fs::read_dir(root.join("bpf")).expect("bpf/ is readable") {
        let source = entry.expect("bpf/ is readable").path();
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".bpf.c") else { continue };
        let mut command = Command::new(&compiler);
        command.args(FLAGS).arg("-isystem").arg(&headers);
        for (from, to) in [(root.display().to_string(), "."), (headers.clone(), "include")] {
            command.arg(format!("-ffile-prefix-map={from}={to}"));
        }
        command.arg("-c").arg(&source).arg("-o").arg(out.join(format!("{stem}.bpf.o")));
        super::run(&mut command);
    }
}

fn compiler() -> String {
    let runs = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success())
    };
    env::var("CLANG").ok().or_else(|| COMPILERS.iter().copied().find(runs).map(str::to_string)).unwrap_or_else(
        || {
            eprintln!("bpf/ is compiled by clang, and there is none: install the package clang-19, or name another by CLANG");
            exit(1);
        },
    )
}
