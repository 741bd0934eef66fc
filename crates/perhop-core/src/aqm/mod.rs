//! Active queue management: which packets are dropped or marked (RFC 7567).

mod abe;
mod blue;
mod cobalt;
mod codel;
mod curve;
mod drop_tail;
mod dwred;
mod early;
mod ecn_mode;
mod foreign;
mod in_out;
mod inverse_rate;
mod one_average;
mod pi;
mod pi2;
mod pie;
mod red;
mod rio;
mod rio_plus_out;
mod rio_three;
mod room;
mod wred;

pub use abe::{Abe, AbeParams, Law, Losses, Root};
pub use blue::{Blue, BlueParams};
pub use cobalt::{Cobalt, CobaltParams};
pub use codel::{Codel, CodelLaw, CodelParams};
pub use curve::CurveTest;
pub use drop_tail::{DropTail, DropTailParams};
pub use dwred::{Dwred, DwredParams, GreenRule};
pub use early::{Chance, EarlyTest, Ewma, IdleClock, RedKnobs, Region};
pub use ecn_mode::{EcnMode, Severity};
pub use foreign::{Foreign, ForeignAqm, ForeignParams};
pub use in_out::{Averages, Coupling, InOutQueue};
pub use inverse_rate::{InverseRate, InverseRateParams, Reading};
pub use pi::{PiController, PiLaw};
pub(crate) use pi::{check_gains, check_target};
pub use pi2::{Pi2, Pi2Params};
pub use pie::{Pie, PieLaw, PieParams};
pub use red::{Red, RedParams};
pub use rio::{Rio, RioParams};
pub use rio_plus_out::{RioPlusOut, RioPlusOutParams};
pub use rio_three::{RioThree, RioThreeParams};
pub use wred::{DropAt, DropProfile, Wred, WredParams};

use ambassador::delegatable_trait;

use crate::control::Message;
use crate::units::UnitError;
use crate::{
    Bitrate, Block, Context, DelayTarget, Depth, Ecn, Environment, Header, Instant, KeysWithoutEffect,
    Occupancy, Reason,
};

/// The decision of an AQM about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Admit it.
    Pass,
    /// Notify its ends of congestion: mark and admit it if it is ECN-capable, otherwise drop it (RFC 3168,
    /// section 5; RFC 7567, section 2).
    Notify(Reason),
    /// Drop it.
    Drop(Reason),
}

impl Verdict {
    /// The result of a RED test as a verdict.
    #[inline]
    fn of(found: Option<Severity>) -> Self {
        match found {
            None => Self::Pass,
            Some(Severity::Early) => Self::Drop(Reason::Early),
            Some(Severity::Notify) => Self::Notify(Reason::Early),
            Some(Severity::Forced) => Self::Drop(Reason::Forced),
            Some(Severity::NotifyForced) => Self::Notify(Reason::Forced),
        }
    }

    /// The verdict of a queue that has this limit and no other rule.
    #[inline]
    fn by_limit(packet: &Header, queue: &Occupancy, limit: Depth) -> Self {
        if queue.is_full_for(packet, limit) { Self::Drop(Reason::Overflow) } else { Self::Pass }
    }

    /// Whether this packet is admitted.
    #[inline]
    pub fn admits(self, packet: &Header) -> bool {
        match self {
            Self::Pass => true,
            Self::Notify(_) => packet.ecn.is_capable(),
            Self::Drop(_) => false,
        }
    }

    /// Applies the verdict to a packet. Returns the reason if the packet was marked.
    ///
    /// # Errors
    /// The reason for which the packet must be dropped.
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

/// Active queue management: decides which packets a queue drops or marks. It never owns a packet;
/// [`ManagedQueue`](crate::ManagedQueue) calls it and acts on its verdicts.
#[delegatable_trait]
pub trait Aqm {
    /// The verdict on a packet that arrives; `queue` does not include it yet.
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict;

    /// The verdict on a packet at the head of the queue, as it is taken for transmission; `left` is the rest
    /// of the queue. The time since [`arrived`](Header::arrived) is its sojourn time (RFC 8289, section 3.1).
    /// After a drop the next head is judged at the same time. An AQM that implements this sets
    /// [`PRECOMPUTABLE`](AqmBlock::PRECOMPUTABLE) to false.
    #[inline]
    fn on_departure(&mut self, _packet: &Header, _left: &Occupancy, _cx: &mut Context<'_>) -> Verdict {
        Verdict::Pass
    }

    /// The queue is empty, and its last packet was transmitted or dropped at `since`. Called once for each
    /// idle period, before the arrival that ends it; not for the one at the start of a run.
    fn on_idle(&mut self, _since: Instant) {}

    /// A control message from another block; most AQMs ignore it.
    fn on_message(&mut self, _message: &Message) {}

    /// Internal state for probes, by name: averages and control variables.
    fn gauges(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// The declarations of an AQM besides those of [`Block`].
pub trait AqmBlock: Block {
    /// The AQM decides on arrival alone, from the header, the occupancy and its own state. The batched engine
    /// can then compute departures ahead of time. False for an AQM with [`on_departure`](Aqm::on_departure).
    const PRECOMPUTABLE: bool = true;
    /// An AQM that is not precomputable asks for the age of the packet at the head of the queue,
    /// [`Occupancy::head`], which other AQMs do not get.
    const NEEDS_HEAD: bool = false;
    /// The AQM asks how much is served before a packet that arrives, [`Occupancy::ahead`], which a scheduler
    /// under which packets overtake others finds for it alone.
    const NEEDS_AHEAD: bool = false;
    /// The AQM reads the contracted rate that a packet carries, [`Header::service`].
    const READS_SERVICE_LEVEL: bool = false;

    /// The AQM at the start of a run. `params` have passed [`check`](Block::check).
    fn new(params: Self::Params, environment: Environment) -> Self;

    /// Takes over what `before` has measured and counted, which a driver replaces by this AQM because its
    /// parameters change during a run. Only this AQM's parameters act on later packets.
    ///
    /// # Errors
    /// The key whose change would leave that state without a meaning, or that cannot change during a run.
    fn take_over(&mut self, _before: &Self) -> Result<(), UnitError> {
        Err(UnitError::new(format!("the parameters of `{}` cannot change during a run", Self::NAME)))
    }

    /// Whether the AQM decides on arrival alone with these parameters; see
    /// [`PRECOMPUTABLE`](Self::PRECOMPUTABLE).
    fn precomputable(_params: &Self::Params) -> bool {
        Self::PRECOMPUTABLE
    }

    /// The most that waits in its queue where this is served at such a rate; `None` without a bound.
    fn limit(_params: &Self::Params, _rate: Bitrate) -> Option<Depth> {
        None
    }

    /// The most that may wait, a packet that arrives included, without a drop or a mark; `None` if a packet
    /// may be dropped whatever waits, or only for the time for which it waits
    /// ([`delay_targets`](Self::delay_targets)).
    fn spared(_params: &Self::Params, _rate: Bitrate) -> Option<Depth> {
        None
    }

    /// The queueing delays at which the AQM aims.
    fn delay_targets(_params: &Self::Params) -> Vec<DelayTarget> {
        Vec::new()
    }

    /// Parameters that have no effect where the queue is served at this rate: each with its key and the
    /// reason.
    fn keys_without_effect_at(_params: &Self::Params, _rate: Bitrate) -> KeysWithoutEffect {
        Vec::new()
    }
}

/// Work on many packets under one AQM. It is compiled for each AQM, so that dispatch happens once a batch and
/// not once a packet.
pub trait AqmVisitor {
    /// The result of the work.
    type Output;

    /// Does the work under this AQM.
    fn visit<A: Aqm>(self, aqm: &mut A) -> Self::Output;
}

macro_rules! register_aqms {
    ($($variant:ident($block:ty),)+) => {
        crate::registration::register!(crate::Role::Aqm, "aqm", Aqm, AqmBlock, AnyAqm, AqmParams, $($variant($block),)+);

        impl AnyAqm {
            /// Does the work under the AQM of this variant.
            pub fn accept<V: AqmVisitor>(&mut self, visitor: V) -> V::Output {
                match self { $(Self::$variant(aqm) => visitor.visit(aqm),)+ }
            }
        }

        impl AqmParams {
            /// Whether the AQM decides on arrival alone: [`AqmBlock::precomputable`].
            pub fn precomputable(&self) -> bool {
                match self { $(Self::$variant(params) => <$block as AqmBlock>::precomputable(params),)+ }
            }

            /// Whether it asks for the age of the packet at the head: [`AqmBlock::NEEDS_HEAD`].
            pub fn needs_head(&self) -> bool {
                match self { $(Self::$variant(_) => <$block as AqmBlock>::NEEDS_HEAD,)+ }
            }

            /// Whether it asks how much is served before a packet that arrives: [`AqmBlock::NEEDS_AHEAD`].
            pub fn needs_ahead(&self) -> bool {
                match self { $(Self::$variant(_) => <$block as AqmBlock>::NEEDS_AHEAD,)+ }
            }

            /// Whether it reads the contracted rate that a packet carries: [`AqmBlock::READS_SERVICE_LEVEL`].
            pub fn reads_service_level(&self) -> bool {
                match self { $(Self::$variant(_) => <$block as AqmBlock>::READS_SERVICE_LEVEL,)+ }
            }

            /// The most that waits in its queue where this is served at such a rate: [`AqmBlock::limit`].
            pub fn limit(&self, rate: Bitrate) -> Option<Depth> {
                match self { $(Self::$variant(params) => <$block as AqmBlock>::limit(params, rate),)+ }
            }

            /// The most that may wait without a drop: [`AqmBlock::spared`].
            pub fn spared(&self, rate: Bitrate) -> Option<Depth> {
                match self { $(Self::$variant(params) => <$block as AqmBlock>::spared(params, rate),)+ }
            }

            /// The queueing delays at which it aims: [`AqmBlock::delay_targets`].
            pub fn delay_targets(&self) -> Vec<DelayTarget> {
                match self { $(Self::$variant(params) => <$block as AqmBlock>::delay_targets(params),)+ }
            }

            /// Parameters that have no effect where the queue is served at this rate:
            /// [`AqmBlock::keys_without_effect_at`].
            pub fn keys_without_effect_at(&self, rate: Bitrate) -> KeysWithoutEffect {
                match self { $(Self::$variant(params) => <$block as AqmBlock>::keys_without_effect_at(params, rate),)+ }
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
    Codel(Codel),
    Pie(Pie),
    Blue(Blue),
    Cobalt(Cobalt),
    Pi2(Pi2),
    Foreign(Foreign),
}

impl AqmParams {
    /// Returns the parameters of an AQM that drops nothing, as of a queue without a limit.
    pub const fn unlimited() -> Self {
        Self::DropTail(DropTailParams { limit: Depth::Packets(u64::MAX) })
    }

    /// Returns these parameters with a `limit` in place of the default one, where the queue is served at this
    /// rate.
    #[must_use]
    pub fn with_limit(&self, rate: Bitrate) -> Self {
        let limited = self.limit(rate).and_then(|limit| {
            let mut table = serde_json::to_value(self).ok()?;
            table.as_object_mut()?.insert("limit".into(), limit.to_string().into());
            serde_json::from_value(table).ok()
        });
        // A class implemented outside keeps its implementation.
        limited.filter(|_| !matches!(self, Self::Foreign(_))).unwrap_or_else(|| self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;

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
