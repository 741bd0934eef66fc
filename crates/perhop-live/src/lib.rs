//! The Linux data plane of perhop: the blocks of `perhop-core` on real packets.
//!
//! [`Plane`] is the data plane without its devices: it does no I/O and reads no clock, so tests and fuzzers
//! drive it as well as a router does. `Runner` is the loop around it on Linux, over devices such as TUN.

mod buffers;
mod classifier;
mod clock;
mod counts;
#[cfg(target_os = "linux")]
pub mod device;
mod lateness;
mod plane;
#[cfg(target_os = "linux")]
mod priority;
#[cfg(target_os = "linux")]
mod runner;
pub mod selection;
mod spec;
mod windows;
pub mod wire;

pub use buffers::{HEAD, Head, Slot};
pub use classifier::{Prefix, Selector};
pub use clock::Clock;
pub use counts::{Amount, Loss, PlaneCounters, StreamCounts};
pub use lateness::Lateness;
pub use plane::{Changed, ClassTotals, Fixed, LinkTotals, Plane, Sink, Unbalanced, color_of};
#[cfg(target_os = "linux")]
pub use priority::set_fifo;
#[cfg(target_os = "linux")]
pub use runner::{Report, Runner, Watcher};
pub use spec::{
    Coloring, ControlSpec, Hop, LinkSpec, Member, MeterSpec, PlaneSpec, StreamFlow, StreamSpec, WireSpec,
};
pub use windows::Windows;
