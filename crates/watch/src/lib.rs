//! Find out what programs do, from /proc and from the runtimes within them. Shared by `stat`, `top`
//! and the manager's metrics.

pub mod activity;
mod bpf;
mod found;
mod freezer;
pub mod live;
pub mod look;
pub mod places;
pub mod program;
pub mod spinning;
pub mod stats;
pub mod text;
mod threads;
mod throttle;
pub mod told;
pub mod trace;
mod waits;
