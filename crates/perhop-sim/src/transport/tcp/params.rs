//! The parameters of a TCP connection.
//!
//! Defaults are those of ns-2.35 for an agent without options, except where a comment says otherwise: its clock and timeouts,
//! and the NewReno of RFC 6582, which ns-2 has had since May 2003. `tcp = "ns-1998"` is the NewReno of the papers' period.

use perhop_core::table::{at_key, nested};
use perhop_core::units::{Packets, UnitError};
use perhop_core::{Bytes, Depth, Duration, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::{Map, Value, json};

use super::congestion::{Algorithm, AnyCongestion, Foreign, ForeignCongestionParams, Needs, Setup};
use super::{AccEcn, Congestion, presets};

/// How losses are recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Fast recovery ends with the first new acknowledgement (RFC 5681, section 3.2).
    Reno,
    /// Fast recovery lasts until everything sent before it is acknowledged (RFC 6582).
    NewReno,
    /// Reno that keeps its reserved window: the loss of an OUT packet halves only what is beyond it, the loss of an IN
    /// packet the whole window (Yeom & Reddy 1999, figure 7). The sender knows the color of each packet as soon as the marker
    /// has given it. A flow's own `profile` is a marker within the sender, and may have another `rule` and `window` than
    /// markers elsewhere; a shared one informs the sender ("by integrating the marker with the sender or by the marker
    /// informing the sender", section 3.4).
    #[serde(rename = "two-windows")]
    TwoWindows,
    /// What hosts of Linux 6.18 do by default, as far as it is modelled: a preset for the keys that are not given, whichever
    /// `congestion` stands beside it. Its sizes are those of Ethernet and of the kernel's buffers: `packet = "1500B"`,
    /// `ack = "52B"` (headers with timestamps), `window = "16.777216MB"` (half of `tcp_rmem`'s maximum, which is 32 MiB since 6.16 and was
    /// 6 MiB before), `window-tuning = "linux"` and `send-buffer = "4.194304MB"` (`tcp_wmem`). It sets `sack`, `prr`, `byte-counting`, `handshake` and `limited-transmit` = true, `loss-detection = "rack"`,
    /// `congestion = "cubic"`, `slow-start = "hystart"`, `initial-window = "10p"`, `delayed-ack = "40ms"`, `quick-acks = "16p"`,
    /// `tick = "1us"`, `initial-rto = "1s"`, `min-rto = "200ms"`, `min-rto-bounds = "variation"`, `max-rto = "120s"` and
    /// `reduction = "linux"`. Give `congestion = "reno"` beside it for Linux's Reno, which has no HyStart; without `sack` (and `prr`) losses are found and
    /// recovered as by `newreno`. Nothing is paced unless the congestion control does so, as on Linux without the queueing discipline
    /// `fq`; with `fq`, add `pacing = "window"`. Not modelled: undoing a reduction that was in vain (by timestamps or
    /// duplicates, F-RTO), segments in bunches (TSO, GRO), delayed acknowledgements that adapt their
    /// wait, and a round trip measured by every ACK (one a window is measured, except by RACK and HyStart).
    Linux,
    /// One stream of QUIC (RFC 9000 and 9002) as stacks of today send it, as far as this sender can act like it: a preset for the keys
    /// that are not given, with any `congestion`. It sets `packet = "1500B"` (1452 bytes of UDP payload, UDP and
    /// IPv6), `ack = "85B"` (headers of a packet), `window = "16.777216MB"`, `initial-window = "10p"`, `loss-detection = "quic"`, `sack`,
    /// `byte-counting`, `handshake` and `limited-transmit` = true, `congestion = "cubic"`, `slow-start = "hystart++"`,
    /// `pacing = "window"`, `delayed-ack = "25ms"`, `tick = "1us"`, `initial-rto = "999ms"`, `min-rto = "25ms"`,
    /// `min-rto-bounds = "persistent-congestion"` and `max-rto = "60s"`; the window stays after idle time (`idle-restart`), and
    /// after a first packet that was lost. Not as in QUIC: a timeout after
    /// three probe timeouts lowers the window, to one segment, where QUIC waits for an ACK that proves that the congestion was persistent, and keeps two;
    /// one probe is sent before it, where QUIC sends one after each doubled timeout; a retransmission has the number of its
    /// segment, so that its round trip is not measured, and other round trips are measured once a window; ACKs name three ranges; the window
    /// is its largest from the start, where stacks begin with less and double it; pacing has a ratio of 1.2 where RFC 9002 suggests 1.25; the handshake's packets have the size `ack`, where QUIC's are 1200
    /// bytes and more; an ACK every second packet, where some stacks send fewer; and captures show TCP.
    Quic,
    /// The NewReno agent of ns-2 in 1998 and 1999 (versions 2.1b2 to 2.1b5), with which the papers of the time simulated: a
    /// preset for the keys that are not given. It sets `newreno-timer = "slow-but-steady"`,
    /// `partial-window-deflation = "to-ssthresh"`, `tick = "100ms"`, `rtt-arithmetic = "fixed-point"`, `initial-rto = "6s"`,
    /// `min-rto = "200ms"`, `initial-window = "1p"`, and `handshake` and `limited-transmit` = false. Sources: ns-2's `tcp.cc`
    /// of April 1998 (`rtt_update` counts in shifted integers, `rtt_timeout` has a floor of two ticks), its `tcp-newreno.cc`
    /// of May 1997 and of May 2001 (a partial acknowledgement restarts the timer and sets `dupwnd_` to 0; options for both,
    /// off by default, came on 29 August 1998 and by 2001, and became the default in May 2003) and its `ns-default.tcl` of
    /// December 1997 (`tcpTick_` 0.1, `rtxcur_init_` 6.0, `windowInit_` 1). Not part of it, since scripts set them: `window`
    /// (ns's own was 20 packets), `packet`, `delayed-ack` and `send-jitter`. `initial-ssthresh` is the window: `Simulator run`
    /// reset every agent, in 1998 as today, after the script had set `window_`; only a script that set it later than that kept
    /// 20. Not modelled: backoff ends at a factor of 64; no more than two new segments leave for each acknowledgement in a
    /// recovery; and in 1997, until when is not known, acknowledgements after a timeout counted as partial.
    #[serde(rename = "ns-1998")]
    Ns1998,
}

/// Which partial acknowledgements of a recovery restart NewReno's retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewRenoTimer {
    /// The first of each recovery only (RFC 6582, section 3.2, step 3, and section 4): with many losses in a window the timer
    /// expires and slow start repairs the rest. ns-2's `newreno_changes1_` = 1.
    #[default]
    Impatient,
    /// Each: one hole is repaired in each round trip, however long that takes (RFC 6582, section 4; RFC 2582, section 4).
    /// ns-2's `newreno_changes1_` = 0, its only behaviour before August 1998 and its default until May 2003.
    SlowButSteady,
}

/// What a partial acknowledgement takes out of NewReno's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialWindowDeflation {
    /// What it acknowledges, less the segment that it lets out (RFC 6582, section 3.2, step 3; RFC 2582, section 3, step 5).
    /// ns-2's `partial_window_deflation_` = 1.
    #[default]
    ByAcknowledged,
    /// All inflation: the window goes back to ssthresh, and the next duplicates inflate it anew. ns-2's
    /// `partial_window_deflation_` = 0, its only behaviour in 1998 and its default until May 2003.
    ToSsthresh,
}

/// In what numbers the smoothed round trip and its variation are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttArithmetic {
    /// Real numbers (RFC 6298, section 2).
    #[default]
    Real,
    /// Whole eighths of a tick for the round trip and quarters for its variation (Jacobson & Karels 1988, appendix A), as BSD
    /// and ns-2 keep them. The variation does not fall below three quarters of a tick once it has been there, and the timeout
    /// is a whole number of ticks: on a clock of 100 ms it is at least 300 ms longer than the round trip.
    FixedPoint,
}

/// How slow start ends, besides by a loss or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStart {
    /// At the slow-start threshold (RFC 5681, section 3.1).
    Standard,
    /// With `congestion = "cubic"`: the first one ends as Linux's CUBIC ends it, when the round trip has grown by an eighth, or when
    /// ACKs have come in a row for half of it (`HyStart`, Ha & Rhee 2011).
    Hystart,
    /// The first one ends when round-trip times grow: `HyStart`++ (RFC 9406), with its L of 8 segments an ACK, unless segments are
    /// paced.
    #[serde(rename = "hystart++")]
    HystartPlusPlus,
}

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// By counts: three duplicate ACKs (RFC 5681), or with `sack` three segments beyond it that have arrived (RFC 6675). What is
    /// sent again and lost again is found by the retransmission timeout.
    DuplicateAcks,
    /// By times, with `sack`: a segment is lost if one that was sent later has arrived, and a reordering window has passed, which
    /// begins with a fourth of the least round trip and grows with retransmissions that were in vain; where a flight ends, a probe
    /// after two round trips finds out (RACK-TLP, RFC 8985).
    Rack,
    /// As QUIC (RFC 9002), with `sack`: a transmission is lost if one three later has arrived, or if any later one has, and it was sent
    /// more than 9/8 of a round trip ago (section 6.1). Where a flight ends, a probe after a third of the timeout finds out, with
    /// `min-rto-bounds = "persistent-congestion"` that is the probe timeout (section 6.2).
    Quic,
}

/// What spaces the segments of a sender whose congestion control has no rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pacing {
    /// Nothing: what an ACK lets out leaves at once.
    None,
    /// The window: segments leave at twice its rate (the window by the smoothed round-trip time) while it is below half of the
    /// slow-start threshold, else at 1.2 times its rate, as from Linux with the queueing discipline `fq` (`tcp_pacing_ss_ratio`,
    /// `tcp_pacing_ca_ratio`). The first window, sent before a round trip is known, leaves at once.
    Window,
}

/// What becomes of the window after a retransmission timeout without sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IdleRestart {
    /// It is no larger than the initial window: slow start begins anew (RFC 5681, section 4.1).
    #[default]
    Rfc5681,
    /// Nothing.
    None,
}

/// Whether a window grows that the application hardly uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CwndValidation {
    /// It grows while at least half of it was acknowledged in a recent round trip (RFC 7661, section 4.3, the growth alone).
    #[default]
    Rfc7661,
    /// It grows by every ACK.
    None,
}

/// How CUBIC grows in its Reno-friendly region once it has the window that it had before the last reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CubicAlpha {
    /// As Reno, by one segment a round trip (RFC 9438, section 4.3).
    Raised,
    /// As before, by 9/17 of a segment a round trip (RFC 8312, section 4.2, and Linux).
    Constant,
}

/// How a reduction of the window is carried out, and how its growth is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// To what the congestion control says, a fraction of a segment included; it grows on with the next ACK (RFC 5681, RFC 3168).
    Exact,
    /// As by Linux: the window has whole segments, and a reduction rounds it down before and after (7 to 3). In congestion avoidance
    /// it grows by a segment after a whole number of acknowledged ones (`tcp_cong_avoid_ai`): as many as the window has, or, with
    /// CUBIC, as many as its target and its Reno-friendly window say, which are whole numbers of segments, too (`tcp_cubic.c`). After
    /// a mark it does not grow until something sent later is acknowledged (the state CWR of `tcp_input.c`).
    Linux,
}

/// How large a window the receiver offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WindowTuning {
    /// All of `window` from the start.
    #[default]
    None,
    /// As Linux (`tcp_rcv_space_adjust`): at first 64 kB in whole segments, at most `window`. When the application has taken more in
    /// a round trip than in any before, the window becomes at least twice that, and more while the flow speeds up (six times where
    /// it doubles), but no more than `window`. The application takes all data at once.
    Linux,
}

/// What the shortest retransmission timeout bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MinRtoBounds {
    /// The timeout as a whole (RFC 6298, section 2.4).
    #[default]
    Timeout,
    /// What is added to the smoothed round trip for its variation, as Linux does: the timeout is longer by a round trip.
    Variation,
    /// A third of the timeout, which is the probe timeout of QUIC (RFC 9002, section 6.2.1): the smoothed round trip, four times its
    /// variation or 1 ms, and this for an ACK that waits. Congestion that lasts for three of them is persistent (section 7.6).
    #[serde(rename = "persistent-congestion")]
    PersistentCongestion,
}

/// A TCP connection. `tcp = "linux"`, `tcp = "quic"` and `tcp = "ns-1998"` have other defaults than those listed here.
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the format, and they are independent")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct TcpParams {
    /// How losses are recovered.
    pub tcp: Variant,
    /// Size of a full segment on the wire, headers included.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// Size of an acknowledgement (and of a SYN) on the wire.
    #[serde(default = "ack")]
    pub ack: Bytes,
    /// The receiver's window, in packets or in bytes of payload, such as `"4MB"`; with `window-tuning` the most that it grows to. A
    /// packet's payload is `packet` less `ack`. An agent of ns-2 has 20 packets; the papers' rates need more.
    #[serde(default = "window")]
    pub window: Depth,
    /// How large a window the receiver offers.
    #[serde(default)]
    pub window_tuning: WindowTuning,
    /// The sender's buffer, in packets or in bytes of payload: no more is sent and not yet acknowledged. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Depth>,
    /// The congestion window at the start.
    #[serde(default = "initial_window")]
    pub initial_window: Packets,
    /// The slow-start threshold at the start; the largest window that `window` and `send-buffer` allow unless given. Refused like `slow-start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<Packets>,
    /// The granularity of the clock that measures round trips.
    #[serde(default = "tick")]
    pub tick: Duration,
    /// In what numbers the smoothed round trip and its variation are kept.
    #[serde(default)]
    pub rtt_arithmetic: RttArithmetic,
    /// The shortest retransmission timeout.
    #[serde(default = "min_rto")]
    pub min_rto: Duration,
    /// What `min-rto` bounds.
    #[serde(default)]
    pub min_rto_bounds: MinRtoBounds,
    /// The retransmission timeout before the first round trip is known.
    #[serde(default = "initial_rto")]
    pub initial_rto: Duration,
    /// The longest retransmission timeout.
    #[serde(default = "max_rto")]
    pub max_rto: Duration,
    /// How long an in-order segment may wait for a second one before it is acknowledged; `0s` acknowledges each at once.
    #[serde(default)]
    pub delayed_ack: Duration,
    /// With `delayed-ack`: this many segments are acknowledged at once before the first one waits, as by Linux's quick mode,
    /// which has 16. Refused without, except with `tcp = "linux"`, which has it.
    #[serde(default = "none")]
    pub quick_acks: Packets,
    /// Which partial acknowledgements restart NewReno's timer. With `tcp` = `"reno"` or `"two-windows"` and with `sack`, which have
    /// none, the key is refused.
    #[serde(default)]
    pub newreno_timer: NewRenoTimer,
    /// What a partial acknowledgement takes out of NewReno's window. Refused like `newreno-timer`.
    #[serde(default)]
    pub partial_window_deflation: PartialWindowDeflation,
    /// Exchange a SYN before the first data. After a SYN that was sent again the first window is one segment (RFC 5681, section 3.1; with
    /// `tcp = "linux"` only if it was sent more than twice, as by Linux), and the first timeout 3 s, or `initial-rto` if that is longer
    /// (RFC 6298, section 5.7).
    #[serde(default)]
    pub handshake: bool,
    /// Send a new segment on each of the first two duplicate acknowledgements (RFC 3042).
    #[serde(default)]
    pub limited_transmit: bool,
    /// Selective acknowledgements: the receiver reports up to three ranges that it holds (RFC 2018), the sender recovers
    /// by them (RFC 6675), whatever `tcp` says of recovery. Acknowledgements keep the size `ack`.
    #[serde(default)]
    pub sack: bool,
    /// With `sack`: in a recovery the window shrinks in proportion to what is delivered (Proportional Rate Reduction,
    /// RFC 9937) in place of all at once. Refused with `bbr` and `bbr3`, except with `tcp = "linux"`, which has it.
    #[serde(default)]
    pub prr: bool,
    /// How losses are found: `duplicate-acks`, the default, or `rack` or `quic`, which require `sack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_detection: Option<LossDetection>,
    /// How the window grows beyond the slow-start threshold, and how far a loss lowers it. A key of its own, as on Linux and
    /// in RFC 9438: it goes with every way to recover from losses, except that `two-windows` has its own.
    #[serde(default)]
    pub congestion: Congestion,
    /// The class of a congestion control in Python; it stands in the key `congestion`.
    #[serde(skip)]
    #[schemars(skip)]
    pub class: Option<Box<ForeignCongestionParams>>,
    /// The window grows by the segments that are acknowledged, not by acknowledgements, which makes up for those that were
    /// delayed (RFC 3465, without its limit L, as Linux does). Refused with congestion controls that count so always or not at all
    /// (all but `reno`, `two-windows`, `scalable` and `dctcp`), except with `tcp = "linux"`, which has it. A class in Python may read it.
    #[serde(default)]
    pub byte_counting: bool,
    /// Where ECN is in use (the flow's key `ecn`): a marked packet leaves more of the window than a lost one, 80 % with `reno` and
    /// 85 % with `cubic` (RFC 8511, Alternative Backoff with ECN). Refused with other congestion controls.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ecn_backoff: bool,
    /// With `ecn = "accurate"` or `"l4s"`: how ACKs carry the number of marked packets. Refused without.
    #[serde(default, skip_serializing_if = "AccEcn::is_exact")]
    pub accecn: AccEcn,
    /// How slow start ends, besides by a loss or a mark: `standard`, the default, or another. Refused with congestion controls that
    /// have none: `bbr`, `bbr3` and `ledbat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_start: Option<SlowStart>,
    /// With `congestion = "cubic"`: how it grows in its Reno-friendly region beyond the window before the last reduction: `raised`,
    /// the default, or `constant`, the default of `tcp = "linux"`. Refused with other congestion controls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cubic_alpha: Option<CubicAlpha>,
    /// How a reduction of the window is carried out, and its growth counted: `exact`, the default, or `linux`, the default of
    /// `tcp = "linux"`. Refused with congestion controls that set a rate or own their recoveries: `bbr`, `bbr3` and `prague`, except
    /// with `tcp = "linux"`, which has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction: Option<Reduction>,
    /// With `congestion = "prague"`: after 500 round trips, flows with a shorter round trip than this grow as one that has it, so
    /// that they get the same rate; `0s` leaves out this independence, and 25ms is the default. Refused with other congestion
    /// controls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_rtt: Option<Duration>,
    /// With `congestion = "dctcp"`: the weight g of the last window in the estimate of the share of marked packets, above 0 and at
    /// most 1; 0.0625 (1/16, RFC 8257, section 4.2) unless given. Refused with other congestion controls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimation_gain: Option<Probability>,
    /// With `congestion = "ledbat"`: the queueing delay that it aims at (RFC 6817's TARGET), from 1ms to 100ms, which is the
    /// default. Refused with other congestion controls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_delay: Option<Duration>,
    /// What spaces segments: `none`, the default, or `window`. Refused with congestion controls that set a rate themselves: `bbr`,
    /// `bbr3` and `prague`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// Where an application hands the data over in steps: what becomes of the window after a retransmission timeout without
    /// sending; `rfc5681`, the default, or `none`. Refused without an `application`, and with `bbr` and `bbr3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_restart: Option<IdleRestart>,
    /// Where an application hands the data over in steps: whether a window grows that is hardly used; `rfc7661`, the default, or
    /// `none`. Refused without an `application`, and with `bbr` and `bbr3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd_validation: Option<CwndValidation>,
    /// Before new data, wait a time drawn uniformly up to this (ns-2's `overhead_`), against phase effects. Refused where segments
    /// are paced.
    #[serde(default)]
    pub send_jitter: Duration,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
const fn packet() -> Bytes {
    Bytes::new(1000)
}
const fn ack() -> Bytes {
    Bytes::new(40)
}
const fn window() -> Depth {
    Depth::Packets(1000)
}
const fn initial_window() -> Packets {
    Packets::new(1)
}
const fn none() -> Packets {
    Packets::new(0)
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

/// Sequence numbers tell apart what is outstanding.
const MOST_SEGMENTS: u64 = 1 << 24;

/// Shorter timeouts would only make a sender spin.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);
/// Longer ones are a slip of the keyboard.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// Linux scales no longer round trips.
const LONGEST_TARGET_RTT: Duration = Duration::from_millis(100);
/// A queueing delay that can be measured, and the most that RFC 6817 allows.
const LEAST_TARGET_DELAY: Duration = Duration::from_millis(1);
pub(super) const MOST_TARGET_DELAY: Duration = Duration::from_millis(100);
/// See [`TcpParams::estimation_gain`].
pub(super) const DEFAULT_ESTIMATION_GAIN: f64 = 1.0 / 16.0;
/// See [`TcpParams::target_rtt`].
pub(super) const DEFAULT_TARGET_RTT: Duration = Duration::from_millis(25);

/// The keys that only a recovery by NewReno takes notice of.
const NEWRENO_KEYS: [&str; 2] = ["newreno-timer", "partial-window-deflation"];
const NO_PARTIAL_ACKS: &str = "only a recovery by NewReno has partial acknowledgements: leave this key out, or give `tcp = \
                               \"newreno\"` without `sack`";

/// The key that does not fit, and what would.
type Refused = (&'static str, UnitError);

fn refuse(key: &'static str, why: &str) -> Result<(), Refused> {
    Err((key, UnitError::new(why)))
}

impl TcpParams {
    /// The defaults for a variant.
    pub fn new(tcp: Variant) -> Self {
        serde_json::from_value(json!({ "tcp": tcp })).expect("a variant has all defaults")
    }

    /// Whether CUBIC grows as Reno beyond the window before the last reduction.
    pub(super) fn raises_alpha(&self) -> bool {
        let default = if self.tcp == Variant::Linux { CubicAlpha::Constant } else { CubicAlpha::Raised };
        self.cubic_alpha.unwrap_or(default) == CubicAlpha::Raised
    }

    /// Whether reductions are carried out as by Linux, for a congestion control that leaves them to the sender.
    pub(super) fn reduces_as_linux(&self) -> bool {
        self.reduction == Some(Reduction::Linux) && !self.reduces_itself()
    }

    /// Whether the congestion control sets a rate or owns its recoveries (in Linux: `cong_control`), or is implemented outside.
    fn reduces_itself(&self) -> bool {
        let needs = self.needs();
        needs.pacing || needs.recovery || self.class.is_some()
    }

    /// What a full segment carries besides headers, in bytes; all of one that is no longer than an ACK.
    pub fn payload(&self) -> u64 {
        let (packet, headers) = (self.packet.get(), self.ack.get());
        if packet > headers { packet - headers } else { packet.max(1) }
    }

    /// So much in full segments, at least one.
    fn segments(&self, size: Depth) -> u32 {
        let segments = match size {
            Depth::Packets(packets) => packets,
            Depth::Bytes(bytes) => bytes / self.payload(),
        };
        u32::try_from(segments.clamp(1, MOST_SEGMENTS)).expect("in range")
    }

    /// So many segments in bytes: of whole packets where a size was given in packets, of what they carry where it was given in bytes.
    pub(super) fn bytes_of(&self, segments: u32, given: Depth) -> u64 {
        let each = match given {
            Depth::Packets(_) => self.packet.get(),
            Depth::Bytes(_) => self.payload(),
        };
        u64::from(segments) * each
    }

    /// The receiver's largest window, in segments.
    pub fn most_offered(&self) -> u32 {
        self.segments(self.window)
    }

    /// The first window that the receiver offers, in segments: Linux's is what fits into the header's field without scaling, in whole
    /// segments (`tcp_select_initial_window`).
    pub(super) fn first_offered(&self) -> u32 {
        match self.window_tuning {
            WindowTuning::None => self.most_offered(),
            WindowTuning::Linux => self.segments(Depth::Bytes(u16::MAX.into())).min(self.most_offered()),
        }
    }

    /// What the sender's buffer holds, in segments, if it is limited.
    pub fn most_buffered(&self) -> Option<u32> {
        self.send_buffer.map(|size| self.segments(size))
    }

    /// How many segments may ever be unacknowledged: what the receiver's window and the sender's buffer allow.
    pub fn most_outstanding(&self) -> u32 {
        self.most_offered().min(self.most_buffered().unwrap_or(u32::MAX))
    }

    /// How many segments may be unacknowledged until the receiver's window has grown.
    pub(super) fn first_outstanding(&self) -> u32 {
        self.first_offered().min(self.most_outstanding())
    }

    /// Checks how the parameters fit together.
    ///
    /// # Errors
    /// The first that does not fit, and what would.
    pub fn check(&self) -> Result<(), Refused> {
        self.check_windows()?;
        self.check_timeouts()?;
        self.check_recovery()?;
        self.check_control()
    }

    fn check_windows(&self) -> Result<(), Refused> {
        if self.packet.get() == 0 || self.packet.get() > 65_535 {
            return refuse("packet", "a segment has 1B to 65535B");
        }
        if self.ack.get() == 0 || self.ack.get() > 65_535 {
            return refuse("ack", "an acknowledgement has 1B to 65535B");
        }
        for (key, size) in [("window", Some(self.window)), ("send-buffer", self.send_buffer)] {
            let (least, amount) = match size {
                None => continue,
                Some(Depth::Packets(packets)) => (1, packets),
                Some(Depth::Bytes(bytes)) => (self.payload(), bytes),
            };
            if amount < least || amount / least > MOST_SEGMENTS {
                let why = match size {
                    Some(Depth::Bytes(_)) => format!(
                        "1 to {MOST_SEGMENTS} segments fit in, each of {least} bytes (`packet` less `ack`), such as 4MB"
                    ),
                    _ => format!("from 1p to {MOST_SEGMENTS}p, such as 1000p"),
                };
                return refuse(key, &why);
            }
        }
        if self.initial_window.get() == 0 || self.initial_window.get() > u64::from(self.most_outstanding()) {
            return refuse(
                "initial-window",
                "the initial window has at least 1p and at most what `window` and `send-buffer` allow",
            );
        }
        if self.tick.is_zero() {
            return refuse("tick", "the clock's tick is above zero; 1ns is as good as exact");
        }
        if self.initial_ssthresh.is_some_and(|ssthresh| ssthresh.get() == 0) {
            return refuse("initial-ssthresh", "the slow-start threshold is at least 1p");
        }
        Ok(())
    }

    fn check_timeouts(&self) -> Result<(), Refused> {
        for (key, timeout) in [("min-rto", self.min_rto), ("initial-rto", self.initial_rto)] {
            if timeout < SHORTEST_TIMEOUT {
                return refuse(key, "a timeout is at least 1ms");
            }
        }
        if self.max_rto > LONGEST_TIMEOUT {
            return refuse("max-rto", "a timeout is at most 3600s, such as 60s");
        }
        for (key, timeout) in [("min-rto", self.min_rto), ("initial-rto", self.initial_rto)] {
            if timeout > self.max_rto {
                let why = format!(
                    "{timeout} is above `max-rto`, which is {}; lower this, or raise that",
                    self.max_rto
                );
                return refuse(key, &why);
            }
        }
        if self.tick > self.max_rto {
            let why = format!("a clock that ticks each {} measures no round trip; 10ms is usual", self.tick);
            return refuse("tick", &why);
        }
        Ok(())
    }

    fn check_recovery(&self) -> Result<(), Refused> {
        if self.quick_acks.get() > u64::from(u16::MAX) {
            return refuse("quick-acks", "at most 65535p are acknowledged at once");
        }
        if self.tcp == Variant::Ns1998 && self.prr {
            return refuse(
                "prr",
                "it paces a recovery by SACK, and ns-1998 is a NewReno; leave this key out, or give `tcp = \"newreno\"` with `sack`",
            );
        }
        // A preset sets these keys beside others that leave them without effect.
        if !matches!(self.tcp, Variant::Linux | Variant::Quic) {
            self.check_idle_keys()?;
        }
        if self.prr && !self.sack {
            return refuse("prr", "it paces the recovery of `sack`; set that to true, or this to false");
        }
        if self.has_rack() && !self.sack {
            return refuse(
                "loss-detection",
                "`rack` and `quic` need to know which segments have arrived; set `sack` to true, or leave this key out",
            );
        }
        if self.tcp == Variant::Ns1998 && self.sack {
            return refuse(
                "sack",
                "ns-1998 is a NewReno; for SACK give `tcp = \"newreno\"` and its clock's keys",
            );
        }
        if !self.has_partial_acks() {
            if self.newreno_timer != NewRenoTimer::default() {
                return refuse(NEWRENO_KEYS[0], NO_PARTIAL_ACKS);
            }
            if self.partial_window_deflation != PartialWindowDeflation::default() {
                return refuse(NEWRENO_KEYS[1], NO_PARTIAL_ACKS);
            }
        }
        Ok(())
    }

    /// Keys that are given and cannot act.
    fn check_idle_keys(&self) -> Result<(), Refused> {
        if self.prr && self.needs().recovery {
            let name = self.control_name();
            let why = format!("`{name}` sets the window in recoveries itself; leave this key out");
            return refuse("prr", &why);
        }
        if self.reduction.is_some() && self.reduces_itself() {
            let why =
                format!("`{}` carries out its reductions itself; leave this key out", self.control_name());
            return refuse("reduction", &why);
        }
        if self.byte_counting && !self.control().info().byte_counting {
            let name = self.control().info().name;
            let why = format!("`{name}` does not count ACKs, with the key or without; leave it out");
            return refuse("byte-counting", &why);
        }
        if self.quick_acks.get() > 0 && self.delayed_ack.is_zero() {
            let why = "without `delayed-ack` every segment is acknowledged at once; give that, or leave this key out";
            return refuse("quick-acks", why);
        }
        Ok(())
    }

    fn check_control(&self) -> Result<(), Refused> {
        if self.ecn_backoff && self.control().info().ecn_backoff.is_none() {
            let has_one = |control: &&Congestion| control.info().ecn_backoff.is_some();
            let known: Vec<_> =
                Congestion::ALL.iter().filter(has_one).map(|control| control.info().name).collect();
            let why = format!("RFC 8511 speaks of {} alone; leave this key out", known.join(" and "));
            return refuse("ecn-backoff", &why);
        }
        if !self.control().info().slow_start {
            let given = [
                ("slow-start", self.slow_start.is_some()),
                ("initial-ssthresh", self.initial_ssthresh.is_some()),
            ];
            if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
                return refuse(key, "this congestion control has no slow start; leave this key out");
            }
        }
        if self.slow_start == Some(SlowStart::Hystart) && self.control() != Congestion::Cubic {
            return refuse(
                "slow-start",
                "`hystart` is part of `cubic`; take `hystart++`, or leave this key out",
            );
        }
        if self.estimation_gain.is_some() && self.control() != Congestion::Dctcp {
            return refuse("estimation-gain", "only `dctcp` has it; leave this key out");
        }
        if self.estimation_gain.is_some_and(|gain| gain.get() == 0.0) {
            return refuse("estimation-gain", "the gain is above 0 and at most 1, such as 0.0625");
        }
        if self.cubic_alpha.is_some() && self.control() != Congestion::Cubic {
            return refuse("cubic-alpha", "only `cubic` has a Reno-friendly region; leave this key out");
        }
        if self.target_rtt.is_some() && self.control() != Congestion::Prague {
            return refuse("target-rtt", "only `prague` equalizes round-trip times; leave this key out");
        }
        if self.target_delay.is_some() && self.control() != Congestion::Ledbat {
            return refuse("target-delay", "only `ledbat` aims at a queueing delay; leave this key out");
        }
        let delays = LEAST_TARGET_DELAY..=MOST_TARGET_DELAY;
        if self.target_delay.is_some_and(|target| !delays.contains(&target)) {
            return refuse("target-delay", "a target is 1ms to 100ms (RFC 6817, section 2.5)");
        }
        if self.target_rtt.is_some_and(|target| target > LONGEST_TARGET_RTT) {
            return refuse("target-rtt", "at most 100ms, such as 25ms; 0s turns it off");
        }
        self.check_pacing()?;
        self.check_granted()?;
        if self.tcp == Variant::TwoWindows
            && ![Congestion::Reno, Congestion::TwoWindows].contains(&self.congestion)
        {
            return refuse(
                "congestion",
                "two-windows TCP has a rule of its own for losses; leave this key out",
            );
        }
        Ok(())
    }

    fn check_pacing(&self) -> Result<(), Refused> {
        let paces = self.needs().pacing;
        if self.pacing.is_some() && paces {
            let name = self.control_name();
            let why = format!("`{name}` paces at a rate of its own; leave this key out");
            return refuse("pacing", &why);
        }
        if paces && !self.send_jitter.is_zero() {
            return refuse("send-jitter", "the congestion control paces its segments; leave this key out");
        }
        if self.is_paced() && !self.send_jitter.is_zero() {
            return refuse("send-jitter", "`pacing` spaces the segments; leave one of the two keys out");
        }
        Ok(())
    }

    fn check_granted(&self) -> Result<(), Refused> {
        let given = [
            ("idle-restart", self.idle_restart.is_some()),
            ("cwnd-validation", self.cwnd_validation.is_some()),
        ];
        let given = given.into_iter().find(|(_, given)| *given);
        match given.filter(|_| self.needs().recovery) {
            None => Ok(()),
            Some((key, _)) => {
                let name = self.control_name();
                refuse(key, &format!("`{name}` has a model of the path instead; leave this key out"))
            }
        }
    }

    /// Whether segments are paced, by the congestion control's rate or by the window's.
    pub(super) fn is_paced(&self) -> bool {
        self.pacing == Some(Pacing::Window) || self.needs().pacing
    }

    /// The first window in segments, after a SYN that was sent again so many times: then one segment (RFC 5681, section 3.1). With its
    /// first timeout of a second, Linux keeps the initial window after one (`tcp_init_transfer`).
    /// QUIC knows no such rule.
    pub(super) fn first_window(&self, again: u64) -> u32 {
        let most = match self.tcp {
            Variant::Quic => u64::MAX,
            Variant::Linux => 1,
            _ => 0,
        };
        if again > most { 1 } else { self.initial_window.get() as u32 }
    }

    /// The congestion control. `tcp = "two-windows"` also selects one.
    pub fn control(&self) -> Congestion {
        if self.tcp == Variant::TwoWindows { Congestion::TwoWindows } else { self.congestion }
    }

    /// What the sender keeps for its congestion control.
    pub fn needs(&self) -> Needs {
        match (self.control(), &self.class) {
            (Congestion::Foreign, Some(class)) => class.needs(),
            (control, _) => control.info().needs,
        }
    }

    /// Whether its data is ECT(1), and its feedback must be accurate.
    pub fn is_l4s(&self) -> bool {
        match (self.control(), &self.class) {
            (Congestion::Foreign, Some(class)) => class.is_l4s(),
            (control, _) => control.info().is_l4s,
        }
    }

    /// The name of its congestion control: that of a class as `module:Class`.
    pub fn control_name(&self) -> &str {
        self.class.as_ref().map_or(self.control().info().name, |class| &class.class)
    }

    /// The congestion control of a new connection.
    pub(super) fn build_control(&self, setup: &Setup) -> AnyCongestion {
        match (self.control(), &self.class) {
            (Congestion::Foreign, Some(class)) => AnyCongestion::Foreign(Box::new(Foreign::of(class, setup))),
            (control, _) => control.build(setup),
        }
    }

    /// Whether losses are found by the times of transmissions (RACK-TLP, QUIC).
    pub(super) fn has_rack(&self) -> bool {
        matches!(self.loss_detection, Some(LossDetection::Rack | LossDetection::Quic))
    }

    /// Whether losses are found as by QUIC.
    pub(super) fn has_quic_losses(&self) -> bool {
        self.loss_detection == Some(LossDetection::Quic)
    }

    /// Whether the window begins anew after idle time.
    pub(super) fn restarts_after_idle(&self) -> bool {
        let default = if self.tcp == Variant::Quic { IdleRestart::None } else { IdleRestart::Rfc5681 };
        self.idle_restart.unwrap_or(default) == IdleRestart::Rfc5681
    }

    /// Whether losses are recovered by NewReno.
    pub(super) fn has_partial_acks(&self) -> bool {
        !self.sack && !matches!(self.tcp, Variant::Reno | Variant::TwoWindows)
    }
}

/// Every key, but those that have no part in it.
impl Serialize for TcpParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.has_partial_acks() && self.class.is_none() {
            return Self::serialize(self, serializer);
        }
        let mut table = Self::serialize(self, serde_json::value::Serializer).map_err(ser::Error::custom)?;
        if let Value::Object(table) = &mut table {
            if !self.has_partial_acks() {
                table.retain(|key, _| !NEWRENO_KEYS.contains(&key.as_str()));
            }
            if let Some(class) = &self.class {
                let inner = serde_json::to_value(class).map_err(ser::Error::custom)?;
                let tag = (ForeignCongestionParams::TAG.to_owned(), Value::from(Foreign::NAME));
                let inner = std::iter::once(tag).chain(inner.as_object().cloned().unwrap_or_default());
                table.insert("congestion".into(), inner.collect::<Map<_, _>>().into());
            }
        }
        table.serialize(serializer)
    }
}

/// What a table leaves out of a preset is filled in before the keys are read one by one.
impl<'de> Deserialize<'de> for TcpParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = Map::deserialize(deserializer)?;
        let given = NEWRENO_KEYS.into_iter().find(|key| table.contains_key(*key));
        presets::complete(&mut table);
        let class = table.get_mut("congestion").map(take_class).transpose().map_err(de::Error::custom)?;
        let mut read: Self =
            nested(Value::Object(table), |table| Some(Self::deserialize(table))).expect("always read")?;
        read.class = class.flatten().map(Box::new);
        match given.filter(|_| !read.has_partial_acks()) {
            Some(key) => Err(de::Error::custom(at_key(key, NO_PARTIAL_ACKS))),
            None => Ok(read),
        }
    }
}

/// A table of a class.
const EXAMPLE: &str = "such as { control = \"my_control:MyControl\" }";

/// Takes the table of a class out of the key `congestion`, and leaves its name there.
fn take_class(congestion: &mut Value) -> Result<Option<ForeignCongestionParams>, String> {
    let refused = |key: &str, text: &str| Err(at_key(key, text));
    match congestion {
        Value::String(name) if name == Foreign::NAME => {
            refused("congestion", &format!("it names a class in a table, {EXAMPLE}"))
        }
        Value::Object(table) => {
            let tag = ForeignCongestionParams::TAG;
            let key = format!("congestion.{tag}");
            let Some(name) = table.get(tag) else {
                return refused("congestion", &format!("key `{tag}` is missing, {EXAMPLE}"));
            };
            let Some(name) = name.as_str().map(str::to_owned) else {
                return refused(&key, &format!("expected text, {EXAMPLE}"));
            };
            if Congestion::NAMES.contains(&&*name) {
                return refused(&key, &format!("write `congestion = \"{name}\"`; it has no table"));
            }
            if name != Foreign::NAME {
                return refused(
                    &key,
                    &format!("no class is registered as `{name}`; write one as module:Class, {EXAMPLE}"),
                );
            }
            table.shift_remove(tag);
            let class = serde_json::from_value(std::mem::replace(congestion, Value::from(Foreign::NAME)));
            class.map(Some).map_err(|error| at_key("congestion", error))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: &str) -> TcpParams {
        serde_json::from_str(table).unwrap()
    }

    #[test]
    fn linux_stands_for_what_its_documentation_says() {
        let by_hand = read(
            r#"{"tcp": "newreno", "sack": true, "prr": true, "byte-counting": true, "handshake": true,
                "limited-transmit": true, "congestion": "cubic", "initial-window": "10p", "delayed-ack": "40ms",
                "quick-acks": "16p", "tick": "1us", "initial-rto": "1s", "min-rto": "200ms",
                "min-rto-bounds": "variation", "max-rto": "120s", "loss-detection": "rack", "slow-start": "hystart",
                "packet": "1500B", "ack": "52B", "window": "16777216B", "window-tuning": "linux",
                "send-buffer": "4194304B", "reduction": "linux"}"#,
        );
        assert_eq!(read(r#"{"tcp": "linux"}"#), TcpParams { tcp: Variant::Linux, ..by_hand });
    }

    #[test]
    fn windows_and_buffers_are_said_in_bytes_or_packets_and_refused_where_nothing_fits() {
        let of =
            |keys: &str| read(&format!(r#"{{"tcp": "newreno", "packet": "1500B", "ack": "52B", {keys}}}"#));
        for (keys, offered, buffered) in [
            (r#""window": "100p""#, 100, None),
            (r#""window": "144800B""#, 100, None),
            (r#""window": "144.8kB", "send-buffer": "14480B""#, 100, Some(10)),
            (r#""window": "4MB", "send-buffer": "20p""#, 2762, Some(20)),
            (r#""window": "1448B", "send-buffer": "2895B""#, 1, Some(1)),
        ] {
            let params = of(keys);
            assert_eq!((params.most_offered(), params.most_buffered()), (offered, buffered), "{keys}");
            assert_eq!(params.check(), Ok(()), "{keys}");
            assert_eq!(read(&serde_json::to_string(&params).unwrap()), params, "{keys}");
        }
        for (keys, key) in [
            (r#""window": "0p""#, "window"),
            (r#""window": "1447B""#, "window"),
            (r#""window": "30GB""#, "window"),
            (r#""window": "16777217p""#, "window"),
            (r#""send-buffer": "0B""#, "send-buffer"),
            (r#""send-buffer": "0p""#, "send-buffer"),
            (r#""initial-window": "10p", "send-buffer": "9p""#, "initial-window"),
        ] {
            assert_eq!(of(keys).check().unwrap_err().0, key, "{keys}");
        }
        for keys in
            [r#""window": "10""#, r#""window": "10 ms""#, r#""send-buffer": "-1p""#, r#""window": 10"#]
        {
            let table = format!(r#"{{"tcp": "newreno", {keys}}}"#);
            assert!(serde_json::from_str::<TcpParams>(&table).is_err(), "{keys}");
        }
    }

    #[test]
    fn quic_stands_for_what_its_documentation_says() {
        let by_hand = read(
            r#"{"tcp": "newreno", "packet": "1500B", "ack": "85B", "window": "16777216B", "initial-window": "10p",
                "loss-detection": "quic", "sack": true, "byte-counting": true, "handshake": true,
                "limited-transmit": true, "congestion": "cubic", "slow-start": "hystart++", "pacing": "window",
                "delayed-ack": "25ms", "tick": "1us", "initial-rto": "999ms", "min-rto": "25ms",
                "min-rto-bounds": "persistent-congestion", "max-rto": "60s"}"#,
        );
        let preset = read(r#"{"tcp": "quic"}"#);
        assert_eq!(preset, TcpParams { tcp: Variant::Quic, ..by_hand });
        assert_eq!(preset.payload(), 1415, "1452 bytes of UDP payload less 37 of QUIC's own");
        assert!(!preset.restarts_after_idle() && read(r#"{"tcp": "linux"}"#).restarts_after_idle());
        assert_eq!((preset.first_window(0), preset.first_window(5)), (10, 10));
    }

    #[test]
    fn a_preset_leaves_out_what_has_no_place_beside_the_control() {
        for preset in presets::PRESETS {
            for control in Congestion::ALL {
                let control = control.info().name;
                if preset.name != "linux" && preset.name != "quic"
                    || ["two-windows", Foreign::NAME].contains(&control)
                {
                    continue;
                }
                let table = format!(r#"{{"tcp": "{}", "congestion": "{control}"}}"#, preset.name);
                let params = read(&table);
                assert_eq!(params.check(), Ok(()), "{table}");
                assert_eq!(read(&serde_json::to_string(&params).unwrap()), params, "{table}");
            }
        }
        let class =
            r#"{"tcp": "quic", "congestion": {"control": "python", "class": "a:A", "needs": ["pacing"]}}"#;
        assert_eq!(read(class).check(), Ok(()));
    }

    #[test]
    fn linux_keeps_the_alpha_of_cubic_constant_unless_told_otherwise() {
        let raises = |table| read(table).raises_alpha();
        assert!(!raises(r#"{"tcp": "linux"}"#) && raises(r#"{"tcp": "newreno", "congestion": "cubic"}"#));
        assert!(raises(r#"{"tcp": "linux", "cubic-alpha": "raised"}"#));
        assert!(!raises(r#"{"tcp": "newreno", "congestion": "cubic", "cubic-alpha": "constant"}"#));
    }

    #[test]
    fn ns_1998_stands_for_what_its_documentation_says() {
        let by_hand = read(
            r#"{"tcp": "newreno", "newreno-timer": "slow-but-steady", "partial-window-deflation": "to-ssthresh",
                "tick": "100ms", "rtt-arithmetic": "fixed-point", "initial-rto": "6s", "min-rto": "200ms", "initial-window": "1p", "handshake": false,
                "limited-transmit": false}"#,
        );
        let preset = read(r#"{"tcp": "ns-1998"}"#);
        assert_eq!(preset, TcpParams { tcp: Variant::Ns1998, ..by_hand });
        assert_eq!(preset.initial_ssthresh, None, "the window");
        assert_eq!(preset.check(), Ok(()));
        let other = read(r#"{"tcp": "ns-1998", "newreno-timer": "impatient", "window": "64p"}"#);
        assert_eq!(other.newreno_timer, NewRenoTimer::Impatient);
        assert_eq!(other.partial_window_deflation, PartialWindowDeflation::ToSsthresh);
        assert_eq!(read(&serde_json::to_string(&other).unwrap()), other);
    }

    #[test]
    fn a_key_that_is_given_wins_over_the_preset_and_survives_a_round_trip() {
        let params = read(r#"{"tcp": "linux", "congestion": "reno", "sack": false, "prr": false}"#);
        assert_eq!((params.congestion, params.sack), (Congestion::Reno, false));
        assert_eq!((params.loss_detection, params.slow_start), (None, None), "parts of SACK, and of CUBIC");
        assert_eq!((params.check(), read(&serde_json::to_string(&params).unwrap())), (Ok(()), params));
        let old = read(r#"{"tcp": "linux", "loss-detection": "duplicate-acks", "slow-start": "standard"}"#);
        assert_eq!((old.has_rack(), old.slow_start), (false, Some(SlowStart::Standard)));
        assert_eq!((old.check(), read(&serde_json::to_string(&old).unwrap())), (Ok(()), old));
    }

    #[test]
    fn refuses_what_does_not_fit_together() {
        for (table, key) in [
            (r#"{"tcp": "newreno", "prr": true}"#, "prr"),
            (r#"{"tcp": "newreno", "sack": true, "prr": true, "congestion": "bbr"}"#, "prr"),
            (r#"{"tcp": "newreno", "byte-counting": true, "congestion": "cubic"}"#, "byte-counting"),
            (r#"{"tcp": "newreno", "reduction": "linux", "congestion": "prague"}"#, "reduction"),
            (r#"{"tcp": "newreno", "reduction": "exact", "sack": true, "congestion": "bbr"}"#, "reduction"),
            (r#"{"tcp": "reno", "byte-counting": true, "congestion": "ledbat"}"#, "byte-counting"),
            (r#"{"tcp": "newreno", "quick-acks": "3p"}"#, "quick-acks"),
            (r#"{"tcp": "two-windows", "congestion": "cubic"}"#, "congestion"),
            (r#"{"tcp": "ns-1998", "sack": true}"#, "sack"),
            (r#"{"tcp": "newreno", "congestion": "scalable", "ecn-backoff": true}"#, "ecn-backoff"),
            (r#"{"tcp": "newreno", "congestion": "paced", "send-jitter": "1ms"}"#, "send-jitter"),
            (r#"{"tcp": "newreno", "loss-detection": "rack"}"#, "loss-detection"),
            (r#"{"tcp": "newreno", "pacing": "window", "send-jitter": "1ms"}"#, "send-jitter"),
            (r#"{"tcp": "newreno", "pacing": "window", "congestion": "bbr"}"#, "pacing"),
            (r#"{"tcp": "newreno", "pacing": "none", "congestion": "prague"}"#, "pacing"),
            (r#"{"tcp": "newreno", "congestion": "dctcp", "target-rtt": "25ms"}"#, "target-rtt"),
            (r#"{"tcp": "linux", "congestion": "reno", "cubic-alpha": "constant"}"#, "cubic-alpha"),
            (r#"{"tcp": "newreno", "congestion": "prague", "target-rtt": "101ms"}"#, "target-rtt"),
            (r#"{"tcp": "newreno", "congestion": "bbr", "slow-start": "hystart++"}"#, "slow-start"),
            (r#"{"tcp": "newreno", "congestion": "bbr3", "initial-ssthresh": "8p"}"#, "initial-ssthresh"),
            (r#"{"tcp": "linux", "congestion": "ledbat", "initial-ssthresh": "8p"}"#, "initial-ssthresh"),
            (r#"{"tcp": "newreno", "slow-start": "hystart"}"#, "slow-start"),
            (r#"{"tcp": "newreno", "congestion": "prague", "estimation-gain": 0.0625}"#, "estimation-gain"),
            (r#"{"tcp": "newreno", "congestion": "dctcp", "estimation-gain": 0}"#, "estimation-gain"),
            (r#"{"tcp": "newreno", "target-delay": "25ms"}"#, "target-delay"),
            (r#"{"tcp": "newreno", "congestion": "ledbat", "target-delay": "101ms"}"#, "target-delay"),
        ] {
            assert_eq!(read(table).check().unwrap_err().0, key);
        }
    }

    #[test]
    fn what_a_preset_sets_is_not_refused_where_it_cannot_act() {
        for table in [
            r#"{"tcp": "linux"}"#,
            r#"{"tcp": "linux", "congestion": "bbr"}"#,
            r#"{"tcp": "linux", "delayed-ack": "0s"}"#,
            r#"{"tcp": "newreno", "byte-counting": true, "congestion": "scalable"}"#,
            r#"{"tcp": "newreno", "quick-acks": "3p", "delayed-ack": "40ms"}"#,
        ] {
            assert_eq!(read(table).check(), Ok(()), "{table}");
        }
    }

    #[test]
    fn newreno_keys_are_refused_where_they_cannot_act() {
        for (table, key) in [
            (r#"{"tcp": "reno", "newreno-timer": "slow-but-steady"}"#, "newreno-timer"),
            (r#"{"tcp": "reno", "newreno-timer": "impatient"}"#, "newreno-timer"),
            (r#"{"tcp": "two-windows", "newreno-timer": "slow-but-steady"}"#, "newreno-timer"),
            (r#"{"tcp": "linux", "newreno-timer": "slow-but-steady"}"#, "newreno-timer"),
            (
                r#"{"tcp": "newreno", "sack": true, "partial-window-deflation": "to-ssthresh"}"#,
                "partial-window-deflation",
            ),
        ] {
            let refused = serde_json::from_str::<TcpParams>(table).unwrap_err().to_string();
            assert!(refused.contains(&format!("{key}\u{1f}{NO_PARTIAL_ACKS}")), "{refused}");
        }
    }
}
