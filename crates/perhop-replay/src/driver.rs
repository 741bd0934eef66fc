//! The interface of what a replay hands packets to.

use perhop_core::measure::PortView;

use crate::arrivals::Arrival;
use crate::error::ReplayError;
use crate::ledger::{Ledger, Tag};

/// The name of the random stream of the meter at the edge.
pub(crate) const METER: &str = "meter";

/// Hands packets to a target and says what becomes of each.
pub(crate) trait Driver {
    /// Takes a packet that arrives. The fates of others by then come before.
    fn arrive(&mut self, arrival: &Arrival<'_>, tag: Tag, ledger: &mut Ledger) -> Result<(), ReplayError>;
    /// Lets the packets that wait leave: none arrives any more.
    fn finish(&mut self, ledger: &mut Ledger) -> Result<(), ReplayError>;
    /// Returns the link's port.
    fn view(&self) -> Option<PortView<'_>>;
}
