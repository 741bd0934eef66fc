//! Active queue management: who is dropped (RFC 7567).

mod abe;
mod drop_tail;
mod early;
mod inverse_rate;
mod red;
mod rio;
mod rio_plus_out;
mod rio_three;
mod wred;

pub use abe::{Abe, AbeParams, Law, Losses, Root};
pub use drop_tail::{DropTail, DropTailParams};
pub use early::{EarlyTest, Ewma, IdleClock, RedKnobs, Severity};
pub use inverse_rate::{InverseRate, InverseRateParams, Reading};
pub use red::{Red, RedParams};
pub use rio::{Averages, Coupling, Rio, RioParams};
pub use rio_plus_out::{RioPlusOut, RioPlusOutParams};
pub use rio_three::{RioThree, RioThreeParams};
pub use wred::{Dwred, DwredParams, GreenRule, Wred, WredParams};

use crate::control::Message;
use crate::{Context, Ecn, Header, Instant, Occupancy};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The queue had no room.
    Overflow = 0,
    /// By chance, the average being between min and max.
    Early = 1,
    /// The average was at or above max.
    Forced = 2,
    /// By chance, the average of OUT packets being between its min and max (RI+O).
    EarlyOut = 3,
    /// The average of OUT packets was at or above its max (RI+O).
    ForcedOut = 4,
    /// Too much would have gone before it for the short wait that it asks for (Asymmetric Best-Effort).
    DelayControl = 5,
    /// It waited, and could no longer be sent by its deadline (duplicate scheduling with deadlines).
    Late = 6,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Overflow,
        Self::Early,
        Self::Forced,
        Self::EarlyOut,
        Self::ForcedOut,
        Self::DelayControl,
        Self::Late,
    ];

    /// The reason's name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Early => "early",
            Self::Forced => "forced",
            Self::EarlyOut => "early-out",
            Self::ForcedOut => "forced-out",
            Self::DelayControl => "delay-control",
            Self::Late => "late",
        }
    }
}

/// What an AQM says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it in.
    Pass,
    /// Tell its ends of congestion: mark it and let it in if it is ECN-capable, else drop it (RFC 3168, section 5; RFC 7567,
    /// section 2).
    Notify(Reason),
    /// Drop it.
    Drop(Reason),
}

impl Verdict {
    /// What a RED test found, as a verdict.
    #[inline]
    fn of(found: Option<Severity>) -> Self {
        match found {
            None => Self::Pass,
            Some(Severity::Early) => Self::Drop(Reason::Early),
            Some(Severity::Notify) => Self::Notify(Reason::Early),
            Some(Severity::Forced) => Self::Drop(Reason::Forced),
        }
    }

    /// Whether this packet gets in.
    #[inline]
    pub fn admits(self, packet: &Header) -> bool {
        match self {
            Self::Pass => true,
            Self::Notify(_) => packet.ecn.is_capable(),
            Self::Drop(_) => false,
        }
    }

    /// Does to a packet what it says: marks it, and returns why, where it was to be told of congestion.
    ///
    /// # Errors
    /// Why the packet is to be dropped.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "each packet that comes to a queue comes through here")]
    pub fn apply(self, packet: &mut Header) -> Result<Option<Reason>, Reason> {
        match self {
            Self::Pass => Ok(None),
            Self::Notify(reason) if packet.ecn.is_capable() => {
                packet.ecn = Ecn::Congested;
                Ok(Some(reason))
            }
            Self::Notify(reason) | Self::Drop(reason) => Err(reason),
        }
    }
}

/// Decides who is dropped; never owns a packet.
pub trait Aqm {
    /// Judges a packet before it is queued; `queue` does not count it yet.
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict;

    /// Told that the server has had nothing to send since `since`.
    fn on_idle(&mut self, _since: Instant) {}

    /// Another block tells it something; most have no use for it.
    fn on_message(&mut self, _message: &Message) {}

    /// What it keeps track of, by name, for probes: averages, and whatever it steers by.
    fn gauges(&self) -> impl Iterator<Item = (&'static str, f64)> {
        std::iter::empty()
    }
}

/// Work on many packets under one rule, compiled for each rule, so that which one it is is asked once and not for each packet.
pub trait RuleVisitor {
    /// What the work gives.
    type Output;

    /// Does it under this rule.
    fn visit<R: Aqm>(self, rule: &mut R) -> Self::Output;
}

macro_rules! register_aqms {
    ($($variant:ident($block:ty),)+) => {
        crate::block::register!(crate::Role::Aqm, "aqm", AnyAqm, AqmParams, $($variant($block),)+);

        impl AnyAqm {
            /// Has work done under the rule that it is.
            pub fn accept<V: RuleVisitor>(&mut self, visitor: V) -> V::Output {
                match self { $(Self::$variant(aqm) => visitor.visit(aqm),)+ }
            }
        }

        impl Aqm for AnyAqm {
            #[inline]
            fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
                match self { $(Self::$variant(aqm) => aqm.on_arrival(packet, queue, cx),)+ }
            }
            #[inline]
            fn on_idle(&mut self, since: Instant) {
                match self { $(Self::$variant(aqm) => aqm.on_idle(since),)+ }
            }
            fn on_message(&mut self, message: &Message) {
                match self { $(Self::$variant(aqm) => aqm.on_message(message),)+ }
            }
            fn gauges(&self) -> impl Iterator<Item = (&'static str, f64)> {
                let named: Vec<_> = match self { $(Self::$variant(aqm) => aqm.gauges().collect(),)+ };
                named.into_iter()
            }
        }
    };
}

register_aqms! {
    DropTail(DropTail),
    Red(Red),
    Rio(Rio),
    RioPlusOut(RioPlusOut),
    RioThree(RioThree),
    InverseRate(InverseRate),
    Abe(Abe),
    Wred(Wred),
    Dwred(Dwred),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;

    #[test]
    fn every_reason_has_its_name_and_its_number() {
        let names = ["overflow", "early", "forced", "early-out", "forced-out", "delay-control", "late"];
        assert_eq!(Reason::ALL.map(Reason::name), names);
        assert_eq!(Reason::ALL.map(|reason| reason as usize), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_notification_marks_who_is_capable_and_drops_the_others() {
        let packet = |ecn| Header { ecn, ..Header::new(FlowId(0), 1000) };
        let notify = Verdict::Notify(Reason::Early);
        for (verdict, ecn, applied, after) in [
            (Verdict::Pass, Ecn::Capable0, Ok(None), Ecn::Capable0),
            (notify, Ecn::Capable0, Ok(Some(Reason::Early)), Ecn::Congested),
            (notify, Ecn::Capable1, Ok(Some(Reason::Early)), Ecn::Congested),
            (notify, Ecn::NotCapable, Err(Reason::Early), Ecn::NotCapable),
            (Verdict::Drop(Reason::Forced), Ecn::Capable0, Err(Reason::Forced), Ecn::Capable0),
        ] {
            let mut packet = packet(ecn);
            assert_eq!(verdict.admits(&packet), applied.is_ok());
            assert_eq!((verdict.apply(&mut packet), packet.ecn), (applied, after), "{verdict:?} {ecn:?}");
        }
        let of =
            [None, Some(Severity::Early), Some(Severity::Notify), Some(Severity::Forced)].map(Verdict::of);
        let by_hand = [Verdict::Pass, Verdict::Drop(Reason::Early), notify, Verdict::Drop(Reason::Forced)];
        assert_eq!(of, by_hand);
    }
}
