//! The words of a TCP transport: what the keys with a choice can be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which partial acknowledgements of a recovery restart NewReno's retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewRenoTimer {
    /// The first of each recovery only (RFC 6582, section 3.2, step 3, and section 4): with many losses in a
    /// window the timer expires and slow start repairs the rest. ns-2's `newreno_changes1_` = 1.
    #[default]
    Impatient,
    /// Each: one hole is repaired in each round trip, however long that takes (RFC 6582, section 4; RFC 2582,
    /// section 4). ns-2's `newreno_changes1_` = 0, its only behaviour before August 1998 and its default
    /// until May 2003.
    SlowButSteady,
}

/// The part of NewReno's window that a partial acknowledgement takes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialWindowDeflation {
    /// As much as it acknowledges, less the segment that it lets out (RFC 6582, section 3.2, step 3; RFC
    /// 2582, section 3, step 5). ns-2's `partial_window_deflation_` = 1.
    #[default]
    ByAcknowledged,
    /// All inflation: the window goes back to ssthresh, and the next duplicates inflate it anew. ns-2's
    /// `partial_window_deflation_` = 0, its only behaviour in 1998 and its default until May 2003.
    ToSsthresh,
}

/// The numbers in which the smoothed round trip and its variation are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttArithmetic {
    /// Real numbers (RFC 6298, section 2).
    #[default]
    Real,
    /// Whole eighths of a tick for the round trip and quarters for its variation (Jacobson & Karels 1988,
    /// appendix A), as BSD and ns-2 keep them. The variation does not fall below three quarters of a tick
    /// once it has been there, and the timeout is a whole number of ticks: on a clock of 100 ms it is at
    /// least 300 ms longer than the round trip.
    FixedPoint,
}

/// How slow start ends, besides by a loss or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStart {
    /// At the slow-start threshold (RFC 5681, section 3.1).
    Standard,
    /// The first one ends when round-trip times grow: `HyStart`++ (RFC 9406), with its L of 8 segments an
    /// ACK, unless segments are paced.
    #[serde(rename = "hystart++")]
    HystartPlusPlus,
}

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// By counts: three duplicate ACKs (RFC 5681), or with `sack` three segments beyond it that have arrived
    /// (RFC 6675). What is sent again and lost again is found by the retransmission timeout.
    DuplicateAcks,
    /// By times, with `sack`: a segment is lost if one that was sent later has arrived, and a reordering
    /// window has passed, which begins with a fourth of the least round trip and grows with retransmissions
    /// that were in vain; where a flight ends, a probe after two round trips finds out (RACK-TLP, RFC 8985).
    Rack,
    /// As QUIC (RFC 9002), with `sack`: a transmission is lost if one three later has arrived, or if any
    /// later one has, and it was sent more than 9/8 of a round trip ago (section 6.1). Where a flight ends, a
    /// probe after a third of the timeout finds out, with `min-rto-bounds = "persistent-congestion"` that is
    /// the probe timeout (section 6.2).
    Quic,
}

/// The spacing of segments by a sender whose congestion control has no rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pacing {
    /// Nothing: what an ACK lets out leaves at once.
    None,
    /// The window: segments leave at twice its rate (the window by the smoothed round-trip time) while it is
    /// below half of the slow-start threshold, else at 1.2 times its rate, as from Linux with the queueing
    /// discipline `fq` (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`). The first window, sent before a round
    /// trip is known, leaves at once.
    Window,
}

/// The rule for the window after a retransmission timeout without sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IdleRestart {
    /// The window becomes no larger than the initial window: slow start begins anew (RFC 5681, section 4.1).
    #[default]
    Rfc5681,
    /// Nothing.
    None,
}

/// The growth of a window that the application hardly uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CwndValidation {
    /// The window grows while at least half of it was acknowledged in a recent round trip (RFC 7661, section
    /// 4.3, the growth alone).
    #[default]
    Rfc7661,
    /// The window grows by every ACK.
    None,
}

/// How a reduction of the window is carried out, and how its growth is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// To what the congestion control says, a fraction of a segment included; it grows on with the next ACK
    /// (RFC 5681, RFC 3168).
    Exact,
    /// As by Linux: the window has whole segments, and a reduction rounds it down before and after (7 to 3).
    /// In congestion avoidance it grows by a segment after a whole number of acknowledged ones
    /// (`tcp_cong_avoid_ai`): as many as the window has, or, with CUBIC, as many as its target and its
    /// Reno-friendly window say, which are whole numbers of segments, too (`tcp_cubic.c`). After a mark it
    /// does not grow until something sent later is acknowledged (the state CWR of `tcp_input.c`).
    Linux,
}

/// The size of the window that the receiver offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WindowTuning {
    /// All of `window` from the start.
    #[default]
    None,
    /// As Linux (`tcp_rcv_space_adjust`): at first 64 kB in whole segments, at most `window`. When the
    /// application has taken more in a round trip than in any before, the window becomes at least twice that,
    /// and more while the flow speeds up (six times where it doubles), but no more than `window`. The
    /// application takes all data at once.
    Linux,
}

/// The quantity that the shortest retransmission timeout bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MinRtoBounds {
    /// The timeout as a whole (RFC 6298, section 2.4).
    #[default]
    Timeout,
    /// The part of the timeout that is added to the smoothed round trip for its variation, as in Linux: the
    /// timeout is longer by a round trip.
    Variation,
    /// A third of the timeout, which is the probe timeout of QUIC (RFC 9002, section 6.2.1): the smoothed
    /// round trip, four times its variation or 1 ms, and this for an ACK that waits. Congestion that lasts
    /// for three of them is persistent (section 7.6).
    #[serde(rename = "persistent-congestion")]
    PersistentCongestion,
}
