//! Link the interpreter that finds waiting loops: it also judges threads of other processes.

fn main() {
    println!("cargo::rerun-if-changed=src");
    let spin = build::root().join("runtime/spin");
    let mut judge = build::for_the_tools();
    for name in [
        "bits", "counter", "decode", "delay", "depends", "execute", "explore", "machine", "prove",
        "vector",
    ] {
        judge.file(spin.join(format!("{name}.c")));
    }
    judge.file("src/orbit.c").compile("lissom_judge");
}
