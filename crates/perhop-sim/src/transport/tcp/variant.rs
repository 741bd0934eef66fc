//! The variants of TCP, which are also presets.

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
    /// script had set `window_`; only a script that set it later than that kept 20. Not modelled: backoff
    /// ends at a factor of 64; no more than two new segments leave for each acknowledgement in a recovery;
    /// and in 1997, until when is not known, acknowledgements after a timeout counted as partial.
    #[serde(rename = "ns-1998")]
    Ns1998,
}
