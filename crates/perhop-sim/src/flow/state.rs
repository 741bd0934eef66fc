//! What one can see of a flow while its run goes on.

use perhop_core::Duration;

use crate::transport::limits::LimitTimes;

/// A flow at some time. All counts are since the run began.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowState {
    /// The congestion window in packets; `None` for a transport that has none.
    pub window: Option<f64>,
    /// The smoothed round-trip time in seconds as the sender has estimated it; `None` before its first
    /// sample.
    pub smoothed_rtt_s: Option<f64>,
    /// Packets sent, retransmissions included.
    pub sent: u64,
    /// Packets sent again; `None` but for TCP.
    pub retransmitted: Option<u64>,
    /// Retransmission timeouts (RAP: loss events found by a timeout; TFRC: expiries of the nofeedback timer);
    /// `None` for UDP.
    pub timeouts: Option<u64>,
    /// Packets of data that reached the receiver for the first time.
    pub delivered_packets: u64,
    /// The bytes of these packets on the wire.
    pub delivered_bytes: u64,
    /// Packets of data that queues dropped, by color.
    pub dropped: [u64; 3],
    /// Packets of data that links lost after they had sent them; `None` for a flow whose data pass no link
    /// that loses packets.
    pub lost: Option<u64>,
    /// Packets sent, by the color that they were given.
    pub marked: [u64; 3],
    /// Packets that reached the receiver with a mark of congestion; `None` for a flow without ECN.
    pub congested: Option<u64>,
    /// How long the last packet took that reached the receiver; `None` for TCP, and before the first.
    pub last_transit: Option<Duration>,
    /// What kept a TCP sender from sending more, and for how long.
    pub limits: LimitTimes,
}
