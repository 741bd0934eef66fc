//! An observer of a run: it sees what becomes of each packet at links.
//!
//! An observed run is computed by the reference engine, and gives the outcome that it gives unobserved.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use perhop_core::{Header, Instant, Reason};

use crate::timed::Timed;

/// Sees what becomes of packets at links, in the order of time.
pub trait Observer: Send {
    /// Takes note of what became of a packet.
    fn observe(&mut self, observed: &Observed);
}

/// What became of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// When.
    pub at: Instant,
    /// The number of the link, which is one direction.
    pub link: usize,
    /// What.
    pub event: PacketEvent,
    /// Which flow's packet it is. Another flow of a population may have had the header's number before.
    pub flow: Origin,
    /// The packet, as it is then: marked by the meters before the queue; on departure with the ECN field that
    /// it leaves with.
    pub header: Header,
    /// What it carries.
    pub contents: Contents,
}

/// A flow, by what it represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The number of its specification in the network.
    pub spec: u32,
    /// For a flow of a population: its number there, in the order in which they begin.
    pub member: Option<u32>,
    /// A number that no other flow of the run has: that of its specification or, for flows of populations,
    /// the next after all.
    pub serial: u32,
}

/// What can become of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// The packet comes to the queue, behind the meters.
    Arrival(Decision),
    /// A meter before the queue, the link's or one at the first router, drops the packet; the header has the
    /// color that the meter gave it.
    Policed,
    /// The link begins to send the packet.
    Departure {
        /// Why the queue marks it just now (ECN), if it does.
        notified: Option<Reason>,
        /// The link will lose it.
        is_lost: bool,
    },
    /// The queue drops it after it has waited there.
    Dropped(Reason),
}

/// What a queue does to a packet that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The queue admits the packet.
    Admitted,
    /// The queue admits the packet and marks it (ECN).
    Notified(Reason),
    /// The queue drops the packet.
    Dropped(Reason),
}

/// What a packet carries besides its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A segment of TCP.
    Segment {
        /// The number of the segment; 0 is the opening one of a connection with a handshake.
        number: u32,
        /// The sender of the segment has reduced its window (CWR).
        reduced: bool,
        /// The acknowledgement of its connection's other direction that it carries, if it is part of one.
        acknowledged: Option<Acknowledgement>,
    },
    /// An acknowledgement of TCP.
    Acknowledgement(Acknowledgement),
    /// A datagram of this number.
    Datagram(u32),
    /// Feedback about datagrams: the number of the packet that it acknowledges (RAP), or its own (TFRC).
    Feedback(u32),
}

/// An acknowledgement of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Every segment below has arrived.
    pub expected: u32,
    /// ECN-Echo.
    pub echo: bool,
    /// Marked packets so far, where receivers count them.
    pub marked: u32,
    /// The sender of the acknowledgement has sent nothing but its first segment.
    pub is_first: bool,
    /// A segment that came twice and had this sent (D-SACK).
    pub duplicate: Option<u32>,
    /// One past the flow's last segment, and by how many bytes that is shorter than the others.
    pub last: (u32, u16),
    /// Ranges that arrived beyond a gap: the first segment, and one past the last; an empty range is none.
    pub ranges: [(u32, u32); 3],
}

/// An observer, and the links that it observes. Clones share the observer.
#[derive(Clone)]
pub struct Observation {
    observer: Arc<Mutex<dyn Observer>>,
    links: Vec<usize>,
}

impl Observation {
    /// Returns the observation by which this observer sees the packets at the links of these numbers.
    pub fn new(observer: Arc<Mutex<dyn Observer>>, links: Vec<usize>) -> Self {
        Self { observer, links }
    }

    pub(crate) fn links(&self) -> &[usize] {
        &self.links
    }

    pub(crate) fn tell(&self, observed: &Observed) {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner).observe(observed);
    }
}

impl fmt::Debug for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observation").field("links", &self.links).finish_non_exhaustive()
    }
}

impl Timed for Observed {
    fn at(&self) -> Instant {
        self.at
    }
    fn rank(&self) -> u64 {
        0
    }
}
