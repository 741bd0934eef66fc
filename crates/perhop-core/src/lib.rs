//! The blocks of perhop: meters, markers, active queue management and schedulers.
//!
//! A block decides and does nothing else. Its inputs are time and random numbers ([`Context`]), packets
//! ([`Header`]) and the state of the queue ([`Occupancy`]); a block reads no clock, owns no socket, logs
//! nothing and allocates nothing per packet. The simulator and the Linux data plane drive the same blocks.
//!
//! A new block is one file and its registration in the room of its role ([`aqm`], [`meter`], [`scheduler`]);
//! it feeds the scenario format, the published schema, the documentation and the conformance harness in
//! [`testing`].

// The lint can be answered for a whole crate only: builds without the feature hold to it.
#![cfg_attr(
    feature = "trace",
    expect(
        clippy::disallowed_macros,
        reason = "trace.rs: a queue has no room for what only an observer wants, which is read before the next packet comes"
    )
)]

pub mod abe;
pub mod aqm;
mod block;
pub mod control;
mod counters;
pub mod marker;
mod matching;
pub mod measure;
pub mod meter;
mod occupancy;
mod origin;
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
mod time;
#[cfg(feature = "trace")]
pub mod trace;
pub mod units;

pub use block::{Block, BlockInfo, Context, DelayTarget, Environment, Role};
pub use counters::{ClassCounters, Counters, Imbalance};
pub use matching::{Precedences, Unmatched};
pub use occupancy::Occupancy;
pub use origin::{Era, InLinux, Origin, TODAY};
pub use packet::{Codepoints, Color, Direction, Dscp, Ecn, FlowId, Header, Packet, ServiceLevel};
pub use port::{Offered, Port, PortVisitor, Served, TypedPort};
pub use prefetch::{PrefetchStage, prefetch, prefetch_start};
pub use pseudo_code::{Noted, PseudoCode};
pub use queue::{ManagedQueue, Taken};
pub use reason::Reason;
pub use registry::registry;
pub use rng::{Rng, Streams};
pub use serializer::Serializer;
pub use time::{Duration, Instant};
pub use units::{Bitrate, Bytes, Depth, DropCurve, Frequency, Probability, Thresholds, Unit, Weight};
