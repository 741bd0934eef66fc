//! The blocks of perhop: meters, markers, active queue management and schedulers.
//!
//! A block decides and does nothing else. Its inputs are time and random numbers ([`Context`]), packets
//! ([`Header`]) and the state of the queue ([`Occupancy`]); a block reads no clock, owns no socket, logs
//! nothing and allocates nothing per packet. The simulator and the Linux data plane drive the same blocks.
//!
//! A new block is one file and its registration in the room of its role ([`aqm`], [`meter`], [`scheduler`]);
//! it feeds the scenario format, the published schema, the documentation and the conformance harness in
//! [`testing`].
//!
//! A port with a queue of two packets, and a link that sends 1000 bytes in a millisecond:
//!
//! ```
//! use perhop_core::aqm::{AqmParams, DropTailParams};
//! use perhop_core::{Bitrate, Depth, FlowId, Header, Instant, Offered, Port, Reason, Served, Streams};
//!
//! let queue = AqmParams::DropTail(DropTailParams { limit: Depth::Packets(2) });
//! let (rate, streams) = (Bitrate::from_bps(8_000_000).unwrap(), Streams { seed: 1, path: "links/line" });
//! let mut port = Port::new(queue.into(), rate, streams, (Instant::ZERO, Instant::NEVER));
//! let (packet, now) = (Header::new(FlowId(0), 1000), Instant::ZERO);
//! assert_eq!(port.offer(packet, now), Offered::Idle); // The link is free: serve the port now.
//! assert_eq!(port.serve(now), Served::Sent(packet, Instant::from_nanos(1_000_000)));
//! assert_eq!(port.offer(packet, now), Offered::Queued);
//! assert_eq!(port.offer(packet, now), Offered::Queued);
//! assert!(matches!(port.offer(packet, now), Offered::Dropped(_, Reason::Overflow)));
//! ```

// The lint can be answered for a whole crate only.
#![expect(
    clippy::disallowed_macros,
    reason = "rng.rs: all random streams of a copied run change at once, and no block has to know of it. trace.rs: a queue has no room for what only an observer wants, which is read before the next packet comes"
)]

pub mod abe;
pub mod aqm;
mod block;
pub mod control;
mod counters;
pub mod curves;
pub mod marker;
mod matching;
pub mod measure;
pub mod medium;
pub mod meter;
mod occupancy;
mod origin;
mod outside;
mod packet;
mod port;
pub mod portable;
mod prefetch;
mod pseudo_code;
mod queue;
mod reason;
mod registration;
mod registry;
mod rng;
pub mod scheduler;
mod serializer;
pub mod table;
pub mod testing;
#[cfg(not(feature = "trace"))]
#[path = "no_trace.rs"]
mod trace;
#[cfg(feature = "trace")]
pub mod trace;
pub mod units;

use block::idle_keys;
pub use block::{Block, BlockInfo, Context, DelayTarget, Environment, KeysWithoutEffect, Role};
pub use counters::{ClassCounters, Counters, Imbalance};
pub use matching::{Precedences, Unmatched};
pub use occupancy::Occupancy;
pub use origin::{Era, InLinux, Origin, TODAY};
pub use outside::{Implementation, Unimplemented};
pub use packet::{Codepoints, Color, Direction, Dscp, Ecn, FlowId, Header, Packet, ServiceLevel};
pub use port::{Offered, Port, PortVisitor, Served, TypedPort};
pub use prefetch::{PrefetchStage, prefetch, prefetch_start};
pub use pseudo_code::{Noted, PseudoCode};
pub use queue::{ManagedQueue, Taken};
pub use reason::Reason;
pub use registry::registry;
pub use rng::{Rng, Streams};
pub use serializer::Serializer;
pub use units::{
    Bitrate, Bytes, Depth, DropCurve, Duration, Frequency, Instant, Probability, Thresholds, Unit, Weight,
};
