//! What a TCP connection may be told.
//!
//! Defaults are those of the papers' period (ns-2 of 1998 to 2000), except where a comment says otherwise.

use perhop_core::units::{Packets, UnitError};
use perhop_core::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How losses are recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Fast recovery ends with the first new acknowledgement (RFC 5681, section 3.2).
    Reno,
    /// Fast recovery lasts until everything sent before it is acknowledged (RFC 6582).
    NewReno,
    /// Reno that keeps its reserved window: the loss of an OUT packet halves only what is beyond it, the loss of an IN
    /// packet the whole window (Yeom & Reddy 1999, figure 7).
    #[serde(rename = "two-windows")]
    TwoWindows,
}

/// A TCP connection. Defaults are those of the papers' period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TcpParams {
    /// How losses are recovered.
    pub tcp: Variant,
    /// Size of a full segment on the wire, headers included.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// Size of an acknowledgement (and of a SYN) on the wire.
    #[serde(default = "ack")]
    pub ack: Bytes,
    /// The receiver's window. The period's ns-2 had 20 packets; the papers' rates need more, so the default is open.
    #[serde(default = "window")]
    pub window: Packets,
    /// The congestion window at the start.
    #[serde(default = "initial_window")]
    pub initial_window: Packets,
    /// The slow-start threshold at the start; the receiver's window unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<Packets>,
    /// The granularity of the clock that measures round trips.
    #[serde(default = "tick")]
    pub tick: Duration,
    /// The shortest retransmission timeout.
    #[serde(default = "min_rto")]
    pub min_rto: Duration,
    /// The retransmission timeout before the first round trip is known.
    #[serde(default = "initial_rto")]
    pub initial_rto: Duration,
    /// The longest retransmission timeout.
    #[serde(default = "max_rto")]
    pub max_rto: Duration,
    /// How long an in-order segment may wait for a second one before it is acknowledged; `0s` acknowledges each at once.
    #[serde(default)]
    pub delayed_ack: Duration,
    /// Exchange a SYN before the first data.
    #[serde(default)]
    pub handshake: bool,
    /// Send a new segment on each of the first two duplicate acknowledgements (RFC 3042).
    #[serde(default)]
    pub limited_transmit: bool,
    /// Before new data, wait a time drawn uniformly up to this (ns-2's `overhead_`), against phase effects.
    #[serde(default)]
    pub send_jitter: Duration,
}

const fn packet() -> Bytes {
    Bytes::new(1000)
}
const fn ack() -> Bytes {
    Bytes::new(40)
}
const fn window() -> Packets {
    Packets::new(1000)
}
const fn initial_window() -> Packets {
    Packets::new(1)
}
const fn tick() -> Duration {
    Duration::from_millis(10)
}
const fn min_rto() -> Duration {
    Duration::from_millis(200)
}
const fn initial_rto() -> Duration {
    Duration::from_secs(3)
}
const fn max_rto() -> Duration {
    Duration::from_secs(60)
}

/// Shorter timeouts would only make a sender spin.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);

impl TcpParams {
    /// The defaults for a variant.
    pub const fn new(tcp: Variant) -> Self {
        Self {
            tcp,
            packet: packet(),
            ack: ack(),
            window: window(),
            initial_window: initial_window(),
            initial_ssthresh: None,
            tick: tick(),
            min_rto: min_rto(),
            initial_rto: initial_rto(),
            max_rto: max_rto(),
            delayed_ack: Duration::ZERO,
            handshake: false,
            limited_transmit: false,
            send_jitter: Duration::ZERO,
        }
    }

    /// Checks how the parameters fit together.
    ///
    /// # Errors
    /// The first that does not fit, and what would.
    pub fn check(&self) -> Result<(), (&'static str, UnitError)> {
        let refuse = |key, why: &str| Err((key, UnitError::new(why)));
        if self.packet.get() == 0 || self.packet.get() > 65_535 {
            return refuse("packet", "a segment has 1B to 65535B");
        }
        if self.ack.get() == 0 || self.ack.get() > 65_535 {
            return refuse("ack", "an acknowledgement has 1B to 65535B");
        }
        if self.window.get() == 0 || self.window.get() > 1 << 24 {
            return refuse("window", "a window has 1p to 16777216p");
        }
        if self.initial_window.get() == 0 || self.initial_window > self.window {
            return refuse("initial-window", "the initial window has at least 1p and at most `window`");
        }
        if self.tick.is_zero() {
            return refuse("tick", "the clock's tick is above zero; 1ns is as good as exact");
        }
        if self.initial_ssthresh.is_some_and(|ssthresh| ssthresh.get() == 0) {
            return refuse("initial-ssthresh", "the slow-start threshold is at least 1p");
        }
        for (key, timeout) in [("min-rto", self.min_rto), ("initial-rto", self.initial_rto)] {
            if timeout < SHORTEST_TIMEOUT {
                return refuse(key, "a timeout is at least 1ms");
            }
        }
        if self.min_rto > self.max_rto {
            return refuse("min-rto", "min-rto is above max-rto");
        }
        Ok(())
    }
}
