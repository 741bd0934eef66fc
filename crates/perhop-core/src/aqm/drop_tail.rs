//! Drop-tail: a packet is dropped only when the queue has no room (RFC 7567, section 1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aqm, AqmBlock, Verdict};
use crate::units::UnitError;
use crate::{Bitrate, Block, Context, Depth, Environment, Header, Occupancy, Origin, PseudoCode, Reason};

/// Parameters of [`DropTail`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DropTailParams {
    /// Queue limit, in packets (`200p`), in bytes (`300kB`), or as a time (`50ms`) at the rate of the link.
    #[schemars(with = "crate::units::Limit")]
    pub limit: Depth,
}

/// A plain finite queue.
#[derive(Clone, Debug)]
pub struct DropTail {
    params: DropTailParams,
}

const CODE: PseudoCode = PseudoCode {
    lines: &[
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    else: pass",
    ],
    acts: &[(Reason::Overflow, &[1])],
};

impl Block for DropTail {
    type Params = DropTailParams;
    const NAME: &'static str = "drop-tail";
    const SUMMARY: &'static str = "drops a packet only when the queue has no room";
    const ORIGIN: Origin =
        Origin::published(1998, "RFC 2309, section 2; RFC 7567, section 1").in_linux("pfifo", "2.2");
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(CODE);
}

impl AqmBlock for DropTail {
    fn limit(params: &DropTailParams, _: Bitrate) -> Option<Depth> {
        Some(params.limit)
    }

    fn spared(params: &DropTailParams, _: Bitrate) -> Option<Depth> {
        Some(params.limit)
    }

    fn new(params: DropTailParams, _: Environment) -> Self {
        Self { params }
    }

    fn take_over(&mut self, _: &Self) -> Result<(), UnitError> {
        Ok(())
    }
}

impl Aqm for DropTail {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, _: &mut Context<'_>) -> Verdict {
        Verdict::by_limit(packet, queue, self.params.limit)
    }
}
