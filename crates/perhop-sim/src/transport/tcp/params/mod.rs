//! The parameters of a TCP connection.
//!
//! Defaults are those of ns-2.35 for an agent without options, except where a comment says otherwise: its
//! clock and timeouts, and the NewReno of RFC 6582, which ns-2 has had since May 2003. `tcp = "ns-1998"` is
//! the NewReno of the papers' period.

mod checks;
mod choices;
mod former;
pub mod presets;
#[cfg(test)]
mod tests;

use perhop_core::table::nested;
use perhop_core::units::{Packets, UnitError, defaults};
use perhop_core::{Bytes, Depth, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::{Map, Value, json};

use super::AccEcn;
use super::congestion::{Congestion, CongestionParams, Needs, NoParams};
use super::variant::Variant;
use checks::NO_PARTIAL_ACKS;
pub use choices::{
    CwndValidation, IdleRestart, LossDetection, MinRtoBounds, NewRenoTimer, Pacing, PartialWindowDeflation,
    Reduction, RttArithmetic, SlowStart, WindowTuning,
};
use former::describe_former_keys;
pub use former::{ReplacedKey, move_former_keys};

/// A TCP connection. `tcp = "linux"`, `tcp = "quic"` and `tcp = "ns-1998"` have other defaults than those
/// listed here.
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the format, and they are independent")]
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
#[schemars(transform = describe_former_keys)]
pub struct TcpParams {
    /// How losses are recovered.
    pub tcp: Variant,
    /// Size of a full segment on the wire, headers included.
    #[serde(default = "defaults::bytes::<1000>")]
    pub packet: Bytes,
    /// Size of an acknowledgement (and of a SYN) on the wire.
    #[serde(default = "defaults::bytes::<40>")]
    pub ack: Bytes,
    /// The receiver's window, in packets or in bytes of payload, such as `"4MB"`; with `window-tuning` the
    /// most that it grows to. A packet's payload is `packet` less `ack`. An agent of ns-2 has 20 packets; the
    /// papers' rates need more.
    #[serde(default = "window")]
    pub window: Depth,
    /// The size of the window that the receiver offers.
    #[serde(default)]
    pub window_tuning: WindowTuning,
    /// The sender's buffer, in packets or in bytes of payload: no more is sent and not yet acknowledged.
    /// Default: unlimited.
    pub send_buffer: Option<Depth>,
    /// The congestion window at the start.
    #[serde(default = "defaults::packets::<1>")]
    pub initial_window: Packets,
    /// The slow-start threshold at the start; the largest window that `window` and `send-buffer` allow unless
    /// given. Refused like `slow-start`.
    pub initial_ssthresh: Option<Packets>,
    /// The granularity of the clock that measures round trips.
    #[serde(default = "defaults::millis::<10>")]
    pub tick: Duration,
    /// The numbers in which the smoothed round trip and its variation are kept.
    #[serde(default)]
    pub rtt_arithmetic: RttArithmetic,
    /// The shortest retransmission timeout.
    #[serde(default = "defaults::millis::<200>")]
    pub min_rto: Duration,
    /// The quantity that `min-rto` bounds.
    #[serde(default)]
    pub min_rto_bounds: MinRtoBounds,
    /// The retransmission timeout before the first round trip is known.
    #[serde(default = "defaults::secs::<3>")]
    pub initial_rto: Duration,
    /// The longest retransmission timeout.
    #[serde(default = "defaults::secs::<60>")]
    pub max_rto: Duration,
    /// How long an in-order segment may wait for a second one before it is acknowledged; `0s` acknowledges
    /// each at once.
    #[serde(default)]
    pub delayed_ack: Duration,
    /// With `delayed-ack`: this many segments are acknowledged at once before the first one waits, as by
    /// Linux's quick mode, which has 16. Refused without, except with `tcp = "linux"`, which has it.
    #[serde(default = "defaults::packets::<0>")]
    pub quick_acks: Packets,
    /// Which partial acknowledgements restart NewReno's timer. With `tcp` = `"reno"` or `"two-windows"` and
    /// with `sack`, which have none, the key is refused.
    #[serde(default)]
    pub newreno_timer: NewRenoTimer,
    /// The part of NewReno's window that a partial acknowledgement takes out. Refused like `newreno-timer`.
    #[serde(default)]
    pub partial_window_deflation: PartialWindowDeflation,
    /// Exchange a SYN before the first data. After a SYN that was sent again the first window is one segment
    /// (RFC 5681, section 3.1; with `tcp = "linux"` only if it was sent more than twice, as by Linux), and
    /// the first timeout 3 s, or `initial-rto` if that is longer (RFC 6298, section 5.7).
    #[serde(default)]
    pub handshake: bool,
    /// Send a new segment on each of the first two duplicate acknowledgements (RFC 3042).
    #[serde(default)]
    pub limited_transmit: bool,
    /// Selective acknowledgements: the receiver reports up to three ranges that it holds (RFC 2018), the
    /// sender recovers by them (RFC 6675), whatever `tcp` says of recovery. Acknowledgements keep the size
    /// `ack`.
    #[serde(default)]
    pub sack: bool,
    /// With `sack`: in a recovery the window shrinks in proportion to what is delivered (Proportional Rate
    /// Reduction, RFC 9937) in place of all at once. Refused with a congestion control that sets the window
    /// in recoveries itself, except with `tcp = "linux"`, which has it.
    #[serde(default)]
    pub prr: bool,
    /// How losses are found: `duplicate-acks`, the default, or `rack` or `quic`, which require `sack`.
    pub loss_detection: Option<LossDetection>,
    /// The congestion control: how the window grows beyond the slow-start threshold, and how far a loss
    /// lowers it. Its name, or a table with its name as `control` and its parameters. A key of its own, as on
    /// Linux and in RFC 9438: it goes with every way to recover from losses, except that `two-windows` has
    /// its own.
    #[serde(default)]
    pub congestion: Congestion,
    /// The window grows by the segments that are acknowledged, not by acknowledgements, which makes up for
    /// those that were delayed (RFC 3465, without its limit L, as Linux does). Refused with a congestion
    /// control that counts so always or not at all, except with `tcp = "linux"`, which has it. A class in
    /// Python may read it.
    #[serde(default)]
    pub byte_counting: bool,
    /// With `ecn = "accurate"` or `"l4s"`: how ACKs carry the number of marked packets. Refused without.
    #[serde(default, skip_serializing_if = "AccEcn::is_exact")]
    pub accecn: AccEcn,
    /// How slow start ends, besides by a loss or a mark: `standard`, the default, or another. Refused with a
    /// congestion control that has no slow start.
    pub slow_start: Option<SlowStart>,
    /// How a reduction of the window is carried out, and its growth counted: `exact`, the default, or
    /// `linux`, the default of `tcp = "linux"`. Refused with a congestion control that sets a rate, or the
    /// window in recoveries, or carries out its reductions itself, except with `tcp = "linux"`, which has it.
    pub reduction: Option<Reduction>,
    /// The spacing of segments: `none`, the default, or `window`. Refused with a congestion control that sets
    /// a rate of its own.
    pub pacing: Option<Pacing>,
    /// Where an application hands the data over in steps: what becomes of the window after a retransmission
    /// timeout without sending; `rfc5681`, the default, or `none`. Refused without an `application`, and with
    /// a congestion control that sets the window in recoveries itself.
    pub idle_restart: Option<IdleRestart>,
    /// Where an application hands the data over in steps: whether a window grows that is hardly used;
    /// `rfc7661`, the default, or `none`. Refused without an `application`, and with a congestion control
    /// that sets the window in recoveries itself.
    pub cwnd_validation: Option<CwndValidation>,
    /// Before new data, wait a time drawn uniformly up to this (ns-2's `overhead_`), against phase effects.
    /// Refused where segments are paced.
    #[serde(default)]
    pub send_jitter: Duration,
}

const fn window() -> Depth {
    Depth::Packets(1000)
}

/// The most segments that sequence numbers can distinguish.
const MOST_SEGMENTS: u64 = 1 << 24;

/// The keys that act only in a recovery by NewReno.
const NEWRENO_KEYS: [&str; 2] = ["newreno-timer", "partial-window-deflation"];

impl TcpParams {
    /// Returns the defaults of a variant.
    pub fn new(tcp: Variant) -> Self {
        serde_json::from_value(json!({ "tcp": tcp })).expect("a variant has all defaults")
    }

    /// Returns whether the sender carries out reductions as Linux does, if the control leaves them to it.
    pub(super) fn reduces_as_linux(&self) -> bool {
        self.reduction == Some(Reduction::Linux) && !self.reduces_itself()
    }

    /// Returns whether the congestion control sets a rate or owns its recoveries (in Linux: `cong_control`),
    /// or says that it carries out its reductions.
    fn reduces_itself(&self) -> bool {
        let needs = self.needs();
        needs.pacing || needs.recovery || self.control().info().reduces_itself
    }

    /// Returns whether the first slow start ends by Linux's `HyStart`.
    pub(super) fn has_hystart(&self) -> bool {
        self.slow_start.is_none() && self.control().has_hystart(self.tcp)
    }

    /// Returns the payload of a full segment in bytes; one no longer than an ACK counts as a whole.
    pub fn payload(&self) -> u64 {
        let (packet, headers) = (self.packet.get(), self.ack.get());
        if packet > headers { packet - headers } else { packet.max(1) }
    }

    /// Converts a size to full segments, at least one.
    fn segments(&self, size: Depth) -> u32 {
        let segments = match size {
            Depth::Packets(packets) => packets,
            Depth::Bytes(bytes) => bytes / self.payload(),
        };
        u32::try_from(segments.clamp(1, MOST_SEGMENTS)).expect("in range")
    }

    /// Returns the bytes of so many segments: whole packets where `given` is in packets, else their payload.
    pub(super) fn bytes_of(&self, segments: u32, given: Depth) -> u64 {
        let each = match given {
            Depth::Packets(_) => self.packet.get(),
            Depth::Bytes(_) => self.payload(),
        };
        u64::from(segments) * each
    }

    /// Returns the receiver's largest window in segments.
    pub fn most_offered(&self) -> u32 {
        self.segments(self.window)
    }

    /// Returns the first window that the receiver offers in segments. Linux's is as much as fits into the
    /// header's field without scaling, in whole segments (`tcp_select_initial_window`).
    pub(super) fn first_offered(&self) -> u32 {
        match self.window_tuning {
            WindowTuning::None => self.most_offered(),
            WindowTuning::Linux => self.segments(Depth::Bytes(u16::MAX.into())).min(self.most_offered()),
        }
    }

    /// Returns the size of the sender's buffer in segments, if it is limited.
    pub fn most_buffered(&self) -> Option<u32> {
        self.send_buffer.map(|size| self.segments(size))
    }

    /// Returns how many segments may ever be unacknowledged, by the receiver's window and sender's buffer.
    pub fn most_outstanding(&self) -> u32 {
        self.most_offered().min(self.most_buffered().unwrap_or(u32::MAX))
    }

    /// Returns how many segments may be unacknowledged until the receiver's window has grown.
    pub(super) fn first_outstanding(&self) -> u32 {
        self.first_offered().min(self.most_outstanding())
    }

    /// Returns the shortest time after which a segment may be sent again that was not acknowledged.
    pub(crate) fn shortest_timeout(&self) -> Duration {
        let least = match self.min_rto_bounds {
            MinRtoBounds::PersistentCongestion => Duration::from_nanos(self.min_rto.as_nanos() / 3),
            _ => self.min_rto,
        };
        least.min(self.initial_rto)
    }

    /// Returns whether segments are paced, by the congestion control's rate or by the window's.
    pub(super) fn is_paced(&self) -> bool {
        self.pacing == Some(Pacing::Window) || self.needs().pacing
    }

    /// Returns the first window in segments after a SYN that was sent again so many times: then one segment
    /// (RFC 5681, section 3.1). With its first timeout of a second, Linux keeps the initial window after one
    /// (`tcp_init_transfer`). QUIC knows no such rule.
    pub(super) fn first_window(&self, again: u64) -> u32 {
        let most = match self.tcp {
            Variant::Quic => u64::MAX,
            Variant::Linux => 1,
            _ => 0,
        };
        if again > most { 1 } else { self.initial_window.get() as u32 }
    }

    /// Returns the congestion control. `tcp = "two-windows"` also selects one.
    pub fn control(&self) -> &CongestionParams {
        static TWO_WINDOWS: CongestionParams = CongestionParams::TwoWindows(NoParams {});
        if self.tcp == Variant::TwoWindows { &TWO_WINDOWS } else { &self.congestion.0 }
    }

    /// Returns the needs of the congestion control.
    pub fn needs(&self) -> Needs {
        self.control().needs()
    }

    /// Returns whether losses are found by the times of transmissions (RACK-TLP, QUIC).
    pub(super) fn has_rack(&self) -> bool {
        matches!(self.loss_detection, Some(LossDetection::Rack | LossDetection::Quic))
    }

    /// Returns whether the window begins anew after idle time.
    pub(super) fn restarts_after_idle(&self) -> bool {
        let default = if self.tcp == Variant::Quic { IdleRestart::None } else { IdleRestart::Rfc5681 };
        self.idle_restart.unwrap_or(default) == IdleRestart::Rfc5681
    }

    /// Returns whether losses are recovered by NewReno.
    pub(super) fn has_partial_acks(&self) -> bool {
        !self.sack && !matches!(self.tcp, Variant::Reno | Variant::TwoWindows)
    }
}

/// Writes every key, but those that have no part in the sender's recovery.
impl Serialize for TcpParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.has_partial_acks() {
            return Self::serialize(self, serializer);
        }
        let mut table = Self::serialize(self, serde_json::value::Serializer).map_err(ser::Error::custom)?;
        if let Value::Object(table) = &mut table {
            table.retain(|key, _| !NEWRENO_KEYS.contains(&key.as_str()));
        }
        table.serialize(serializer)
    }
}

/// Fills in what a table leaves out of its preset, and reads the keys one by one.
impl<'de> Deserialize<'de> for TcpParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = Map::deserialize(deserializer)?;
        let given = NEWRENO_KEYS.into_iter().find(|key| table.contains_key(*key));
        presets::complete(&mut table);
        let read: Self =
            nested(Value::Object(table), |table| Some(Self::deserialize(table))).expect("always read")?;
        match given.filter(|_| !read.has_partial_acks()) {
            Some(key) => Err(de::Error::custom(UnitError::at(key, NO_PARTIAL_ACKS))),
            None => Ok(read),
        }
    }
}
