//! Changes of the parameters of queues and meters during a run.

use perhop_core::Bitrate;
use perhop_core::Instant;
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::{Retuning, SchedulerParams};

use crate::network::{FlowSpec, LinkSpec};

/// A change of the parameters of a queue or a meter, which can be refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Retuned<'a> {
    /// This link gets the queue and the meters of the second specification in place of those of the first.
    Link(usize, &'a LinkSpec, &'a LinkSpec),
    /// The profile of this flow.
    Profile(usize, &'a FlowSpec),
    /// This profile, which flows share.
    Shared(usize, &'a MeterParams),
}

/// The owner of parameters that were refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChangedPlace {
    Link(usize),
    Flow(usize),
    Shared(usize),
}

/// Returns the other parameters for the queue of a link, if they are others. Where only those of AQMs are,
/// its queues keep their shares of the rate `shared`; else they share that of the link now.
pub(crate) fn retuning<'a>(
    before: &'a LinkSpec,
    after: &'a LinkSpec,
    shared: &mut Bitrate,
    now: Instant,
) -> Option<Retuning<'a, SchedulerParams>> {
    let (was, is) = (before.queue.as_ref()?, after.queue.as_ref()?);
    if was == is {
        return None;
    }
    if !was.differs_only_in_aqms(is) {
        *shared = after.rate;
    }
    Some(Retuning { before: was, after: is, rate: *shared, now })
}
