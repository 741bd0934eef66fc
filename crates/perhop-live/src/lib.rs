//! The Linux data plane of perhop: the blocks of `perhop-core` on real packets.
//!
//! [`Plane`] is the data plane without its devices: it does no I/O and reads no clock, so tests and fuzzers
//! drive it as well as a router does. `Runner` is the loop around it on Linux, over devices such as TUN.
//!
//! ```
//! use perhop_core::{Color, Dscp, FlowId, Instant, ServiceLevel};
//! use perhop_live::{Coloring, Head, Plane, PlaneSpec, Remark, Selector, Sink, StreamSpec};
//!
//! struct Sent(usize);
//!
//! impl Sink for Sent {
//!     fn deliver(&mut self, _device: usize, _head: &Head, _packet: &[u8], _due: Instant) {
//!         self.0 += 1;
//!     }
//! }
//!
//! let (name, flow, selector) = ("all".into(), FlowId(0).into(), Selector::default());
//! let (coloring, service) = (Coloring::Fixed(Color::Yellow, Dscp::DEFAULT), ServiceLevel::NONE);
//! let (device, route, leaves, label, remark) = (0, Vec::new(), 1, 0, Remark::default());
//! let stream = StreamSpec { name, flow, device, selector, coloring, remark, service, label, route, leaves };
//! let spec = PlaneSpec { devices: 2, mtu: 1500, buffers: 8, streams: vec![stream], ..PlaneSpec::default() };
//! let (mut plane, mut sent) = (Plane::new(spec, 1), Sent(0));
//!
//! let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0x66, 0xd7, 10, 0, 0, 1, 10, 0, 0, 2];
//! let (slot, _, room) = plane.room().unwrap();
//! room[..20].copy_from_slice(&packet);
//! plane.arrive(0, slot, 20, Instant::ZERO, &mut sent);
//! assert_eq!((sent.0, plane.counters().devices()[1].1.packets), (1, 1));
//! ```

mod buffers;
mod classifier;
mod clock;
mod counts;
#[cfg(target_os = "linux")]
pub mod device;
pub mod encapsulation;
mod fragments;
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
pub use counts::{Amount, Loss, PlaneCounters, Portless, StreamCounts};
pub use lateness::Lateness;
pub use plane::{Changed, ClassTotals, Fixed, LinkTotals, Lost, Plane, Sink, Unbalanced, color_of};
#[cfg(target_os = "linux")]
pub use priority::set_fifo;
#[cfg(target_os = "linux")]
pub use runner::{Report, Runner, Watcher};
pub use spec::{
    Coloring, ControlSpec, DispatchSpec, Hop, LinkSpec, Member, MeterSpec, PlaneSpec, Remark, ReportSpec,
    StreamFlow, StreamSpec, WireSpec,
};
pub use windows::Windows;
