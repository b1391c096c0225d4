//! Compile the BPF programs that count exits, and link the runtime's threshold controller.

fn main() {
    build::bpf::compile("kvm");
    let apple = build::root().join("runtime/policy/apple.c");
    build::for_the_tools().file(apple).compile("lissom_apple");
}
