//! Congestion control: how a TCP sender's window follows what the sender learns of the network.
//!
//! A congestion control decides about the window, and nothing else. The [sender](super::TcpSender) finds losses and recovers
//! from them, keeps the timers, measures round trips and delivery rates, and paces.
//!
//! To add one: a file here with its state, an `impl Algorithm` (what it is), an `impl CongestionControl` (what it does) and its
//! tests, and one line in `register_congestion_controls!`. The line makes it a value of the scenario's key `congestion`, and puts it into the
//! documentation, the typed builder, the random-network tests and, if the kernel has it, into `perhop live`.

mod bbr;
mod bbr3;
mod cubic;
mod dctcp;
mod foreign;
mod ledbat;
mod path_model;
mod prague;
mod reno;
mod scalable;
mod two_windows;
mod window;

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use ambassador::{Delegate, delegatable_trait, delegate_to_remote_methods};
use perhop_core::{Bitrate, Bytes, Color, Duration, Instant, Origin};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use foreign::{CongestionImplementation, Foreign, ForeignCongestion, ForeignCongestionParams, Need};
pub use ledbat::Ledbat;
pub use prague::Prague;
pub use reno::Reno;
pub use scalable::Scalable;
pub use two_windows::TwoWindows;
pub use window::Window;

pub(super) use path_model::bitrate;

/// The declaration of a congestion control: its name in scenarios, and what others may know of it before a connection begins.
pub trait Algorithm: CongestionControl + Sized {
    /// The name in scenarios.
    const NAME: &'static str;
    /// One line for the documentation.
    const SUMMARY: &'static str;
    /// Where it comes from: what it follows, how old it is, and the Linux kernel's name for it.
    const ORIGIN: Origin;
    /// What a mark leaves of the window where RFC 8511 says so (key `ecn-backoff`); `None` if it says nothing of this control.
    const ECN_BACKOFF: Option<f64> = None;
    /// It begins with a slow start, which may end by round-trip times.
    const SLOW_START: bool = true;
    /// It reacts to marks (ECN). Where it does not, a flow may not ask for any.
    const ANSWERS_MARKS: bool = true;
    /// The key `byte-counting` acts: its window can grow by ACKs, or by the segments that they acknowledge.
    const BYTE_COUNTING: bool = false;
    /// Its data is ECT(1), which asks queues for marks early and often (RFC 9331); the flow's feedback must be accurate.
    const IS_L4S: bool = false;
    /// What the sender has to keep for it. What no control needs costs nothing.
    const NEEDS: Needs = Needs::NOTHING;

    /// The control of a new connection.
    fn new(setup: &Setup) -> Self;

    /// What the sender has to keep for this one: [`NEEDS`](Self::NEEDS), except where a class outside says so.
    #[inline(always)]
    fn needs(&self) -> Needs {
        Self::NEEDS
    }
}

/// A congestion control. All windows are in segments.
#[delegatable_trait]
pub trait CongestionControl {
    /// New data was acknowledged. Not called during a recovery from losses, unless the control [owns](Needs::recovery) them.
    fn on_ack(&mut self, ack: &AckSample);

    /// A segment is lost, if the control [owns](Needs::recovery) its recoveries: before [`on_ack`](Self::on_ack) for the ACK that
    /// shows it.
    fn on_lost(&mut self, _lost: &LostSegment) {}

    /// A loss was found, and a recovery begins: once in each.
    fn on_loss(&mut self, event: &CongestionEvent);

    /// Packets were marked (ECN): at most once in a window of data, and not during a recovery. Unless said otherwise, as a loss
    /// (RFC 3168, section 6.1.2).
    fn on_congestion_experienced(&mut self, event: &CongestionEvent) {
        self.on_loss(event);
    }

    /// The retransmission timer expired. Unless said otherwise, the slow-start threshold is that after a loss, and slow start
    /// begins with one segment (RFC 5681, section 3.1).
    fn on_timeout(&mut self, event: &CongestionEvent) {
        self.on_loss(event);
        self.set_window(1.0);
    }

    /// The congestion window, at least one segment. During a recovery: the window with which the recovery is to end, or, if the
    /// control [owns](Needs::recovery) it, the window in force.
    fn window(&self) -> f64;

    /// The sender sets the window: to the initial window when the connection is open, or after feedback of an OUT packet.
    fn set_window(&mut self, window: f64);

    /// The slow-start threshold, in segments; 0 if it has no slow start.
    fn slow_start_threshold(&self) -> f64 {
        0.0
    }

    /// It is in slow start: the window is below its threshold.
    fn is_in_slow_start(&self) -> bool {
        self.window() < self.slow_start_threshold()
    }

    /// The application has data again, after this time in which nothing was outstanding.
    fn on_idle(&mut self, _idle: Duration) {}

    /// Slow start is over before packets were lost: congestion avoidance goes on from this window.
    fn leave_slow_start(&mut self) {}

    /// The rate, headers included, at which segments may leave; unlimited if there is none. Asked only if the control
    /// [needs](Needs::pacing) pacing.
    fn pacing_rate(&self) -> Option<Bitrate> {
        None
    }
}

/// What a sender keeps only for a congestion control that asks for it.
#[expect(clippy::struct_excessive_bools, reason = "the needs are independent")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The color of each segment sent: [`CongestionEvent::color`].
    pub colors: bool,
    /// A record of each outstanding segment: [`AckSample::delivery`].
    pub delivery: bool,
    /// ACKs that report marked packets, with the number of these: [`AckSample::marked`]. Other controls do not get such ACKs,
    /// because they must not increase the window. The receiver then echoes each mark, and the flow must be ECN-capable, its
    /// retransmissions, too, as in Linux (`TCP_CONG_NEEDS_ECN`); a loss reduces the window even if a mark has just done so, since
    /// that may have been by little.
    pub marks: bool,
    /// Segments leave at [`pacing_rate`](CongestionControl::pacing_rate).
    pub pacing: bool,
    /// The control's window is in force during recoveries, too, of which it gets each ACK, with [`AckSample::pipe`],
    /// [`lost`](AckSample::lost) and [`recovering`](AckSample::recovering), and each [loss](CongestionControl::on_lost).
    pub recovery: bool,
}

impl Needs {
    /// Nothing besides what every sender keeps.
    pub const NOTHING: Self =
        Self { colors: false, delivery: false, marks: false, pacing: false, recovery: false };

    /// Whether the sender's fast path does all that such a control needs.
    pub const fn allow_fast_path(self) -> bool {
        self.take_plain_acks(false) && !self.pacing
    }

    /// Whether such a control needs nothing more of an ACK of new data in order that reports no mark than how much it is, and, of a
    /// paced sender, what its delivery says of the path.
    pub const fn take_plain_acks(self, is_paced: bool) -> bool {
        !self.colors && (is_paced || !(self.delivery || self.recovery))
    }
}

/// What a congestion control knows when its connection begins.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The first window: one segment while a handshake is to come.
    pub window: f64,
    /// The slow-start threshold.
    pub threshold: f64,
    /// The receiver's window and the sender's buffer: as far as the congestion window may grow.
    pub most: u32,
    /// The window grows by ACKs (RFC 5681), not by the segments that they acknowledge (RFC 3465).
    pub counts_acks: bool,
    /// Size of a full segment.
    pub packet: Bytes,
    /// The rate of the flow's traffic profile.
    pub reserved: Option<Bitrate>,
    /// A mark leaves what [`ECN_BACKOFF`](CongestionControl::ECN_BACKOFF) says.
    pub ecn_backoff: bool,
    /// CUBIC grows as Reno once it has the window before the last reduction (RFC 9438, section 4.3), not as slowly as below.
    pub raises_alpha: bool,
    /// The window is counted in whole segments, and a reduction rounds it down, as by Linux.
    pub whole_segments: bool,
    /// Where round-trip times up to this get the same rate, if the control makes them; zero turns that off.
    pub target_rtt: Duration,
    /// The weight of the last window in an estimate of the share of marked packets, if the control leaves it open.
    pub estimation_gain: f64,
    /// The queueing delay that the control aims at, if it aims at one.
    pub target_delay: Duration,
    /// ACKs report what arrived beyond a gap (RFC 2018).
    pub selective_acks: bool,
    /// What a control that decides by chance begins its random stream with: the flow's own.
    pub seed: u64,
}

/// What an ACK of new data says.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it came.
    pub now: Instant,
    /// Segments newly acknowledged, in order or selectively.
    pub delivered: u32,
    /// How many of them were marked, if the control [needs](Needs::marks) to know.
    pub marked: u32,
    /// The first segment that is not acknowledged.
    pub acked: u32,
    /// Segments sent and not acknowledged.
    pub in_flight: u32,
    /// Of these, segments thought to be in the network; segments found to be lost since the ACK before this; and whether losses
    /// are being repaired. All are 0 unless the control [owns](Needs::recovery) its recoveries.
    pub pipe: u32,
    /// See [`pipe`](Self::pipe).
    pub lost: u32,
    /// See [`pipe`](Self::pipe).
    pub recovering: bool,
    /// The smoothed round-trip time in seconds; 0 before the first is known.
    pub smoothed_rtt: f64,
    /// How fast the network delivers, if the control [needs](Needs::delivery) to know.
    pub delivery: Option<DeliverySample>,
}

/// How fast the network delivered, up to the segment sent last of those that an ACK acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySample {
    /// Segments delivered since that segment was sent, and the time that they took: the longer of the times between
    /// their ACKs and between their transmissions.
    pub delivered: u64,
    /// See [`delivered`](Self::delivered).
    pub interval: Duration,
    /// Segments delivered before it was sent.
    pub prior: u64,
    /// The segment's round trip; none if it was sent more than once.
    pub rtt: Option<Duration>,
    /// The number of the round trip, from 1 on: another begins with the ACK of a segment sent after the last one began.
    pub round: u64,
    /// Segments found to be lost since it was sent, and segments in the network when it was, itself included. Both are 0 unless
    /// the control [owns](Needs::recovery) its recoveries.
    pub lost: u64,
    /// See [`lost`](Self::lost).
    pub in_flight: u32,
    /// It says too little of the path: the application had no more to send.
    pub limited: bool,
}

/// A segment that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// When the sender learned of it.
    pub now: Instant,
    /// Segments found to be lost since it was sent, itself included.
    pub lost: u32,
    /// Segments in the network when it was sent, itself included.
    pub in_flight: u32,
}

/// What a sender knows when it learns of congestion.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// When it learned of it.
    pub now: Instant,
    /// The window in force, at most the receiver's. Within a recovery it may differ from the control's own.
    pub window: f64,
    /// The smoothed round-trip time in seconds; 0 before the first is known.
    pub smoothed_rtt: f64,
    /// The color of the first segment that is missing; yellow if the control does not [need](Needs::colors) it.
    pub color: Color,
}

/// A registered congestion control, as documentation and drivers see it.
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Clone, Copy, Debug)]
pub struct CongestionInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// What a mark leaves of the window where RFC 8511 says so.
    pub ecn_backoff: Option<f64>,
    /// It begins with a slow start.
    pub slow_start: bool,
    /// It reacts to marks (ECN).
    pub answers_marks: bool,
    /// The key `byte-counting` acts.
    pub byte_counting: bool,
    /// Its data is ECT(1).
    pub is_l4s: bool,
    /// What the sender keeps for it.
    pub needs: Needs,
}

impl CongestionInfo {
    const fn of<C: Algorithm>() -> Self {
        Self {
            name: C::NAME,
            summary: C::SUMMARY,
            origin: C::ORIGIN,
            ecn_backoff: C::ECN_BACKOFF,
            slow_start: C::SLOW_START,
            answers_marks: C::ANSWERS_MARKS,
            byte_counting: C::BYTE_COUNTING,
            is_l4s: C::IS_L4S,
            needs: C::NEEDS,
        }
    }
}

// A control in a box acts as that control.
#[delegate_to_remote_methods]
#[delegate(CongestionControl, target_ref = "deref", target_mut = "deref_mut")]
impl<C: CongestionControl> Box<C> {
    fn deref(&self) -> &C;
    fn deref_mut(&mut self) -> &mut C;
}

/// Makes the enums over the names and the states of all congestion controls. Dispatch is by `match`, which `ambassador` derives
/// from the trait's definition: no vtable in the packet's path.
///
/// The first control, the default, is stored beside the fields that each ACK uses. Every other one is boxed, so that it does not
/// make the sender larger.
macro_rules! register_congestion_controls {
    ($first:ident($first_control:ty), $($(#[$when:meta])? $variant:ident($control:ty),)+; $foreign:ident($foreign_control:ty)) => {
        /// Which congestion control moves the window.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Congestion {
            #[doc = concat!("See [`", stringify!($first), "`].")] #[default] $first,
            $($(#[$when])? #[doc = concat!("See [`", stringify!($variant), "`].")] $variant,)+
            /// One that is implemented outside: [`TcpParams::class`](super::TcpParams::class).
            $foreign,
        }

        impl Congestion {
            /// Every congestion control of this crate.
            pub const ALL: &'static [Self] = &[Self::$first, $($(#[$when])? Self::$variant),+];
            /// Their names.
            pub const NAMES: &'static [&'static str] =
                &[<$first_control as Algorithm>::NAME, $($(#[$when])? <$control as Algorithm>::NAME),+];

            /// What it is.
            pub const fn info(self) -> CongestionInfo {
                match self {
                    Self::$first => CongestionInfo::of::<$first_control>(),
                    $($(#[$when])? Self::$variant => CongestionInfo::of::<$control>(),)+
                    Self::$foreign => CongestionInfo::of::<$foreign_control>(),
                }
            }

            pub(super) fn build(self, setup: &Setup) -> AnyCongestion {
                match self {
                    Self::$first => AnyCongestion::$first(Algorithm::new(setup)),
                    $($(#[$when])? Self::$variant => AnyCongestion::$variant(Box::new(Algorithm::new(setup))),)+
                    Self::$foreign => AnyCongestion::$foreign(Box::new(Algorithm::new(setup))),
                }
            }
        }

        /// The state of any congestion control.
        #[derive(Clone, Debug, Delegate)]
        #[delegate(CongestionControl)]
        pub(super) enum AnyCongestion {
            $first($first_control),
            $($(#[$when])? $variant(Box<$control>),)+
            $foreign(Box<$foreign_control>),
        }

        impl AnyCongestion {
            /// Whether it is the default control.
            #[inline(always)]
            pub(super) fn is_default(&self) -> bool {
                matches!(self, Self::$first(_))
            }

            /// Takes an ACK of new data; returns the window. `sample` makes what the control needs to know of it.
            #[inline(always)] // It is a part of the sender's fast path.
            pub(super) fn take(&mut self, sample: impl FnOnce(Needs) -> AckSample) -> f64 {
                match self {
                    Self::$first(control) => take(control, sample),
                    $($(#[$when])? Self::$variant(control) => take(&mut **control, sample),)+
                    Self::$foreign(control) => take(&mut **control, sample),
                }
            }
        }
    };
}

register_congestion_controls! {
    Reno(Reno),
    Cubic(Cubic),
    TwoWindows(TwoWindows),
    Scalable(Scalable),
    Dctcp(Dctcp),
    Bbr(Bbr),
    Bbr3(Bbr3),
    Prague(Prague),
    Ledbat(Ledbat),
    #[cfg(test)] // It needs all that a control may ask of the sender.
    Paced(tests::Paced),
    ; Foreign(Foreign)
}

#[inline(always)]
fn take<C: Algorithm>(control: &mut C, sample: impl FnOnce(Needs) -> AckSample) -> f64 {
    control.on_ack(&sample(control.needs()));
    control.window()
}

impl Serialize for Congestion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.info().name)
    }
}

impl<'de> Deserialize<'de> for Congestion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'_, str>::deserialize(deserializer)?;
        let known = Self::ALL.iter().chain([&Self::Foreign]).find(|control| control.info().name == name);
        known.copied().ok_or_else(|| de::Error::unknown_variant(&name, Self::NAMES))
    }
}

impl JsonSchema for Congestion {
    fn schema_name() -> Cow<'static, str> {
        "Congestion".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let choice = |control: &Self| {
            let CongestionInfo { name, summary, origin, .. } = control.info();
            let description = format!("{summary}. Source: {origin}.");
            json_schema!({ "type": "string", "const": name, "description": description })
        };
        let mut controls = Self::ALL.to_vec();
        controls.sort_by_key(|control| control.info().origin.era);
        let mut choices: Vec<Schema> = controls.iter().map(choice).collect();
        let path = "^[\\w.]+:\\w+$";
        choices.push(json_schema!({
            "type": "string", "pattern": path,
            "description": "A class in Python, as `module:Class`: a subclass of `perhop.CongestionControl`.",
        }));
        choices.push(json_schema!({
            "title": "python", "type": "object",
            "description": "A class in Python with its parameters, which are the other keys.",
            "properties": {
                "control": { "type": "string", "description": "The class, as `module:Class`." },
            },
            "required": ["control"], "additionalProperties": true,
        }));
        json_schema!({ "oneOf": choices, "description": "Which rule moves the congestion window." })
    }
}

#[cfg(test)]
mod tests;
