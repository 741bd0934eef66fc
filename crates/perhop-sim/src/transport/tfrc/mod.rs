//! TFRC: TCP-friendly rate control by an equation (RFC 5348).
//!
//! ## Deviations
//! - The source always has data to send, so the rules for idle and data-limited senders (sections 4.3, 4.4
//!   and 8.2) do not come up; a source with `max-rate` sends less than it may and is otherwise treated alike.
//! - The segment size s is the size on the wire, and is taken for the MSS in the initial window of section
//!   4.2, which is that of RFC 3390.
//! - The packets of a flow keep their order, so nothing fills a hole in the receiver's history (section 5.1).
//!   Packets lost before the first that arrives with a round-trip time are not seen.
//! - The receiver's timer stops when it expires and nothing has come, instead of running on: the next packet
//!   is reported at once either way (section 6.1).
//! - There is no ECN, and no credit for unused sending times (section 4.6).

mod equation;
mod loss;
mod receiver;
mod sender;

pub use equation::{loss_event_rate, throughput};
pub use loss::LossHistory;
pub use receiver::TfrcReceiver;
pub use sender::TfrcSender;

use perhop_core::units::{UnitError, defaults};
use perhop_core::{Bitrate, Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pacing::{Fraction, check_rate, check_size};

/// Which specification the source follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Specification {
    /// RFC 5348, of 2008.
    Rfc5348,
    /// RFC 5348 with the rate s / (R sqrt(2p/3)) in place of section 3.1's: that of a TCP without timeouts
    /// (Mathis, Semke, Mahdavi & Ott 1997), which sends half as much at four times the loss event rate.
    SquareRoot,
}

/// A source that sends at the rate that TCP would have at the same loss event rate (RFC 5348).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TfrcParams {
    /// Which specification the source follows.
    pub tfrc: Specification,
    /// Packet size on the wire.
    #[serde(default = "defaults::bytes::<1000>")]
    pub packet: Bytes,
    /// Size of a feedback packet on the wire.
    #[serde(default = "defaults::bytes::<40>")]
    pub ack: Bytes,
    /// Old loss intervals have less weight while the current one is more than twice their mean (section 5.5,
    /// where this is optional; on as in ns-2 and in Floyd, Handley, Padhye & Widmer 2000).
    #[serde(default = "defaults::on")]
    pub history_discounting: bool,
    /// Send less while the round-trip time is above its long-term mean (section 4.5, which recommends it).
    #[serde(default = "defaults::on")]
    pub oscillation_reduction: bool,
    /// The highest rate of the application. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Bitrate>,
    /// Each gap between packets is drawn uniformly from within this fraction of the nominal gap, to avoid
    /// phase effects.
    #[serde(default = "defaults::probability::<1, 100>")]
    pub jitter: Fraction,
}

impl TfrcParams {
    /// Checks how the parameters fit together.
    ///
    /// # Errors
    /// The key that does not fit, and what would.
    pub fn check(&self) -> Result<(), UnitError> {
        check_size("packet", self.packet)?;
        check_size("ack", self.ack)?;
        self.max_rate.map_or(Ok(()), |rate| check_rate("max-rate", rate, self.packet))
    }
}
