//! Compile the scheduler, and link its decoder of branches, which the tests compare with Zydis.

fn main() {
    build::bpf::compile("scx_lissom");
    println!("cargo::rerun-if-changed=src");
    build::for_the_tools().file("src/branches.c").compile("lissom_branches");
}
