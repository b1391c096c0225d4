//! How many threads of each program can run: measured by BPF, or sampled from /proc. For the
//! manager and the profiles of `lissom bench mixes`.

pub mod bpf;
pub mod sample;
pub mod source;
pub mod vector;

pub type Id = u32;
