//! Compile the BPF programs that sample the activity of threads, and record their switches.

fn main() {
    build::bpf::compile("activity");
    build::bpf::compile("record");
}
