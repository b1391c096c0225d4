//! The system as lissom's tools see it: processes, programs, control groups, signals. Independent
//! of lissom.

pub mod btf;
pub mod cgroup;
pub mod elf;
pub mod glibc;
pub mod place;
pub mod process;
pub mod program;
pub mod sched_ext;
pub mod stop;
pub mod supervise;
pub mod symbol;
