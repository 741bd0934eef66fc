//! The words of a TCP transport: what the keys with a choice can be.

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
    /// Reno that keeps its reserved window: the loss of an OUT packet halves only what is beyond it, the loss
    /// of an IN packet the whole window (Yeom & Reddy 1999, figure 7). The sender knows the color of each
    /// packet as soon as the marker has given it. A flow's own `profile` is a marker within the sender, and
    /// may have another `rule` and `window` than markers elsewhere; a shared one informs the sender ("by
    /// integrating the marker with the sender or by the marker informing the sender", section 3.4).
    #[serde(rename = "two-windows")]
    TwoWindows,
    /// The defaults of hosts with Linux 6.18, as far as they are modelled: a preset for the keys that are not
    /// given, whichever `congestion` is given beside it. Its sizes are those of Ethernet and of the kernel's
    /// buffers: `packet = "1500B"`, `ack = "52B"` (headers with timestamps), `window = "16.777216MB"` (half
    /// of `tcp_rmem`'s maximum, which is 32 MiB since 6.16 and was 6 MiB before), `window-tuning = "linux"`
    /// and `send-buffer = "4.194304MB"` (`tcp_wmem`). It sets `sack`, `prr`, `byte-counting`, `handshake` and
    /// `limited-transmit` = true, `loss-detection = "rack"`, `congestion = "cubic"` with `alpha = "constant"`
    /// and `hystart`, `initial-window = "10p"`, `delayed-ack = "40ms"`, `quick-acks = "16p"`, `tick = "1us"`,
    /// `initial-rto = "1s"`, `min-rto = "200ms"`, `min-rto-bounds = "variation"`, `max-rto = "120s"` and
    /// `reduction = "linux"`. Give `congestion = "reno"` beside it for Linux's Reno, which has no HyStart;
    /// without `sack` (and `prr`) losses are found and recovered as by `newreno`. Nothing is paced unless the
    /// congestion control does so, as on Linux without the queueing discipline `fq`; with `fq`, add
    /// `pacing = "window"`. Not modelled: undoing a reduction that was in vain (by timestamps or duplicates,
    /// F-RTO), segments in bunches (TSO, GRO), delayed acknowledgements that adapt their wait, and a round
    /// trip measured by every ACK (one a window is measured, except by RACK and HyStart).
    Linux,
    /// One stream of QUIC (RFC 9000 and 9002) as stacks of today send it, as far as this sender can act like
    /// it: a preset for the keys that are not given, with any `congestion`. It sets `packet = "1500B"` (1452
    /// bytes of UDP payload, UDP and IPv6), `ack = "85B"` (headers of a packet), `window = "16.777216MB"`,
    /// `initial-window = "10p"`, `loss-detection = "quic"`, `sack`, `byte-counting`, `handshake` and
    /// `limited-transmit` = true, `congestion = "cubic"`, `slow-start = "hystart++"`, `pacing = "window"`,
    /// `delayed-ack = "25ms"`, `tick = "1us"`, `initial-rto = "999ms"`, `min-rto = "25ms"`,
    /// `min-rto-bounds = "persistent-congestion"` and `max-rto = "60s"`; the window stays after idle time
    /// (`idle-restart`), and after a first packet that was lost. Not as in QUIC: a timeout after three probe
    /// timeouts lowers the window, to one segment, where QUIC waits for an ACK that proves that the
    /// congestion was persistent, and keeps two; one probe is sent before it, where QUIC sends one after each
    /// doubled timeout; a retransmission has the number of its segment, so that its round trip is not
    /// measured, and other round trips are measured once a window; ACKs name three ranges; the window is its
    /// largest from the start, where stacks begin with less and double it; pacing has a ratio of 1.2 where
    /// RFC 9002 suggests 1.25; the handshake's packets have the size `ack`, where QUIC's are 1200 bytes and
    /// more; an ACK every second packet, where some stacks send fewer; and captures show TCP.
    Quic,
    /// The NewReno agent of ns-2 in 1998 and 1999 (versions 2.1b2 to 2.1b5), with which the papers of the
    /// time simulated: a preset for the keys that are not given. It sets `newreno-timer = "slow-but-steady"`,
    /// `partial-window-deflation = "to-ssthresh"`, `tick = "100ms"`, `rtt-arithmetic = "fixed-point"`,
    /// `initial-rto = "6s"`, `min-rto = "200ms"`, `initial-window = "1p"`, and `handshake` and
    /// `limited-transmit` = false. Sources: ns-2's `tcp.cc` of April 1998 (`rtt_update` counts in shifted
    /// integers, `rtt_timeout` has a floor of two ticks), its `tcp-newreno.cc` of May 1997 and of May 2001 (a
    /// partial acknowledgement restarts the timer and sets `dupwnd_` to 0; options for both, off by default,
    /// came on 29 August 1998 and by 2001, and became the default in May 2003) and its `ns-default.tcl` of
    /// December 1997 (`tcpTick_` 0.1, `rtxcur_init_` 6.0, `windowInit_` 1). Not part of it, since scripts set
    /// them: `window` (ns's own was 20 packets), `packet`, `delayed-ack` and `send-jitter`.
    /// `initial-ssthresh` is the window: `Simulator run` reset every agent, in 1998 as today, after the
    /// script had set `window_`; only a script that set it later than that kept
    /// 20. Not modelled: backoff ends at a factor of 64; no more than two new segments leave for each
    /// acknowledgement in a
    /// recovery; and in 1997, until when is not known, acknowledgements after a timeout counted as partial.
    #[serde(rename = "ns-1998")]
    Ns1998,
}

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
