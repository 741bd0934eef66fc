//! Congestion control: how a TCP sender's window follows what the sender learns of the network.
//!
//! A congestion control decides about the window, and nothing else. The [sender](super::TcpSender) finds
//! losses and recovers from them, keeps the timers, measures round trips and delivery rates, and paces.
//!
//! To add one: a file here with its state, its parameters ([`NoParams`] if it has none), an `impl Block` (its
//! name and origin), an `impl Algorithm` (what others may know of it), an `impl CongestionControl` (what it
//! does) and its tests, and one line in `register_congestion_controls!`. The line makes it a value of the
//! scenario's key `congestion`, and puts it and its parameters into the documentation, the typed builder, the
//! random-network tests and, if the kernel has it, into `perhop live`.

#![expect(clippy::inline_always, reason = "these calls are a part of the sender's short way")]

mod bbr;
mod bbr3;
mod cubic;
mod dctcp;
mod foreign;
mod key;
mod ledbat;
mod path_model;
mod prague;
mod reno;
mod scalable;
mod two_windows;
mod window;

use std::borrow::BorrowMut;
use std::ops::{Deref, DerefMut};

use ambassador::{Delegate, delegatable_trait, delegate_to_remote_methods};
use perhop_core::{Bitrate, Block, Bytes, Color, Duration, Instant, Origin, Role, register_params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::{Cubic, CubicAlpha, CubicParams};
pub use dctcp::{Dctcp, DctcpParams};
pub use foreign::{Foreign, ForeignCongestion, ForeignCongestionParams, Need};
pub use key::{Congestion, FormerKey};
pub use ledbat::{Ledbat, LedbatParams};
pub use prague::{Prague, PragueParams};
pub use reno::{Reno, RenoParams};
pub use scalable::Scalable;
pub use two_windows::TwoWindows;
pub use window::Window;

pub(super) use path_model::bitrate;

use super::variant::Variant;

/// The declaration of a congestion control beside its [`Block`]: what others may know of it before a
/// connection begins.
pub trait Algorithm: CongestionControl + Block {
    /// The control begins with a slow start, which may end by round-trip times.
    const SLOW_START: bool = true;
    /// The control reacts to marks (ECN). Where it does not, a flow may not ask for any.
    const ANSWERS_MARKS: bool = true;
    /// The key `byte-counting` acts: the window can grow by ACKs, or by the segments that they acknowledge.
    const BYTE_COUNTING: bool = false;
    /// The control carries out the reductions of its window, so that the key `reduction` cannot act. One that
    /// paces or [owns](Needs::recovery) its recoveries does so in any case.
    const REDUCES_ITSELF: bool = false;
    /// The control depends on [`Setup::reserved`], which therefore cannot change during a run.
    const READS_RESERVED_RATE: bool = false;
    /// The needs of the control: what the sender has to keep for it. What no control needs costs nothing.
    const NEEDS: Needs = Needs::NOTHING;
    /// Keys of a transport that are parameters of the control by now.
    const FORMER_KEYS: &'static [FormerKey] = &[];

    /// Returns the control of a new connection.
    fn new(setup: &Setup, params: &Self::Params) -> Self;

    /// Returns the needs of this control: [`NEEDS`](Self::NEEDS), unless its parameters decide.
    #[inline(always)]
    fn needs(&self) -> Needs {
        Self::NEEDS
    }

    /// Returns the needs of a control with these parameters.
    fn needs_with(_params: &Self::Params) -> Needs {
        Self::NEEDS
    }

    /// Returns whether the first slow start ends by Linux's `HyStart`, unless the key `slow-start` is given,
    /// beside this value of the key `tcp`.
    fn has_hystart(_params: &Self::Params, _tcp: Variant) -> bool {
        false
    }

    /// Returns a parameter that is given and acts on flows with ECN alone.
    fn key_of_marks(_params: &Self::Params) -> Option<&'static str> {
        None
    }

    /// Returns the name in messages and tables: [`NAME`](Block::NAME), unless a class has one of its own.
    fn label(_params: &Self::Params) -> &str {
        Self::NAME
    }
}

/// The parameters of a congestion control that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// A congestion control. All windows are in segments.
#[delegatable_trait]
pub trait CongestionControl {
    /// Takes an ACK of new data. Not called during a recovery from losses, unless the control
    /// [owns](Needs::recovery) them.
    fn on_ack(&mut self, ack: &AckSample);

    /// Takes a lost segment, if the control [owns](Needs::recovery) its recoveries: before
    /// [`on_ack`](Self::on_ack) for the ACK that shows the loss.
    fn on_lost(&mut self, _lost: &LostSegment) {}

    /// Reacts to a loss with which a recovery begins: once in each recovery.
    fn on_loss(&mut self, event: &CongestionEvent);

    /// Reacts to marked packets (ECN): at most once in a window of data, and not during a recovery. Unless
    /// said otherwise, as a loss (RFC 3168, section 6.1.2).
    fn on_congestion_experienced(&mut self, event: &CongestionEvent) {
        self.on_loss(event);
    }

    /// Reacts to the retransmission timeout. Unless said otherwise, the slow-start threshold is that after a
    /// loss, and slow start begins with one segment (RFC 5681, section 3.1).
    fn on_timeout(&mut self, event: &CongestionEvent) {
        self.on_loss(event);
        self.set_window(1.0);
    }

    /// Returns the congestion window, at least one segment. During a recovery: the window with which the
    /// recovery is to end, or, if the control [owns](Needs::recovery) it, the window in force.
    fn window(&self) -> f64;

    /// Sets the window: the sender does so when the connection opens, and after feedback of an OUT packet.
    fn set_window(&mut self, window: f64);

    /// Returns the slow-start threshold in segments; 0 if the control has no slow start.
    fn slow_start_threshold(&self) -> f64 {
        0.0
    }

    /// Returns whether the control is in slow start: the window is below its threshold.
    fn is_in_slow_start(&self) -> bool {
        self.window() < self.slow_start_threshold()
    }

    /// Takes note that the application has data again, after this time in which nothing was outstanding.
    fn on_idle(&mut self, _idle: Duration) {}

    /// Ends slow start before packets are lost: congestion avoidance goes on from this window.
    fn leave_slow_start(&mut self) {}

    /// Returns the rate, headers included, at which segments may leave; `None` is unlimited. The sender asks
    /// only if the control [needs](Needs::pacing) pacing.
    fn pacing_rate(&self) -> Option<Bitrate> {
        None
    }
}

/// The needs of a congestion control: what a sender keeps only for a control that asks for it.
#[expect(clippy::struct_excessive_bools, reason = "the needs are independent")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The color of each segment sent: [`CongestionEvent::color`].
    pub colors: bool,
    /// A record of each outstanding segment: [`AckSample::delivery`].
    pub delivery: bool,
    /// ACKs that report marked packets, with the number of these: [`AckSample::marked`]. Other controls do
    /// not get such ACKs, because they must not increase the window. The receiver then echoes each mark, and
    /// the flow must be ECN-capable, its retransmissions, too, as in Linux (`TCP_CONG_NEEDS_ECN`); a loss
    /// reduces the window even if a mark has just done so, since that may have been by little.
    pub marks: bool,
    /// Segments leave at [`pacing_rate`](CongestionControl::pacing_rate).
    pub pacing: bool,
    /// The control's window is in force during recoveries, too, of which it gets each ACK, with
    /// [`AckSample::pipe`], [`lost`](AckSample::lost) and [`recovering`](AckSample::recovering), and each
    /// [loss](CongestionControl::on_lost).
    pub recovery: bool,
    /// Data is ECT(1), which asks for marks early and often (RFC 9331); the flow's feedback must be accurate.
    pub l4s: bool,
}

impl Needs {
    /// Nothing besides what every sender keeps.
    pub const NOTHING: Self =
        Self { colors: false, delivery: false, marks: false, pacing: false, recovery: false, l4s: false };

    /// Returns whether the sender's short way meets these needs.
    pub const fn allow_plain(self) -> bool {
        self.allow_noted(false) && !self.pacing
    }

    /// Returns whether an unmarked cumulative ACK can be handled with the number of delivered segments alone
    /// (a paced sender may also need a delivery-rate sample).
    pub const fn allow_noted(self, is_paced: bool) -> bool {
        !self.colors && (is_paced || !(self.delivery || self.recovery))
    }
}

/// The connection for which a congestion control is made: all that it knows then besides its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The value of the key `tcp`: a preset may give a parameter that is left out another default.
    pub tcp: Variant,
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
    /// The window is counted in whole segments, and a reduction rounds it down, as by Linux.
    pub whole_segments: bool,
    /// ACKs report what arrived beyond a gap (RFC 2018).
    pub selective_acks: bool,
    /// The seed of a control that decides by chance: the flow's own.
    pub seed: u64,
}

/// An ACK of new data.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// The time at which the ACK came.
    pub now: Instant,
    /// Segments newly acknowledged, in order or selectively.
    pub delivered: u32,
    /// The number of delivered segments that were marked, if the control [needs](Needs::marks) to know.
    pub marked: u32,
    /// The first segment that is not acknowledged.
    pub acked: u32,
    /// Segments sent and not acknowledged.
    pub in_flight: u32,
    /// The segments of `in_flight` that are thought to be in the network. This field and the next two are 0
    /// unless the control [owns](Needs::recovery) its recoveries.
    pub pipe: u32,
    /// Segments found to be lost since the ACK before this one.
    pub lost: u32,
    /// Losses are being repaired.
    pub recovering: bool,
    /// The smoothed round-trip time in seconds; 0 before the first is known.
    pub smoothed_rtt: f64,
    /// A sample of the delivery rate, if the control [needs](Needs::delivery) to know.
    pub delivery: Option<DeliverySample>,
}

/// A sample of the delivery rate, up to "the segment": the one sent last of those that an ACK acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySample {
    /// Segments delivered since the segment was sent.
    pub delivered: u64,
    /// The time that `delivered` segments took: the longer of those between their ACKs and transmissions.
    pub interval: Duration,
    /// Segments delivered before the segment was sent.
    pub prior: u64,
    /// The segment's round trip; `None` if it was sent more than once.
    pub rtt: Option<Duration>,
    /// The number of the round trip, from 1: each begins with the ACK of a segment sent after the last began.
    pub round: u64,
    /// Segments found to be lost since the segment was sent; 0 unless the control [owns](Needs::recovery) its
    /// recoveries.
    pub lost: u64,
    /// Segments in the network when the segment was sent, itself included; 0 likewise.
    pub in_flight: u32,
    /// The sample says too little of the path: the application had no more to send.
    pub limited: bool,
}

/// A segment that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// The time at which the sender learned of the loss.
    pub now: Instant,
    /// Segments found to be lost since the segment was sent, itself included.
    pub lost: u32,
    /// Segments in the network when the segment was sent, itself included.
    pub in_flight: u32,
}

/// Congestion as the sender learns of it.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// The time at which the sender learned of it.
    pub now: Instant,
    /// The window in force, at most the receiver's. Within a recovery it may differ from the control's own.
    pub window: f64,
    /// The smoothed round-trip time in seconds; 0 before the first is known.
    pub smoothed_rtt: f64,
    /// The color of the first missing segment; yellow if the control does not [need](Needs::colors) it.
    pub color: Color,
}

/// The declarations of a registered congestion control that do not depend on its parameters.
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Clone, Copy, Debug)]
pub struct CongestionInfo {
    /// See [`Block::NAME`].
    pub name: &'static str,
    /// See [`Block::ORIGIN`].
    pub origin: Origin,
    /// See [`Algorithm::SLOW_START`].
    pub slow_start: bool,
    /// See [`Algorithm::ANSWERS_MARKS`].
    pub answers_marks: bool,
    /// See [`Algorithm::BYTE_COUNTING`].
    pub byte_counting: bool,
    /// See [`Algorithm::REDUCES_ITSELF`].
    pub reduces_itself: bool,
    /// See [`Algorithm::READS_RESERVED_RATE`].
    pub reads_reserved_rate: bool,
    /// See [`Algorithm::FORMER_KEYS`].
    pub former_keys: &'static [FormerKey],
}

impl CongestionInfo {
    const fn of<C: Algorithm>() -> Self {
        Self {
            name: C::NAME,
            origin: C::ORIGIN,
            slow_start: C::SLOW_START,
            answers_marks: C::ANSWERS_MARKS,
            byte_counting: C::BYTE_COUNTING,
            reduces_itself: C::REDUCES_ITSELF,
            reads_reserved_rate: C::READS_RESERVED_RATE,
            former_keys: C::FORMER_KEYS,
        }
    }
}

// A control in a box acts as that control.
#[delegate_to_remote_methods]
#[delegate(CongestionControl, target_ref = "deref", target_mut = "deref_mut")]
impl<C: CongestionControl + ?Sized> Box<C> {
    fn deref(&self) -> &C;
    fn deref_mut(&mut self) -> &mut C;
}

/// Makes the enums over the parameters and the states of all congestion controls. Dispatch is by `match`,
/// which `ambassador` derives from the trait's definition: no vtable in the packet's path.
///
/// The default control is stored beside the fields that each ACK uses. Every other one is boxed, so that it
/// does not make the sender larger.
macro_rules! register_congestion_controls {
    ($default:ident: $($(#[$when:meta])? $variant:ident($control:ty) in $stored:ty,)+) => {
        register_params!(
            Role::CongestionControl, "control", CongestionParams, $($(#[$when])? $variant($control),)+
        );

        impl Default for CongestionParams {
            fn default() -> Self {
                Self::$default(Default::default())
            }
        }

        impl CongestionParams {
            /// Returns the declarations that do not depend on the parameters.
            pub const fn info(&self) -> CongestionInfo {
                match self { $($(#[$when])? Self::$variant(_) => CongestionInfo::of::<$control>(),)+ }
            }

            /// Returns the needs of the control.
            pub fn needs(&self) -> Needs {
                match self { $($(#[$when])? Self::$variant(params) => <$control>::needs_with(params),)+ }
            }

            /// See [`Algorithm::has_hystart`].
            pub(super) fn has_hystart(&self, tcp: Variant) -> bool {
                match self { $($(#[$when])? Self::$variant(params) => <$control>::has_hystart(params, tcp),)+ }
            }

            /// See [`Algorithm::key_of_marks`].
            pub fn key_of_marks(&self) -> Option<&'static str> {
                match self { $($(#[$when])? Self::$variant(params) => <$control>::key_of_marks(params),)+ }
            }

            /// See [`Algorithm::label`].
            pub fn label(&self) -> &str {
                match self { $($(#[$when])? Self::$variant(params) => <$control>::label(params),)+ }
            }

            /// Returns the control of a new connection.
            pub(super) fn build(&self, setup: &Setup) -> AnyCongestion {
                match self {
                    $($(#[$when])? Self::$variant(params) => {
                        AnyCongestion::$variant(<$control as Algorithm>::new(setup, params).into())
                    })+
                }
            }
        }

        /// The state of any congestion control.
        #[derive(Clone, Debug, Delegate)]
        #[delegate(CongestionControl)]
        pub(super) enum AnyCongestion {
            $($(#[$when])? $variant($stored),)+
        }

        impl AnyCongestion {
            #[inline(always)]
            pub(super) fn is_default(&self) -> bool {
                matches!(self, Self::$default(_))
            }

            /// Takes an ACK of new data, of which `sample` makes the sample needed; returns the window.
            #[inline(always)] // It is a part of the sender's short way.
            pub(super) fn take(&mut self, sample: impl FnOnce(Needs) -> AckSample) -> f64 {
                match self {
                    $($(#[$when])? Self::$variant(control) => {
                        take(BorrowMut::<$control>::borrow_mut(control), sample)
                    })+
                }
            }
        }
    };
}

register_congestion_controls! {
    Reno: Reno(Reno) in Reno,
    Cubic(Cubic) in Box<Cubic>,
    TwoWindows(TwoWindows) in Box<TwoWindows>,
    Scalable(Scalable) in Box<Scalable>,
    Dctcp(Dctcp) in Box<Dctcp>,
    Bbr(Bbr) in Box<Bbr>,
    Bbr3(Bbr3) in Box<Bbr3>,
    Prague(Prague) in Box<Prague>,
    Ledbat(Ledbat) in Box<Ledbat>,
    #[cfg(test)] // It needs all that a control may ask of the sender.
    Paced(tests::Paced) in Box<tests::Paced>,
    Foreign(Foreign) in Box<Foreign>,
}

impl CongestionParams {
    /// Returns the control of this name with its defaults; `None` without such a control, or if it has a
    /// parameter without a default.
    pub fn named(name: &str) -> Option<Self> {
        Self::deserialize_named(name, serde_json::json!({}))?.ok()
    }

    /// Returns every control that has defaults: all of this crate, without the one that a class implements.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().filter_map(|name| Self::named(name))
    }

    /// Returns the table of a control that is implemented outside.
    pub fn foreign(&self) -> Option<&ForeignCongestionParams> {
        if let Self::Foreign(params) = self { Some(params) } else { None }
    }

    /// See [`foreign`](Self::foreign).
    pub fn foreign_mut(&mut self) -> Option<&mut ForeignCongestionParams> {
        if let Self::Foreign(params) = self { Some(params) } else { None }
    }
}

#[inline(always)]
fn take<C: Algorithm>(control: &mut C, sample: impl FnOnce(Needs) -> AckSample) -> f64 {
    control.on_ack(&sample(control.needs()));
    control.window()
}

#[cfg(test)]
mod tests;
