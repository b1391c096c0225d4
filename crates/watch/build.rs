//! Compile the BPF program that samples the activity of threads.

fn main() {
    build::bpf::compile("activity");
}
